"""Flip every bit of a small network's checkpoint, one at a time: none of the files may load."""

from __future__ import annotations

import tempfile
import time
from io import BytesIO
from pathlib import Path

import torch
from common import parser, record

import ptncn
from ptncn.checkpoint_file import decode


def main() -> None:
    options = parser(__doc__, 0).parse_args()
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.ckpt"
        network = ptncn.PTNCN(3, [4], optimizer="adam", seed=options.seed)
        state = network.begin(2)
        for x in torch.rand(5, 2, 3, generator=torch.Generator().manual_seed(options.seed)):
            network.step(x, state)
        ptncn.save(path, network, state, {"log": [1, None, "é"]})
        data = path.read_bytes()
    refused = 0
    bits = 8 * len(data) if options.count == 0 else options.count
    for bit in range(bits):
        altered = bytearray(data)
        altered[bit // 8] ^= 1 << bit % 8
        try:
            decode(BytesIO(altered), len(altered))
        except ptncn.CheckpointError:
            refused += 1
    record("bits", options, {"bytes": len(data), "flips": bits, "refused": refused}, started)


if __name__ == "__main__":
    main()
