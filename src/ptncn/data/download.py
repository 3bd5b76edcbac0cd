"""Files of datasets: the cache, downloads and checksums.

A file is downloaded next to its final path, checked, and only then moved there, so every file in the cache is complete.
Running again continues where the last run stopped: files that are present and correct are kept.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import platformdirs
from numpy.typing import NDArray

from ptncn.data.sequences import DataError, MissingDataError

GZIP_MAGIC = b"\x1f\x8b"
CHUNK = 1 << 16
TIMEOUT = 30
"""Seconds without an answer after which the next mirror is tried."""


def cache_folder() -> Path:
    """The folder that holds `mnist/`, `ptb/` and so on: `$PTNCN_DATA`, else the platform's cache folder."""
    chosen = os.environ.get("PTNCN_DATA")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("ptncn"))


@dataclass(frozen=True)
class RemoteFile:
    """One file of a dataset. Mirrors compress the same content differently, so checksums are of the content."""

    path: str
    """Below the cache folder; the first folder is the name of the dataset."""
    urls: tuple[str, ...]
    """Mirrors, tried in this order."""
    sha256: tuple[str, ...] = ()
    """SHA-256 of the decompressed content; any of these is accepted."""
    md5: str | None = None
    """MD5 of the file as published, where no SHA-256 is known."""
    items: int | None = None
    """Accept an idx file with this many items whatever its checksum, where none was published."""

    @property
    def place(self) -> Path:
        return cache_folder() / self.path

    def missing(self) -> MissingDataError:
        return MissingDataError(
            f"{self.place}: no such file. Get it with: ptncn data fetch {self.path.split('/')[0]} "
            "(or set PTNCN_DATA to a folder that has it)"
        )


class Proof(Enum):
    """How a file was verified, strongest first."""

    SHA256 = "verified (SHA-256)"
    MD5 = "verified (MD5 of the file as published)"
    STRUCTURE = "structure checked, no known hash"


def read_content(path: Path) -> bytes:
    """The content of a file, decompressed if it is gzip data, whatever its name."""
    return unpack(read_bytes(path), path)


def read_checked(file: RemoteFile) -> bytes:
    """The verified, decompressed content of a file in the cache."""
    if not file.place.is_file():
        raise file.missing()
    return check_content(file, read_bytes(file.place), file.place)[0]


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def unpack(raw: bytes, path: Path) -> bytes:
    if not raw.startswith(GZIP_MAGIC):
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the gzip file is truncated or damaged: {error}") from error


def check_file(file: RemoteFile, path: Path) -> Proof:
    """How the file at `path` was verified to be `file`; raises DataError if it is not."""
    if file.sha256:
        return check_content(file, read_bytes(path), path)[1]
    with path.open("rb") as content:  # in pieces, because the file may be large
        digest = hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if digest != file.md5:
        raise DataError(f"{path}: expected MD5 {file.md5}, got {digest}: not the file it should be")
    return Proof.MD5


def check_content(file: RemoteFile, raw: bytes, path: Path) -> tuple[bytes, Proof]:
    """The decompressed content of the bytes of `path`, and how it was verified."""
    content = unpack(raw, path)
    digest = hashlib.sha256(content).hexdigest()
    if digest in file.sha256:
        return content, Proof.SHA256
    if file.md5 is not None and hashlib.md5(raw, usedforsecurity=False).hexdigest() == file.md5:
        return content, Proof.MD5
    if file.items is not None and len(parse_idx(content, path)) == file.items:
        return content, Proof.STRUCTURE
    known = " or ".join(file.sha256)
    raise DataError(f"{path}: the content has SHA-256 {digest} instead of {known}: not the file it should be")


@dataclass(frozen=True)
class FileStatus:
    path: Path
    bytes: int
    """Size on disk; 0 if the file is missing."""
    proof: Proof | None
    """None if the file is missing or wrong."""
    problem: str | None
    """Why the file is wrong; None if it is correct or missing."""


