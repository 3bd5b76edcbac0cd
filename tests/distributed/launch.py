"""Start ranks as torchrun does, and read what they print."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from torch.distributed import TCPStore

HERE = Path(__file__).parent


def ranks(count: int, program: str, *arguments: str, timeout: float = 300.0) -> list[tuple[int, str, str]]:
    """Run tests/distributed/`program` on `count` ranks: for each its exit code, output and errors."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # ours, so that nobody takes its port
    common = {
        "WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    started = [
        subprocess.Popen(
            [sys.executable, str(HERE / program), *arguments],
            env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        said = [process.communicate(timeout=timeout) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [(process.returncode, *words) for process, words in zip(started, said, strict=True)]
