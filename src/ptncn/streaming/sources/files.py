"""The bytes of a file, a compressed file or a pipe, as they come."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
import zlib
from enum import Enum
from importlib import import_module
from typing import Any

from ptncn.streaming.errors import StreamError

CHUNK = 1 << 16
READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class Event(Enum):
    """What a read gives instead of bytes."""

    SILENCE = 1
    """There is nothing yet."""
    END = 2
    """There will be nothing more."""
    ROTATED = 3
    """The file was replaced; reading continues at the beginning of the new one."""
    TRUNCATED = 4
    """The file was cut; reading continues at its beginning."""


class ByteReader:
    """Reads a file or a pipe; "-" is standard input.

    Arguments:
        follow: at the end of a file wait for more, and follow its name like `tail -F`: a file that was replaced is
            opened again, one that was cut is read from its beginning, one that is gone is waited for.
        poll: seconds to wait for more before saying that there is nothing.
    """

    def __init__(self, path: str, *, follow: bool = False, poll: float = 0.1) -> None:
        self.name = "standard input" if path == "-" else path
        self.path, self.poll = path, poll
        self._descriptor = -1
        self._descriptor = self._open(path)
        kind = os.fstat(self._descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise StreamError(f"{self.name}: expected a file, got a directory")
        self.seekable = stat.S_ISREG(kind) and path != "-"
        self.follow = follow and self.seekable
        self._silent = False

    def read(self) -> bytes | Event:
        """Some bytes, or what happened instead. The first silence is reported at once, later ones after `poll`."""
        if not self.seekable and not self._is_ready():
            return Event.SILENCE
        chunk = os.read(self._descriptor, CHUNK)
        if chunk:
            self._silent = False
            return chunk
        if not self.follow:
            return Event.END
        if self._silent:
            time.sleep(self.poll)
        self._silent = True
        return self._look_again()

    def seek(self, offset: int) -> None:
        """Only where `seekable`."""
        os.lseek(self._descriptor, offset, os.SEEK_SET)

    def switch(self, path: str) -> None:
        """Continue with the beginning of another file."""
        descriptor = self._open(path)
        os.close(self._descriptor)
        self._descriptor = descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if self.path != "-" and descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _open(self, path: str) -> int:
        try:
            return sys.stdin.fileno() if path == "-" else os.open(path, READ)
        except OSError as error:
            raise StreamError(f"{path}: cannot be opened: {error.strerror}") from error

    def _is_ready(self) -> bool:
        if sys.platform == "win32":  # where only sockets can be asked: the read waits
            return True
        ready = bool(select.select([self._descriptor], [], [], self.poll if self._silent else 0)[0])
        self._silent = not ready
        return ready

    def _look_again(self) -> Event:
        """At the end of a followed file: was it cut or replaced?"""
        here = os.fstat(self._descriptor)
        if here.st_size < os.lseek(self._descriptor, 0, os.SEEK_CUR):
            self.seek(0)
            return Event.TRUNCATED
        try:
            if os.path.samestat(os.stat(self.path), here):
                return Event.SILENCE
            if os.fstat(self._descriptor).st_size > os.lseek(self._descriptor, 0, os.SEEK_CUR):
                return Event.SILENCE  # the old file grew while we looked: first read its rest
            self.switch(self.path)
        except (FileNotFoundError, StreamError):
            return Event.SILENCE  # between two files
        return Event.ROTATED


class CompressedReader:
    """The same for the content of a `.gz` or `.zst` file, which is decompressed as it is read."""

    seekable = False

    def __init__(self, path: str, kind: str, *, poll: float = 0.1) -> None:
        self._file = ByteReader(path, poll=poll)
        self.name, self.path, self.poll, self.follow = self._file.name, path, poll, False
        self._kind = kind
        self._unpack = self._decompressor()
        self._fresh = True

    def read(self) -> bytes | Event:
        while isinstance(chunk := self._file.read(), bytes):
            try:
                data = self._decompress(chunk)
            except Exception as error:  # each library has its own
                raise StreamError(f"{self.name}: damaged {self._kind} data: {error}") from error
            if data:
                return data
        if chunk is Event.END and not self._fresh and not self._unpack.eof:
            raise StreamError(f"{self.name}: cut short: the {self._kind} data has no end")
        return chunk

    def close(self) -> None:
        self._file.close()

    def _decompress(self, chunk: bytes) -> bytes:
        """What a chunk holds, which may be several compressed streams one after another."""
        parts = []
        while chunk:
            if self._unpack.eof:
                self._unpack = self._decompressor()
            parts.append(self._unpack.decompress(chunk))
            self._fresh = False
            chunk = self._unpack.unused_data
        return b"".join(parts)

    def _decompressor(self) -> Any:
        if self._kind == "gzip":
            return zlib.decompressobj(wbits=31)
        try:
            return import_module("zstandard").ZstdDecompressor().decompressobj()
        except ImportError as error:
            raise StreamError(f"{self.name}: Zstandard needs a package: pip install 'ptncn[zstd]'") from error


COMPRESSIONS = {".gz": "gzip", ".zst": "Zstandard"}


def open_bytes(path: str, *, follow: bool = False, poll: float = 0.1) -> ByteReader | CompressedReader:
    """A reader of plain or compressed bytes, as the name says."""
    kind = COMPRESSIONS.get(os.path.splitext(path)[1].lower())
    if kind is None:
        return ByteReader(path, follow=follow, poll=poll)
    if follow:
        raise StreamError(f"{path}: a compressed file cannot be followed: it does not grow")
    return CompressedReader(path, kind, poll=poll)
