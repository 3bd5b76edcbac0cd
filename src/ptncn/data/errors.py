"""Errors about data: one line that names the file."""

from __future__ import annotations


class DataError(ValueError):
    """A file or an array is not what it should be; the message names it and says what was expected."""


class MissingDataError(DataError):
    """A dataset is not in the cache; the message gives the command that downloads it."""
