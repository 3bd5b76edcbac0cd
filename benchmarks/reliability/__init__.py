"""Stress tests that look for crashes, lost files and wrong answers; each writes a record."""
