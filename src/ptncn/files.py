"""Writing files so that a crash loses nothing."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a neighbour, force it to disk, and put it in place of `path` in one move."""
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
