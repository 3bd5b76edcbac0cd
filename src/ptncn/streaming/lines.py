"""Lines of a file or a pipe as bytes, with their numbers and offsets, in bounded memory."""

from __future__ import annotations

import hashlib
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ptncn.streaming.errors import RowError, StreamError
from ptncn.streaming.source import nothing

CHUNK = 1 << 16


class Line(NamedTuple):
    number: int
    """From 1."""
    start: int
    """Offset of its first byte."""
    end: int
    """Offset of the byte after it and its line break."""
    data: bytes


class LineReader:
    """Reads lines one by one; "-" is standard input.

    Arguments:
        follow: at the end of the file wait for more, and take no line before its line break is there.
        longest: bytes that a line may have. A longer one is a `RowError` and never held in memory.
        poll: seconds between two looks at a file that is followed, or at a pipe that is silent.

    The system's buffered files do not tell whether the next read will wait, and `idle` must be called before it does.
    """

    def __init__(self, path: str, *, follow: bool = False, longest: int = 1_000_000, poll: float = 0.1) -> None:
        self.name = "standard input" if path == "-" else path
        self.path, self.follow, self.longest, self.poll = path, follow, longest, poll
        self.idle: Callable[[], None] = nothing
        try:
            self._descriptor = sys.stdin.fileno() if path == "-" else os.open(path, os.O_RDONLY)
        except OSError as error:
            raise StreamError(f"{self.name}: cannot be opened: {error.strerror}") from error
        kind = os.fstat(self._descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise StreamError(f"{self.name}: a directory; a file would be right")
        self.seekable = stat.S_ISREG(kind) and path != "-"
        self._buffer = bytearray()
        self._at = 0  # of the first byte in the buffer that no line has taken yet
        self._offset = 0  # the same, counted from the beginning of the file
        self._number = 0
        self._ended = False

    def close(self) -> None:
        if self.path != "-":
            os.close(self._descriptor)

    def read(self) -> Line | None:
        """The next line, or None at the end."""
        start, searched = self._offset, self._at
        while (found := self._buffer.find(b"\n", searched)) < 0 and len(self._buffer) - self._at <= self.longest:
            searched = len(self._buffer)
            taken = searched - self._at
            if not self._fill():
                if not taken:
                    return None
                found = len(self._buffer) - 1
                break
            searched = self._at + taken
        if found < 0 or found - self._at > self.longest:
            self._discard()
            raise RowError(
                self.name, self._number, f"longer than {self.longest:,} bytes; is a line break or a quote missing?"
            )
        data = bytes(self._buffer[self._at : found + 1])
        self._at = found + 1
        self._offset += len(data)
        self._number += 1
        return Line(self._number, start, self._offset, data)

    def peek(self) -> bytes:
        """What comes next, as far as it was read already; nothing only at the end."""
        while self._at == len(self._buffer) and self._fill():
            pass
        return bytes(self._buffer[self._at :])

    def position_after(self, line: Line | None) -> dict[str, Any]:
        """Where to go on, and the mark of the last line, by which `seek` knows the source again."""
        if line is None:
            return {"number": 0, "start": 0, "end": 0, "mark": ""}
        return {"number": line.number, "start": line.start, "end": line.end, "mark": _mark(line.data)}

    def seek(self, position: Mapping[str, Any]) -> Line | None:
        """Go to where the last line ended, past all before it if the source cannot jump; that line."""
        if not position["number"]:
            return None
        self._skip_to(position["start"])
        self._offset, self._number = position["start"], position["number"] - 1
        line = self.read()
        if line is None or line.end != position["end"] or _mark(line.data) != position["mark"]:
            raise StreamError(
                f"{self.name}: line {position['number']}, the last that the checkpoint knows, is another one now: "
                f"--resume wants the same source, unchanged up to there"
            )
        return line

    def continue_at(self, position: Mapping[str, Any]) -> None:
        """Count on from a position without skipping anything: a live pipe goes on by itself."""
        self._offset, self._number = position["end"], position["number"]

    def _skip_to(self, start: int) -> None:
        if self.seekable:
            os.lseek(self._descriptor, start, os.SEEK_SET)
            self._buffer, self._at = bytearray(), 0
            return
        left = start
        while left:
            if self._at == len(self._buffer) and not self._fill():
                raise StreamError(f"{self.name}: ends before byte {start:,}, where the checkpoint was made")
            step = min(left, len(self._buffer) - self._at)
            self._at += step
            left -= step

    def _discard(self) -> None:
        """Drop the rest of a line without keeping it."""
        while True:
            found = self._buffer.find(b"\n", self._at)
            if found >= 0:
                self._offset += found + 1 - self._at
                self._at = found + 1
                break
            self._offset += len(self._buffer) - self._at
            self._at = len(self._buffer)
            if not self._fill():
                break
        self._number += 1

    def _fill(self) -> bool:
        """Read more behind what is in the buffer, waiting if need be; False at the end."""
        del self._buffer[: self._at]
        self._at = 0
        while not self._ended:
            if not self.seekable and not select.select([self._descriptor], [], [], 0)[0]:
                self.idle()
                while not select.select([self._descriptor], [], [], self.poll)[0]:
                    self.idle()
            chunk = os.read(self._descriptor, CHUNK)
            if chunk:
                self._buffer += chunk
                return True
            if not self.follow or not self.seekable:
                self._ended = True
                break
            self.idle()
            time.sleep(self.poll)
            self._check_same_file()
        return False

    def _check_same_file(self) -> None:
        """A file that was cut or replaced has nothing more to follow."""
        read = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        if os.fstat(self._descriptor).st_size < read:
            raise StreamError(f"{self.name}: became shorter than the {read:,} bytes that were read; it was cut")
        try:
            replaced = not os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except FileNotFoundError:
            raise StreamError(f"{self.name}: was removed after line {self._number}") from None
        if replaced:
            raise StreamError(f"{self.name}: was replaced by another file after line {self._number}")


def _mark(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
