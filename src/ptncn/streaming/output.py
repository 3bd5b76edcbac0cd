"""The output of a stream: a file that a resumed run continues at the right byte, or standard output."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from concurrent.futures import Future, wait

from ptncn.streaming.sources import StreamError
from ptncn.system import in_background


class OutputError(OSError):
    """The output cannot be written. Lines were lost, so no checkpoint may count them as written."""


BATCH = 1 << 16


class Output:
    """Collects lines and writes them in batches; `length` counts the bytes written.

    Arguments:
        path: the file; None for standard output.
        resume_at: continue an existing file after this many bytes, and remove the rest.
    """

    def __init__(self, path: str | None, *, resume_at: int | None = None) -> None:
        self.name = path or "standard output"
        self.length = resume_at or 0
        self._pending: list[bytes] = []
        self._size = 0
        self._working: Future[None] | None = None
        self._owned = path is not None
        try:
            self._descriptor = self._open(path, resume_at)
        except OSError as error:
            raise StreamError(f"{self.name}: cannot be written: {error.strerror}") from error
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def write(self, text: str | bytes) -> None:
        """Take text or UTF-8."""
        self._wait()
        self._add(text)

    def write_later(self, make: Callable[[], str | bytes]) -> None:
        """Make and take the text in the background. The next call raises its error, if any."""
        self._wait()
        self._working = in_background(lambda: self._add(make()))

    def flush(self) -> None:
        """Write everything; after an error, `length` counts the bytes that were written."""
        self._wait()
        self._write()

    def _add(self, text: str | bytes) -> None:
        self._pending.append(text.encode() if isinstance(text, str) else text)
        self._size += len(self._pending[-1])
        if self._size >= BATCH:
            self._write()

    def _wait(self) -> None:
        """Wait for work in the background."""
        working, self._working = self._working, None
        if working is not None:
            working.result()

    def _write(self) -> None:
        data = memoryview(b"".join(self._pending))
        self._pending, self._size = [], 0
        while data:
            try:
                written = os.write(self._descriptor, data)
            except BrokenPipeError:
                raise
            except OSError as error:
                raise OutputError(f"{self.name}: cannot be written: {error.strerror}") from error
            self.length += written
            data = data[written:]

    def sync(self) -> None:
        """Flush and sync to disk."""
        self.flush()
        if self._regular:
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._working is not None:
            wait([self._working])  # after an error too: nothing may write to a file descriptor that is reused
        if self._owned:
            os.close(self._descriptor)

    def _open(self, path: str | None, resume_at: int | None) -> int:
        if path is None:
            sys.stdout.flush()
            return sys.stdout.fileno()
        if resume_at is None:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            size = os.fstat(descriptor).st_size
            if size < resume_at:
                os.close(descriptor)
                raise StreamError(
                    f"{path}: {size:,} bytes; the checkpoint was made after {resume_at:,}: the file was cut or replaced"
                )
            os.ftruncate(descriptor, resume_at)
            os.lseek(descriptor, resume_at, os.SEEK_SET)
        return descriptor