@dataclass(frozen=True)
class CacheStatus:
    """The files of a dataset in the cache."""

    files: tuple[FileStatus, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def present(self) -> int:
        """Number of files in the cache, correct or wrong."""
        return sum(file.proof is not None or file.problem is not None for file in self.files)

    @property
    def correct(self) -> bool:
        return all(file.proof for file in self.files)

    def __str__(self) -> str:
        """A short description, with the weakest proof of all files."""
        wrong = [file.path.name for file in self.files if file.problem]
        if wrong:
            return f"wrong: {', '.join(wrong)}"
        if self.present == 0:
            return "embedded" if not self.files else "not there"
        if self.present < len(self.files):
            return f"incomplete: {self.present} of {len(self.files)} files"
        return max((file.proof for file in self.files if file.proof), key=list(Proof).index).value


def look_up(files: Sequence[RemoteFile], done: Callable[[], None] = lambda: None) -> CacheStatus:
    """Read and check every file that is in the cache; `done` is called after each."""
    statuses = []
    for file in files:
        statuses.append(_look_up(file))
        done()
    return CacheStatus(tuple(statuses))


def _look_up(file: RemoteFile) -> FileStatus:
    path = file.place
    if not path.is_file():
        return FileStatus(path, 0, None, None)
    try:
        return FileStatus(path, path.stat().st_size, check_file(file, path), None)
    except DataError as error:
        return FileStatus(path, path.stat().st_size, None, str(error))


def fetch(
    files: Sequence[RemoteFile],
    *,
    replace: bool = False,
    progress: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> None:
    """Download every file that is not in the cache.

    A wrong file in the cache is an error and is not touched, unless `replace` is set. `progress` shows a bar for each
    download; `report` gets one line for each file.
    """
    for file in files:
        if file.place.exists() and not replace:
            proof = _check_present(file)
            report(f"{file.place}: already there, {proof.value}")
        else:
            proof = _download(file, progress, report)
            report(f"{file.place}: downloaded, {proof.value}")


def _check_present(file: RemoteFile) -> Proof:
    try:
        return check_file(file, file.place)
    except DataError as error:
        raise DataError(f"{error}. It was not changed; --replace downloads it again") from error


def _download(file: RemoteFile, progress: bool, report: Callable[[str], None]) -> Proof:
    """Download from the first mirror with the right content."""
    path = file.place
    new_folder = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".fetch-", dir=path.parent))
    except OSError as error:
        raise DataError(
            f"{path.parent}: cannot be written: {error.strerror or error}. Set PTNCN_DATA to a writable folder"
        ) from error
    failures = []
    try:
        for url in file.urls:
            try:
                return _download_from(file, url, scratch / path.name, progress)
            except (DataError, OSError) as error:  # requests' own errors are OSErrors too
                reason = str(error).removeprefix(f"{scratch / path.name}: ")
                failures.append(f"{url}: {reason}")
                report(f"{url}: failed: {reason}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if new_folder and not any(path.parent.iterdir()):
            path.parent.rmdir()
    raise DataError(f"{path}: no mirror has the right file: {'; '.join(failures)}")


def _download_from(file: RemoteFile, url: str, part: Path, progress: bool) -> Proof:
    """Download to `part`, check it, compress it if the cache does, and move it into the cache."""
    import pooch  # needed only for downloads

    part.unlink(missing_ok=True)
    with _quiet_pooch(), _download_bar(part.name, progress) as bar:
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK, timeout=TIMEOUT)
        pooch.retrieve(url, known_hash=None, fname=part.name, path=part.parent, downloader=downloader)
    proof = check_file(file, part)
    if file.place.suffix == ".gz":
        content = part.read_bytes()
        if not content.startswith(GZIP_MAGIC):
            part.write_bytes(gzip.compress(content, mtime=0))
    os.replace(part, file.place)
    return proof


class _Bar:
    """A rich progress bar with the interface that pooch expects."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = TextColumn("  {task.description}"), BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn()
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(name, total=None)
        self._progress.start()
        self.total = 0

    def update(self, count: int) -> None:
        self._progress.update(self._task, advance=count, total=self.total)

    def reset(self) -> None:
        self._progress.reset(self._task, total=self.total)

    def close(self) -> None:
        self._progress.stop()


@contextmanager
def _download_bar(name: str, show: bool) -> Iterator[_Bar | bool]:
    if not show:
        yield False
        return
    bar = _Bar(name)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Suppress pooch's advice to record checksums of packed files."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


UNSIGNED_BYTE = 0x08


def parse_idx(content: bytes, path: Path, axes: int | None = None) -> NDArray[np.uint8]:
    """The array in an idx file; errors name `path`.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), Path("labels"))
    array([7, 8, 9], dtype=uint8)
    """
    magic = content[:4]
    if len(magic) < 4 or magic[:3] != bytes([0, 0, UNSIGNED_BYTE]) or magic[3] == 0:
        raise DataError(f"{path}: starts with {magic.hex(' ') or 'nothing'}; an idx file of bytes starts with 00 00 08")
    if axes is not None and magic[3] != axes:
        raise DataError(f"{path}: expected an idx file with {axes} axes, got {magic[3]}")
    header = 4 + 4 * magic[3]
    if len(content) < header:
        raise DataError(f"{path}: {len(content)} bytes end within the header of {header} bytes")
    shape = np.frombuffer(content[4:header], ">u4").tolist()
    expected = header + int(np.prod(shape, dtype=object))
    if len(content) != expected:
        raise DataError(f"{path}: the header promises {expected} bytes for {shape}, the file holds {len(content)}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
