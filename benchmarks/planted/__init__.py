"""Random series of the kinds in the Numenta Anomaly Benchmark, with planted anomalies.

Each generator draws a normal series, including its usual spikes, and adds anomalies. Some of them are impossible to
detect.
"""

from __future__ import annotations

import numpy as np

from nab_score import File, probation
from planted import machines, world
from planted.parts import Draw, Make, Places

Series = list[tuple[Make, int, int, list[int], int]]
SERIES: Series = [
    (machines.low_load, 4032, 3, [1, 2], 300),
    (machines.steady_load, 4032, 2, [0, 1, 2], 300),
    (machines.high_load, 4032, 1, [1, 2], 300),
    (machines.jobs, 4032, 2, [1, 2], 300),
    (machines.drifting, 4032, 1, [2], 300),
    (machines.disk, 4730, 2, [1, 2], 300),
    (machines.network, 4032, 2, [1, 2], 300),
    (machines.requests, 4032, 1, [2], 300),
    (machines.database, 4032, 2, [1, 2, 2], 300),
    (machines.scaled_group, 4621, 1, [2, 3], 300),
    (machines.network, 1243, 1, [1, 2], 300),
    (world.prices, 1600, 6, [0, 1, 2, 3], 3600),
    (world.room, 7267, 1, [2], 3600),
    (world.machine, 22695, 1, [4], 300),
    (world.demand, 10320, 1, [5], 1800),
    (machines.long_load, 18050, 1, [1], 300),
    (machines.latency, 4032, 1, [3], 300),
    (world.keys, 1882, 1, [2], 300),
    (world.keys, 5315, 1, [2], 300),
    (world.speed, 2500, 3, [1, 2, 3], 0),
    (world.occupancy, 2400, 2, [1, 2], 0),
    (world.travel, 2500, 2, [2, 3], 0),
    (world.mentions, 15850, 10, [2, 3, 4], 300),
    (world.artificial, 4032, 6, [1], 300),
    (world.harmless, 4032, 5, [0], 300),
]
"""For each kind: generator, rows, number of files, number of anomalies, and seconds between rows (0: irregular)."""


def spread(rows: int, wanted: int, window: int, draw: Draw) -> Places:
    """Rows where anomalies start, after the probation, chosen so that their windows do not touch."""
    places: Places = []
    for at in draw.integers(probation(rows) + window // 2 + 1, rows - window // 2 - 1, size=200).tolist():
        if len(places) < wanted and all(abs(at - other) > window for other in places):
            places.append(at)
    return sorted(places)


def corpus(seed: int, series: Series = SERIES) -> list[File]:
    """58 files with about 115 anomalies; the windows of a file cover a tenth of its rows."""
    draw, files = np.random.default_rng([seed, 21]), []
    for make, rows, count, wanted, every in series:
        for number in range(count):
            own = draw.spawn(1)[0]
            anomalies = int(own.choice(wanted))
            window = int(0.1 * rows / max(anomalies, 1))
            places = spread(rows, anomalies, window, own)
            y = make(rows, places, window, own).astype(float)
            gaps = own.integers(3, 16, rows) * 60 if not every else np.full(rows, every)
            files.append(
                File(
                    f"{make.__name__}-{rows}-{number}",
                    y,
                    [(at - window // 2, min(at + window // 2, rows - 1)) for at in places],
                    np.cumsum(gaps),
                )
            )
    return files
