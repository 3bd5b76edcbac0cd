"""A made-up record with round numbers."""

from typing import Any

from speed.shapes import SHAPES, Shape
from speed.targets import check_targets

TIMES = {
    "products": 10.0,
    "products-learnt-e": 12.0,
    "products-eval": 5.0,
    "read": 8.0,
    "ptncn-sgd": 11.0,
    "ptncn-sgd-transpose": 15.0,
    "ptncn-momentum": 12.0,
    "ptncn-rmsprop": 14.0,
    "ptncn-adam": 22.0,
    "ptncn-eval": 5.5,
    "textbook": 70.0,
    "lstm-bptt": 14.0,
}


def row(shape: Shape, what: str, ms: float) -> dict[str, Any]:
    numbers = {"ms": ms, "iqr": 0.1, "samples": 9, "steps": 5, "ratio": ms / 10.0}
    return {"shape": shape.name, "batch": shape.batch, "what": what, **numbers, "limit": "products"}


def record() -> dict[str, Any]:
    example: dict[str, Any] = {
        "machine": {
            "cpu": "A processor",
            "cores": 2,
            "threads": 2,
            "system": "Linux x86_64",
            "python": "3.11.0",
            "torch": "2.6.0",
            "ptncn": "0.1.0",
            "compiled_kernel": True,
            "date": "2020-01-01",
            "load": 0.1,
            "others": 0.01,
            "idle": True,
            "gflops": 90.0,
            "gigabytes_a_second": 25.0,
            "read_by": "torch.sum",
            "read_ms": {"torch.sum": 3.7, "torch.dot": 7.0},
        },
        "rows": [
            row(shape, what, ms / (1 if shape.units > 32 else 100)) for shape in SHAPES for what, ms in TIMES.items()
        ],
        "skipped": [{"shape": "4096-3x1000", "batch": 20, "what": "lstm-rtrl", "reason": "it needs 3.26 TB"}],
        "memory": {
            "peaks": [_memory("ptncn-sgd", 40, 110e6, 100e6)],
            "lengths": [
                _memory("ptncn-sgd", 20, 50e6, 40e6),
                _memory("ptncn-sgd", 20_000, 50.5e6, 40e6),
                _memory("lstm-bptt", 20, 30e6, 20e6),
                _memory("lstm-bptt", 5_000, 900e6, 20e6),
            ],
        },
        "growth": {
            "units": {"500": 1.0, "1000": 4.0},
            "layers": {"1": 1.0, "2": 2.0},
            "batch": {"1": 1.0, "20": 5.0},
            "exponent_units": 2.0,
            "layers_r2": 1.0,
        },
        "long": [
            {
                "what": "ptncn-sgd",
                "shape": "8-2x32",
                "batch": 1,
                "steps": 1_000_000,
                "first_ms": 0.05,
                "last_ms": 0.051,
                "denormals": 0,
                "numbers": 4000,
            }
        ],
        "generator": {"generate_ms": 3.0, "learn_ms": 500.0, "frames": 20, "share": 3 / 503},
        "options": [
            {"option": "1 thread", "shape": "8-2x32", "batch": 1, "of": "ptncn-sgd", "plain_ms": 2.0, "ms": 1.0},
            {"option": "bfloat16", "shape": "8-2x32", "batch": 1, "of": "products", "plain_ms": 2.0, "ms": 9.0},
            {"option": "torch.compile", "shape": "8-2x32", "batch": 1, "of": "ptncn-sgd", "failed": "no compiler"},
        ],
        "profile": [
            {
                "shape": "8-2x32",
                "batch": 1,
                "what": "ptncn-sgd",
                "ms": 0.1,
                "shares": {"products": 0.5, "the rest": 0.5},
            }
        ],
        "seconds": 480.0,
    }
    example["targets"] = check_targets(example)
    return example


def _memory(what: str, steps: int, peak: float, held: float) -> dict[str, Any]:
    return {"what": what, "shape": "49-2x1000", "batch": 1, "steps": steps, "peak": peak, "held": held}
