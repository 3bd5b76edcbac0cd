"""Records with known numbers, so that the contents of their report are known."""

from pathlib import Path

import numpy as np

from ptncn.experiments.complexity import SCALES
from ptncn.records import Record, pack

RUN_CONFIG = {"canvas": 64, "sequences": 4_000, "epochs": 1, "layers": 3, "units": 500}


def write_record(path: Path, **changes) -> Path:
    """Write a finished run of table I with `se` on every one of 30 sequences, and `ce` ten times that."""
    se = changes.pop("se", 90.0)
    spread = np.linspace(-1, 1, 30)
    row, seed = changes.get("row", "ptncn"), changes.get("seed", 0)
    steps = list(range(1, 401))
    fields = {
        "experiment": "prediction",
        "row": row,
        "data": "mnist",
        "scale": "laptop",
        "seed": seed,
        "status": "finished",
        "command": "ptncn reproduce prediction",
        "config": {"run_config": RUN_CONFIG},
        "metrics": {"test": {"ce": 10 * se, "se": se}},
        "errors": {"test": {"se": pack(se + spread), "ce": pack(10 * (se + spread))}},
        "curve": {
            "metric": "prequential_se",
            "steps": steps,
            "mean": [se + 100 / step for step in steps],
            "faded": [se + 100 / step for step in steps],
            "changes": [[0, "bouncing-digits"]],
        },
        "films": {"test": film(seed)},
    }
    file = path / "prediction" / f"{row}-mnist-{seed}.json"
    Record(**{**fields, **changes}).write(file)
    return file


def write_plain_record(path: Path, **changes) -> Path:
    """Write a record without curves and films, which take time to draw."""
    return write_record(path, **{"curve": {}, "films": {}, **changes})


def film(seed: int) -> dict:
    """Two sequences of 20 frames of 8 × 8 pixels, and the surprise of three layers."""
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 255, (20, 2, 64), dtype=np.uint8)
    return {
        "truth": pack(frames),
        "prediction": pack(frames[::-1]),
        "surprise": pack(rng.random((20, 3))),
        "observation_shape": [8, 8],
    }


def write_complexity_record(path: Path, row: str, exponent: float) -> Path:
    """Write a run of the complexity table in which every cost grows with this exponent."""
    sizes = SCALES["laptop"].units

    def grown(grid):
        return {
            str(n): {"seconds": n**exponent, "seconds_a_step": n**exponent, "state_bytes": n, "bytes": n**2}
            for n in grid
        }

    names = ("time_exponent_units", "memory_exponent_units", "time_exponent_length", "memory_exponent_length")
    record = Record(
        experiment="complexity",
        row=row,
        data="random",
        scale="laptop",
        seed=0,
        status="finished",
        metrics={"units": grown(sizes), "length": grown((25, 50)), **dict.fromkeys(names, exponent)},
    )
    file = path / "complexity" / f"{row}-random-0.json"
    record.write(file)
    return file
