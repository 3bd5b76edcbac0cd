"""Read lines of a file, a compressed file or a pipe as they arrive, with their byte offsets."""

from __future__ import annotations

import hashlib
import os
import select
import stat
import sys
import time
import zlib
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import Any, NamedTuple

from ptncn.streaming.sources import RowError, StreamError

CHUNK = 1 << 16
READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class Event(Enum):
    """Results of a read that returned no bytes."""

    SILENCE = 1
    """Nothing is available yet."""
    END = 2
    """The input has ended."""
    ROTATED = 3
    """The file was replaced; reading continues at the beginning of the new one."""
    TRUNCATED = 4
    """The file was truncated; reading continues at its beginning."""


class ByteReader:
    """Reads a file or a pipe; "-" is standard input.

    Arguments:
        follow: at the end of a file, wait for more and follow its name like `tail -F`: reopen a replaced file, read a
            truncated one from its start, and wait for a missing one.
        poll: seconds to wait for more data before reporting that there is none.
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
        """Some bytes, or an event. The first read without data returns at once, later ones after `poll` seconds."""
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
        return self._check_file()

    def seek(self, offset: int) -> None:
        """Only if `seekable`."""
        os.lseek(self._descriptor, offset, os.SEEK_SET)

    def switch(self, path: str) -> None:
        """Continue at the start of another file."""
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
        if sys.platform == "win32":  # on systems that can poll only sockets, the read itself blocks
            return True
        ready = bool(select.select([self._descriptor], [], [], self.poll if self._silent else 0)[0])
        self._silent = not ready
        return ready

    def _check_file(self) -> Event:
        """At the end of a followed file: check whether it was truncated or replaced."""
        here = os.fstat(self._descriptor)
        if here.st_size < os.lseek(self._descriptor, 0, os.SEEK_CUR):
            self.seek(0)
            return Event.TRUNCATED
        try:
            if os.path.samestat(os.stat(self.path), here):
                return Event.SILENCE
            if os.fstat(self._descriptor).st_size > os.lseek(self._descriptor, 0, os.SEEK_CUR):
                return Event.SILENCE  # the old file has grown: read its rest first
            self.switch(self.path)
        except (FileNotFoundError, StreamError):
            return Event.SILENCE  # the old file is gone, and the new one does not exist yet
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
            except Exception as error:  # each library raises its own kind of error
                raise StreamError(f"{self.name}: damaged {self._kind} data: {error}") from error
            if data:
                return data
        if chunk is Event.END and not self._fresh and not self._unpack.eof:
            raise StreamError(f"{self.name}: cut short: the {self._kind} data has no end")
        return chunk

    def close(self) -> None:
        self._file.close()

    def _decompress(self, chunk: bytes) -> bytes:
        """Decompress a chunk, which may contain several concatenated streams."""
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
    """A reader of plain or compressed bytes, by the file name."""
    kind = COMPRESSIONS.get(os.path.splitext(path)[1].lower())
    if kind is None:
        return ByteReader(path, follow=follow, poll=poll)
    if follow:
        raise StreamError(f"{path}: a compressed file cannot be followed")
    return CompressedReader(path, kind, poll=poll)


class Line(NamedTuple):
    number: int
    """From 1."""
    start: int
    """Offset of its first byte."""
    end: int
    """Offset of the byte after it and its line break."""
    data: bytes

    def decode(self, source: str) -> str:
        try:
            return self.data.decode("utf-8-sig" if self.start == 0 else "utf-8")
        except UnicodeDecodeError as error:
            bad = self.data[error.start]
            raise RowError(
                source, self.number, f"byte {error.start + 1} of the line, 0x{bad:02x}, is not UTF-8"
            ) from error


class LineReader:
    """Reads lines in blocks; "-" is standard input.

    Arguments:
        follow: at the end of the file, wait for more, across rotation and truncation; a line is returned only once it
            is complete.
        longest: maximum bytes of a line. A longer one is a `RowError` and is never held in memory.
        poll: seconds between checks of a followed file or a silent pipe.
    """

    def __init__(self, path: str, *, follow: bool = False, longest: int = 1_000_000, poll: float = 0.1) -> None:
        self._bytes = open_bytes(path, follow=follow, poll=poll)
        self.name, self.longest = self._bytes.name, longest
        self._buffer = b""
        self._at = 0  # the first unread byte in the buffer
        self._offset = 0  # its offset in the file
        self._number = 0
        self._state: Event | None = None
        """END once there is no more data; ROTATED while the last line of the old file is unread."""

    def close(self) -> None:
        self._bytes.close()

    def read(self, most: int) -> list[Line] | None:
        """Up to `most` lines that are available without waiting; [] if there are none yet, None at the end."""
        lines: list[Line] = []
        while len(lines) < most:
            line_break = self._buffer.find(b"\n", self._at)
            if line_break >= 0 and line_break - self._at <= self.longest:
                lines.append(self._take(line_break + 1))
                continue
            if lines:
                if self._state is not None or len(self._buffer) - self._at > self.longest or line_break >= 0:
                    break
                if self._fill() is not None:
                    break  # return these lines without waiting for more
                continue
            if line_break >= 0 or len(self._buffer) - self._at > self.longest:
                self._discard()
                raise RowError(
                    self.name, self._number, f"longer than {self.longest:,} bytes; is a line break or a quote missing?"
                )
            if self._state is None and self._fill() is Event.SILENCE:
                return []
            if self._state is not None:
                if self._at < len(self._buffer):
                    lines.append(self._take(len(self._buffer)))
                if self._state is Event.ROTATED:
                    self._restart()
                elif not lines:
                    return None
        return lines

    def peek(self) -> bytes:
        """The next bytes in the buffer; empty only at the end."""
        while self._at == len(self._buffer) and self._state is None:
            self._fill()
        return self._buffer[self._at :]

    def position_after(self, line: Line | None) -> dict[str, Any]:
        """Where to continue, with a fingerprint of the last line that lets `seek` recognise the source."""
        if line is None:
            return {"number": 0, "start": 0, "end": 0, "mark": ""}
        return {"number": line.number, "start": line.start, "end": line.end, "mark": _mark(line.data)}

    def seek(self, position: Mapping[str, Any], *, live: bool = False) -> Line | None:
        """Go to the end of the last line, reading everything before it if the source cannot seek, and return that line.

        With `live`, continue counting from there without skipping anything.
        """
        if live:
            self._offset, self._number = position["end"], position["number"]
            return None
        if not position["number"]:
            return None
        line = self._find(position)
        if line is None and self._bytes.follow and isinstance(self._bytes, ByteReader):
            line = self._find_in_rotated(self._bytes, position)
        if line is None:
            raise StreamError(
                f"{self.name}: line {position['number']}, the last one in the checkpoint, has changed: "
                f"--resume needs the same source, unchanged up to that line"
            )
        return line

    def _find(self, position: Mapping[str, Any]) -> Line | None:
        """The last line of a position, if it is still there."""
        self._skip_to(position["start"])
        self._offset, self._number = position["start"], position["number"] - 1
        try:
            lines = self.read(1)
        except RowError:
            return None
        if lines and lines[0].end == position["end"] and _mark(lines[0].data) == position["mark"]:
            return lines[0]
        return None

    def _find_in_rotated(self, file: ByteReader, position: Mapping[str, Any]) -> Line | None:
        """The file was rotated while the stream was stopped: read the rest of `<name>.1` first."""
        try:
            file.switch(f"{file.path}.1")
        except StreamError:
            return None
        return self._find(position)

    def _skip_to(self, start: int) -> None:
        if isinstance(self._bytes, ByteReader) and self._bytes.seekable:
            self._bytes.seek(start)
            self._buffer, self._at, self._state = b"", 0, None
            return
        left = start
        while left:
            if self._at == len(self._buffer):
                self._fill()
                if self._state is not None and self._at == len(self._buffer):
                    raise StreamError(f"{self.name}: ends before byte {start:,}, where the checkpoint was made")
            step = min(left, len(self._buffer) - self._at)
            self._at += step
            left -= step

    def _take(self, end: int) -> Line:
        data = self._buffer[self._at : end]
        start, self._at = self._offset, end
        self._offset += len(data)
        self._number += 1
        return Line(self._number, start, self._offset, data)

    def _discard(self) -> None:
        """Skip the rest of a line without storing it."""
        while (line_break := self._buffer.find(b"\n", self._at)) < 0 and self._state is None:
            self._offset += len(self._buffer) - self._at
            self._at = len(self._buffer)
            self._fill()
        end = line_break + 1 if line_break >= 0 else len(self._buffer)
        self._offset += end - self._at
        self._at = end
        self._number += 1

    def _fill(self) -> Event | None:
        """Append more bytes to the buffer; return the event that occurred instead, if any."""
        chunk = self._bytes.read()
        if isinstance(chunk, bytes):
            self._buffer = self._buffer[self._at :] + chunk
            self._at = 0
            return None
        if chunk is Event.TRUNCATED:
            self._buffer, self._at = b"", 0
            self._restart()
        elif chunk is not Event.SILENCE:
            self._state = chunk
        return chunk

    def _restart(self) -> None:
        self._state, self._offset, self._number = None, 0, 0


def _mark(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
