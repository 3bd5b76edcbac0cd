"""Compare the time to generate bouncing video with the time a 4,096 → 3 × 1,000 P-TNCN takes to learn from it.

python benchmarks/data.py --images mnist
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from ptncn.data import BouncingVideo, bouncing
from ptncn.network import PTNCN


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """The median time, after one round to warm up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times[1:])


def measure(video: BouncingVideo, network: PTNCN, batch_size: int) -> tuple[float, float]:
    """Milliseconds to generate a batch, and to learn from it."""
    batches = video.batches(batch_size, shuffle_seed=0)
    x = video.batch(range(batch_size)).x

    def learn() -> None:
        state = network.begin(batch_size)
        for frame in x:
            network.step(frame, state)
        network.end(state)

    return milliseconds(lambda: next(batches), 100), milliseconds(learn, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", default="shapes", help="the objects; default: mnist if it is in the cache")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    video = bouncing(options.images, size=10_000)
    network = PTNCN(video.input_size, [1000, 1000, 1000])
    print(f"{options.threads} threads, {options.images}")
    print(f"{'batch':>5}  {'generate ms':>11}  {'learn ms':>8}  {'share':>6}")
    for batch_size in (1, 20):
        generating, learning = measure(video, network, batch_size)
        print(f"{batch_size:>5}  {generating:>11.2f}  {learning:>8.0f}  {generating / learning:>6.2%}")


if __name__ == "__main__":
    main()
