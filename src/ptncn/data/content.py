"""Reading files, unpacked where they are packed, and telling whether they are what they should be."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from enum import Enum
from pathlib import Path

import pooch

from ptncn.data.cache import cache_folder
from ptncn.data.catalog import Dataset, RemoteFile
from ptncn.data.errors import DataError
from ptncn.data.idx import parse_idx

GZIP_MAGIC = b"\x1f\x8b"


class Proof(Enum):
    """How a file was found to be right."""

    SHA256 = "verified (SHA-256)"
    MD5 = "verified (MD5 of the file as published)"
    STRUCTURE = "structure checked, no known hash"


def read_content(path: Path) -> bytes:
    """All bytes of a file, decompressed if it is a gzip file, whatever its name says."""
    return unpack(read_bytes(path), path)


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
        raise DataError(f"{path}: the gzip file is cut short or damaged: {error}") from error


def check_file(file: RemoteFile, path: Path) -> Proof:
    """How `path`, which stands for `file`, is found to be right; an error if it is not."""
    if file.sha256:
        return check_content(file, read_bytes(path), path)[1]
    digest = pooch.file_hash(str(path), alg="md5")  # in pieces: the file is too large to hold
    if digest != file.md5:
        raise DataError(f"{path}: MD5 {digest} instead of {file.md5}: not the file it should be")
    return Proof.MD5


def check_content(file: RemoteFile, raw: bytes, path: Path) -> tuple[bytes, Proof]:
    """The decompressed content of the bytes of `path`, and how it was found to be right."""
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


def read_checked(dataset: Dataset, file: RemoteFile) -> bytes:
    """The decompressed content of a file in the cache, once it is found to be right."""
    path = cache_folder() / file.path
    if not path.is_file():
        raise dataset.missing(path)
    return check_content(file, read_bytes(path), path)[0]
