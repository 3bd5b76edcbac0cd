"""Campaigns that look for crashes, lost files and wrong answers; each writes a record of what it found."""
