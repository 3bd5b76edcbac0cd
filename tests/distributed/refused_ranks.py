"""A rank that differs from the others in one respect after another, and prints each error."""

from __future__ import annotations

import json

import torch

import ptncn
from ptncn import PTNCN
from ptncn.cli.train import RankGroup
from ptncn.distributed import DataParallel, LayerParallel, RanksError, connect


def changed(net: PTNCN, by: int) -> PTNCN:
    with torch.no_grad():
        net.get_parameter("W1").add_(by)
    return net


with connect() as ranks:
    second = ranks.rank == 1

    def versions() -> None:
        version, ptncn.__version__ = ptncn.__version__, "9.9" if second else "0.1"
        try:
            DataParallel(PTNCN(3, [4]), ranks)
        finally:
            ptncn.__version__ = version

    attempts = {
        "weights": lambda: DataParallel(changed(PTNCN(3, [4]), by=ranks.rank), ranks),
        "options": lambda: DataParallel(PTNCN(3, [4], lr=0.1 if second else 0.2), ranks),
        "versions": versions,
        "split": lambda: DataParallel(PTNCN(3, [4]), ranks, split="rows" if second else "units"),
        "data": lambda: RankGroup(ranks, "units").share(PTNCN(3, [4]), "0a1b2c" if second else "3d4e5f"),
        "too few layers": lambda: LayerParallel(PTNCN(3, [4]), ranks),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except RanksError as error:
            print(json.dumps([name, str(error)]), flush=True)
