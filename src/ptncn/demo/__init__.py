"""The demo: two learners of equal size live through one stream, and a page tells what happened."""
