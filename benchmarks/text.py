"""Learn Penn Treebank in one pass, with validation: the preset `best` with a trace memory.

    python benchmarks/text.py results/learners/text.json
    python benchmarks/text.py immediate.json --characters 600000 --option credit='"immediate"'

Characters are counted without padding. Sentences are shuffled and put into batches of 50. The network is validated on
all validation sentences, and on the first 400, which are harder.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import ptncn
from ptncn import PTNCN
from ptncn.data import penn_treebank
from ptncn.data.sequences import Batch
from ptncn.data.text import Text
from ptncn.system import write_atomically
from unlearning import errors

BATCH = 50


class Reader:
    """Shuffled sentences, in parts that end at these numbers of observed characters."""

    def __init__(self, text: Text, seed: int, bucket: int) -> None:
        self.batches = text.batches(BATCH, shuffle_seed=seed, bucket=bucket)
        self.characters = self.steps = 0

    def until(self, characters: int) -> Iterator[Batch]:
        while self.characters < characters and (batch := next(self.batches, None)) is not None:
            assert batch.mask is not None
            yield batch
            self.characters += int(batch.mask.sum())
            self.steps += len(batch.x)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    options, train, valid = arguments.options, penn_treebank("train"), penn_treebank("valid")
    reader, checked = Reader(train, options["seed"], arguments.bucket), {"valid": len(valid), "valid_400": 400}
    net = PTNCN(49, [arguments.units], output="categorical", **options)
    curve, began = [], time.perf_counter()
    for mark in sorted(arguments.characters):
        learnt = errors(net, reader.until(mark), learn=True)
        row = {"characters": reader.characters, "steps": reader.steps, "learnt_bpc": round(learnt["bpc"], 4)}
        for name, sentences in checked.items():
            batches = (valid.batch(range(i, min(i + BATCH, sentences))) for i in range(0, sentences, BATCH))
            row[f"{name}_bpc"] = round(errors(net, batches, learn=False)["bpc"], 4)
        curve.append(row | {"seconds": round(time.perf_counter() - began, 1)})
        print(json.dumps(curve[-1]), flush=True)
    return {
        "sentences": {"batch_size": BATCH, "bucket": arguments.bucket, "shuffle_seed": options["seed"]},
        "valid_sentences": checked,
        "network": net.options(),
        "curve": curve,
    }


def start_parser(about: str | None) -> argparse.ArgumentParser:
    """Arguments of the scripts that train the preset `best` once."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="where to write the record")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--option", action="append", default=[], help="NAME=JSON, an option of the network")
    return parser


def chosen_options(arguments: argparse.Namespace, **defaults: Any) -> dict[str, Any]:
    """Options of the network: the preset and the changes of the command line."""
    texts = dict(option.split("=", 1) for option in arguments.option)
    chosen = {name: json.loads(value) for name, value in texts.items()}
    return {"preset": "best", "seed": arguments.seed, **defaults, **chosen}


def write_record(path: Path, content: dict[str, Any]) -> None:
    record = {
        "command": shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "versions": {"ptncn": ptncn.__version__, "torch": torch.__version__, "python": platform.python_version()},
        **content,
    }
    write_atomically(path, f"{json.dumps(record, indent=1)}\n".encode())


def main() -> None:
    parser = start_parser(__doc__)
    parser.add_argument("--units", type=int, default=600)
    parser.add_argument("--characters", type=int, nargs="+", default=[600_000, 1_000_000, 2_000_000, 3_000_000, 10**9])
    parser.add_argument("--bucket", type=int, default=50, help="number of batches that are sorted by length together")
    arguments = parser.parse_args()
    arguments.options = chosen_options(arguments, memory=128)
    torch.set_num_threads(1)
    write_record(arguments.out, run(arguments))


if __name__ == "__main__":
    main()
