"""The effect of one small batch of long sentences on a network for text, for each way to reduce updates over a batch.

    python benchmarks/odd_batch.py results/stability/odd-batch.json

The network learns 0.6 million characters of Penn Treebank, then the batch left over at the end of an epoch: 18
sentences, the longest of their bucket. It is validated on the first 1,000 sentences before that batch, after it, and
after ten more normal batches.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import torch

from ptncn import PTNCN
from ptncn.data import penn_treebank
from text import BATCH, Reader, chosen_options, start_parser, write_record
from unlearning import errors

CHARACTERS, CHECKED, MORE, EPOCH = 600_000, 1_000, 10, 4


def run(options: dict[str, Any]) -> dict[str, Any]:
    train, valid = penn_treebank("train"), penn_treebank("valid")
    net = PTNCN(49, [600], output="categorical", **options)
    reader = Reader(train, options["seed"], bucket=50)
    odd = [batch for batch in train.batches(BATCH, shuffle_seed=0, epoch=EPOCH) if batch.x.shape[1] < BATCH]

    def check() -> float:
        batches = (valid.batch(range(i, i + BATCH)) for i in range(0, CHECKED, BATCH))
        return round(errors(net, batches, learn=False)["bpc"], 4)

    errors(net, reader.until(CHARACTERS), learn=True)
    row = {"reduction": net.config.reduction, "before": check()}
    errors(net, iter(odd), learn=True)
    row["after"] = check()
    errors(net, islice(reader.batches, MORE), learn=True)
    row["after_more"] = check()
    print(row, flush=True)
    return row | {"rows": odd[0].x.shape[1], "steps": len(odd[0].x)}


def main() -> None:
    arguments = start_parser(__doc__).parse_args()
    torch.set_num_threads(1)
    options = chosen_options(arguments, memory=128)
    rows = [run({**options, "reduction": reduction}) for reduction in ("mean", "sum")]
    content = {"characters": CHARACTERS, "validated": CHECKED, "more_batches": MORE, "reductions": rows}
    write_record(arguments.out, content)


if __name__ == "__main__":
    main()
