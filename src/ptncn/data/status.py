"""What of a dataset is in the cache, and whether it is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ptncn.data.cache import cache_folder
from ptncn.data.catalog import Dataset, RemoteFile
from ptncn.data.content import Proof, check_file
from ptncn.data.errors import DataError

STRENGTH = list(Proof)
"""From the strongest proof to the weakest."""


@dataclass(frozen=True)
class FileStatus:
    path: Path
    bytes: int
    """On disk; 0 where it is missing."""
    proof: Proof | None
    """None where the file is missing or wrong."""
    problem: str | None
    """Why it is wrong; None where it is right or missing."""


@dataclass(frozen=True)
class Status:
    files: tuple[FileStatus, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def there(self) -> int:
        """How many files there are, right or wrong."""
        return sum(file.proof is not None or file.problem is not None for file in self.files)

    @property
    def right(self) -> bool:
        return all(file.proof for file in self.files)

    def __str__(self) -> str:
        """In words; of several proofs the weakest."""
        wrong = [file.path.name for file in self.files if file.problem]
        if wrong:
            return f"wrong: {', '.join(wrong)}"
        if self.there == 0:
            return "not there"
        if self.there < len(self.files):
            return f"incomplete: {self.there} of {len(self.files)} files"
        return max((file.proof for file in self.files if file.proof), key=STRENGTH.index).value


def look_up(dataset: Dataset, seen: Callable[[], None] = lambda: None) -> Status:
    """Read and check every file that is there; `seen` is called after each."""
    files = []
    for file in dataset.files:
        files.append(_look_up(file))
        seen()
    return Status(tuple(files))


def _look_up(file: RemoteFile) -> FileStatus:
    path = cache_folder() / file.path
    if not path.is_file():
        return FileStatus(path, 0, None, None)
    try:
        return FileStatus(path, path.stat().st_size, check_file(file, path), None)
    except DataError as error:
        return FileStatus(path, path.stat().st_size, None, str(error))
