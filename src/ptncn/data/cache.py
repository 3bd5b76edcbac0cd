"""Where datasets are kept: the folder `$PTNCN_DATA`, else the platform's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The folder that holds `mnist/`, `ptb/` and so on; it need not exist yet."""
    chosen = os.environ.get("PTNCN_DATA")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("ptncn"))
