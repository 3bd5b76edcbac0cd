"""One writer a checkpoint."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from filelock import FileLock, SoftFileLock, Timeout

from ptncn.streaming.errors import StreamError


class CheckpointLock:
    """Holds `<checkpoint>.lock` while a process writes the checkpoint.

    The system lets go of the lock when the process dies, however it dies, so that nothing stale can be in the way.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, CheckpointLock(Path(folder) / "a"):
    ...     os.listdir(folder)
    ['a.lock']
    """

    def __init__(self, checkpoint: str | os.PathLike[str]) -> None:
        self.checkpoint = Path(os.path.realpath(checkpoint))
        self.path = self.checkpoint.with_name(f"{self.checkpoint.name}.lock")
        self._lock = FileLock(self.path, timeout=0)

    def __enter__(self) -> CheckpointLock:
        try:
            self._lock.acquire()
        except Timeout:
            raise StreamError(f"{self.checkpoint}: {self._holder()} is writing this checkpoint already") from None
        except OSError as error:
            raise StreamError(f"{self.path}: cannot be written: {error.strerror}") from error
        if not isinstance(self._lock, SoftFileLock):  # which keeps notes of its own in the file
            with suppress(OSError):  # Windows lets no second handle write to a locked file
                self.path.write_text(f"{os.getpid()}\n", encoding="ascii")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # Windows keeps a file that is open
            self.path.unlink()
        self._lock.release()

    def _holder(self) -> str:
        try:
            first = self.path.read_text(encoding="ascii", errors="replace").partition("\n")[0].strip()
        except OSError:
            first = ""
        return f"process {first}" if first.isdecimal() else "another process"
