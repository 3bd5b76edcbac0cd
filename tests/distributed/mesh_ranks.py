"""Two ranks: large messages both ways at once, sums in the order of ranks, and one rank that ends before the other."""

from __future__ import annotations

import json
import os

import torch

from ptncn.distributed import RanksError, connect

with connect() as ranks:
    own = torch.full((1, 4_000_000), float(ranks.rank + 1))  # far more than a socket's buffer holds
    gathered = ranks.gather_rows(own, 2)
    ranks.arrive()
    print(json.dumps([gathered[:, 0].tolist(), gathered[:, -1].tolist()]))
    print(json.dumps(ranks.add_up(torch.tensor([0.1 * (ranks.rank + 1)], dtype=torch.float64)).tolist()))
    print(json.dumps(ranks.any(ranks.rank == 1, False)), flush=True)
    if ranks.rank == 1:
        os._exit(0)
    try:
        ranks.any(True)
    except RanksError as error:
        print(json.dumps([str(error), ranks.lost]), flush=True)
    os._exit(0)
