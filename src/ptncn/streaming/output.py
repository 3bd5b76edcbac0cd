"""Where lines go: a file that can be cut back to a checkpoint, or standard output."""

from __future__ import annotations

import os
import stat
import sys

from ptncn.streaming.errors import OutputError, StreamError

BATCH = 1 << 16


class Output:
    """Collects lines and writes them in batches. `length` counts the bytes that were really written.

    Arguments:
        path: None is standard output.
        resume_at: continue in an existing file after so many bytes, and drop what is behind them.
    """

    def __init__(self, path: str | None, *, resume_at: int | None = None) -> None:
        self.name = path or "standard output"
        self.length = resume_at or 0
        self._pending: list[str] = []
        self._size = 0
        self._owned = path is not None
        try:
            self._descriptor = self._open(path, resume_at)
        except OSError as error:
            raise StreamError(f"{self.name}: cannot be written: {error.strerror}") from error
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def write(self, line: str) -> None:
        self._pending.append(line)
        self._size += len(line)
        if self._size >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the system; an error leaves `length` at what was taken."""
        data = memoryview("".join(self._pending).encode())
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
        """Flush, and wait until it is on the disk."""
        self.flush()
        if self._regular:
            os.fsync(self._descriptor)

    def close(self) -> None:
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
