"""One writer a checkpoint."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

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
        self._descriptor = -1

    def __enter__(self) -> CheckpointLock:
        while True:
            try:
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise StreamError(f"{self.path}: cannot be written: {error.strerror}") from error
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip() or "unknown"
                os.close(self._descriptor)
                raise StreamError(f"{self.checkpoint}: process {holder} is writing this checkpoint already") from None
            if self._is_in_place():
                break
            os.close(self._descriptor)  # its last holder took the file away while we waited for it
        os.truncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self.path))
        except FileNotFoundError:
            return False
