"""Learn bouncing digits in one pass: the preset `best`, on videos of MNIST digits, in batches of 20.

    python benchmarks/video.py results/learners/video.json --seeds 3
    python benchmarks/video.py adam.json --option optimizer='"adam"' --option lr=0.0004

A seed sets the weights, the videos and their order. Settings are chosen by the validation error; `--test` also measures
the test error.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch

from ptncn import PTNCN
from ptncn.data import bouncing
from text import chosen_options, start_parser, write_record
from unlearning import errors

BATCH, CHECKED = 20, 200


def run(arguments: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    seed = options["seed"]
    train = bouncing("mnist", "train", size=arguments.videos, seed=seed)
    net = PTNCN(train.input_size, [arguments.units] * arguments.layers, output="bernoulli", **options)
    batches = train.batches(BATCH, shuffle_seed=seed)
    row = {"seed": seed, "learnt": errors(net, batches, learn=True)}
    for split in ("valid", *(["test"] if arguments.test else [])):
        row[split] = errors(net, bouncing("mnist", split, size=CHECKED, seed=seed).batches(50), learn=False)
    print(json.dumps(row), flush=True)
    return row | {"network": net.options()}


def main() -> None:
    parser = start_parser(__doc__)
    parser.add_argument("--videos", type=int, default=2000)
    parser.add_argument("--units", type=int, default=500)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, from --seed on")
    parser.add_argument("--test", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    options = chosen_options(arguments)
    rows = [run(arguments, {**options, "seed": options["seed"] + i}) for i in range(arguments.seeds)]
    network = rows[0]["network"]
    rows = [{name: value for name, value in row.items() if name != "network"} for row in rows]
    videos = {"learnt": arguments.videos, "batch_size": BATCH, "checked": CHECKED}
    write_record(arguments.out, {"videos": videos, "network": network, "rows": rows})


if __name__ == "__main__":
    main()
