"""Downloading datasets into the cache.

A file is downloaded beside its place, checked, and only then moved there: what is in the cache is whole. Running
again goes on where the last run stopped, because files that are there and right are left alone.
"""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pooch

from ptncn.data.cache import cache_folder
from ptncn.data.catalog import Dataset, RemoteFile
from ptncn.data.content import GZIP_MAGIC, Proof, check_file
from ptncn.data.errors import DataError

CHUNK = 1 << 16
TIMEOUT = 30
"""Seconds without an answer after which the next mirror is tried."""


def fetch(
    dataset: Dataset,
    *,
    replace: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> None:
    """Bring every file of the dataset into the cache.

    A file in the cache that is not what it should be is somebody's: it stays, and is an error, unless `replace`.
    `progress` shows a bar for each download; `tell` gets a line for each file.
    """
    for file in dataset.files:
        path = cache_folder() / file.path
        if path.exists() and not replace:
            proof = _check_present(file, path)
            tell(f"{path}: there already, {proof.value}")
        else:
            proof = _download(file, path, progress, tell)
            tell(f"{path}: fetched, {proof.value}")


def _check_present(file: RemoteFile, path: Path) -> Proof:
    try:
        return check_file(file, path)
    except DataError as error:
        raise DataError(f"{error}. It is left as it is; --replace downloads it anew") from error


def _download(file: RemoteFile, path: Path, progress: bool, tell: Callable[[str], None]) -> Proof:
    """From the first mirror that has the right content."""
    new_folder = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        workshop = Path(tempfile.mkdtemp(prefix=".fetch-", dir=path.parent))
    except OSError as error:
        raise DataError(
            f"{path.parent}: cannot be written: {error.strerror or error}. Set PTNCN_DATA to a folder that can"
        ) from error
    failures = []
    try:
        for url in file.urls:
            try:
                return _take(file, url, workshop / path.name, path, progress)
            except (DataError, OSError) as error:  # what requests raises is an OSError too
                reason = str(error).removeprefix(f"{workshop / path.name}: ")
                failures.append(f"{url}: {reason}")
                tell(f"{url}: failed: {reason}")
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
        if new_folder and not any(path.parent.iterdir()):
            path.parent.rmdir()
    raise DataError(f"{path}: no mirror gave the right file: {'; '.join(failures)}")


def _take(file: RemoteFile, url: str, part: Path, path: Path, progress: bool) -> Proof:
    """Download to `part`, check it, pack it as the cache has it, and move it to `path`."""
    part.unlink(missing_ok=True)
    downloader = pooch.HTTPDownloader(progressbar=progress, chunk_size=CHUNK, timeout=TIMEOUT)
    with _quiet_pooch():
        pooch.retrieve(url, known_hash=None, fname=part.name, path=part.parent, downloader=downloader)
    proof = check_file(file, part)
    if path.suffix == ".gz":
        content = part.read_bytes()
        if not content.startswith(GZIP_MAGIC):
            part.write_bytes(gzip.compress(content, mtime=0))
    os.replace(part, path)
    return proof


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Without its advice to record checksums of packed files."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
