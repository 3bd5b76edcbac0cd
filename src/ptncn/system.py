"""Memory, processors, signals and atomic writes, on every operating system.

psutil is imported only where it is called: loading a checkpoint or learning from a stream does not need it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")

CGROUP = Path("/sys/fs/cgroup")
STATUS = Path("/proc/self/status")

ENDINGS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name))
"""Signals that ask a process to end: Ctrl-C, `kill`, and Ctrl-Break on Windows."""


def available_memory() -> int:
    """Bytes that this process can still allocate, within the limits of the system and the container."""
    import psutil

    system = int(psutil.virtual_memory().available)
    try:
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return system
    return min(system, max(0, limit - used))


def resident_memory(process: int | None = None) -> int:
    """Resident memory of a process in bytes, by default of this one."""
    import psutil

    return int(psutil.Process(process).memory_info().rss)


def peak_memory() -> int:
    """Peak resident memory of this process in bytes, since `reset_peak_memory` where that is supported."""
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):  # unlike `getrusage`, this excludes the memory of the parent before the fork
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak_memory() -> None:
    """Make `peak_memory` count from now on, if the system supports it (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""Options of `mallopt` in glibc."""


def keep_freed_memory(largest: int = 8 << 20, most: int = 64 << 20) -> None:
    """Let the process keep up to `most` freed bytes, in pieces of up to `largest`, if the C library supports this.

    Work in blocks allocates the same few megabytes again and again. By default glibc returns them to the system each
    time, and the page faults of the next block take as long as its computations.
    """
    with suppress(OSError, AttributeError, TypeError):  # no glibc
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, largest)
        library.mallopt(TRIM_THRESHOLD, most)


def busy_seconds() -> float:
    """Processor seconds of all cores since the system started, without idle time and waiting for disks."""
    import psutil

    times: dict[str, Any] = psutil.cpu_times()._asdict()
    apart = ("idle", "iowait", "guest", "guest_nice")  # user and nice include the guests already
    return float(sum(seconds for name, seconds in times.items() if name not in apart))


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processors() -> int:
    """Number of threads that computations may use: OMP_NUM_THREADS if it is set, otherwise all usable cores."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdecimal() and int(limit) > 0 else usable_cores()


@cache
def _helpers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(usable_cores(), thread_name_prefix="ptncn")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads stay with the parent


def in_background(call: Callable[[], Result]) -> Future[Result]:
    """Start a call in the thread pool of `side_by_side`; one such call at a time leaves enough threads for it."""
    return _helpers().submit(call)


def side_by_side(parts: int, call: Callable[[int], Result]) -> list[Result]:
    """The results of call(0), …, call(parts − 1): the first in this thread, the others in a pool of threads.

    Only calls that release the interpreter lock run in parallel.

    >>> side_by_side(3, lambda part: part * part)
    [0, 1, 4]
    """
    others = [_helpers().submit(call, part) for part in range(1, parts)]
    try:
        first = call(0)
    finally:
        wait(others)  # they may write to memory that the caller frees
    return [first, *(other.result() for other in others)]


def one_line(error: BaseException) -> str:
    """The message of an error on one line, or its type if it has none.

    >>> one_line(ValueError("expected 3 columns,\\n  got 4"))
    'expected 3 columns, got 4'
    """
    return " ".join(str(error).split()) or type(error).__name__


def in_words(size: float) -> str:
    """
    >>> in_words(163_104_000_000)
    '163 GB'
    >>> in_words(4_096)
    '4.10 kB'
    """
    units = iter(("bytes", "kB", "MB", "GB", "TB", "PB"))
    unit = next(units)
    while size >= 999.5 and unit != "PB":
        size, unit = size / 1000, next(units)
    digits = 0 if unit == "bytes" or size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{size:,.{digits}f} {unit}"


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary file, sync it to disk, and move it to `path`, or to the target of that link."""
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: cannot be written, there is no folder {path.parent}")
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Sync the new name to disk too, where folders can be opened (not on Windows)."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def end_with_parent(code: int) -> None:
    """Exit with `code` when the parent process has ended, even while this one waits in C code."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(code)

    threading.Thread(target=watch, daemon=True).start()
