"""What can be wrong with data, said in one line that names the file."""

from __future__ import annotations


class DataError(ValueError):
    """A file or an array is not what it should be; the message names it and says what would be right."""


class MissingDataError(DataError):
    """A dataset is not in the cache; the message says the command that gets it."""
