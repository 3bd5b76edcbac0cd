"""Anomaly scores on planted anomalies, SKAB and MGAB, beside a windowed Gaussian and River's detectors.

    python benchmarks/anomalies.py            # results/streams/anomalies.json
    python benchmarks/anomalies.py --seeds 1  # a look

Planted anomalies are scored as in the Numenta Anomaly Benchmark (`nab_score.py`). SKAB and MGAB are read from
`$PTNCN_DATA/streams`; there, detectors are compared by the area under the ROC curve over rows, which has no
threshold.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from river import anomaly, preprocessing
from sklearn.metrics import roc_auc_score

from nab_score import File, evaluate
from planted import corpus
from ptncn.streaming.anomaly import Anomaly, AnomalySetting, Scores
from ptncn.streaming.forecaster import Forecaster, Setting

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "results/streams/anomalies.json"
TUNED = tuple(range(8))
"""Seeds of the corpora, some of an earlier version, by which settings were chosen; others are scored."""


def expected(values: np.ndarray) -> np.ndarray:
    """(T, C) what the forecaster expected of each row, without a network."""
    forecaster = Forecaster(Setting(columns=values.shape[1], few=max(1, 8 // values.shape[1])))
    return forecaster.observe(values, rows=np.zeros(len(values), dtype=np.int64)).expected


def ours(values: np.ndarray, forecast: np.ndarray, **options: Any) -> Scores:
    scorer = Anomaly(AnomalySetting(columns=values.shape[1], **options))
    return scorer.observe(values, np.ascontiguousarray(forecast), rows=np.zeros(len(values), dtype=np.int64))


def gaussian(values: np.ndarray, window: int = 6400) -> np.ndarray:
    """(T,) how many standard deviations off the mean of the last `window` rows, from 0 to 1."""
    y = values[:, 0] - values[0, 0]
    sums, squares = (np.concatenate([[0.0], np.cumsum(each)]) for each in (y, y * y))
    t = np.arange(len(y))
    first = np.maximum(t - window, 0)
    count = np.maximum(t - first, 1)
    mean = (sums[t] - sums[first]) / count
    spread = np.sqrt(np.maximum((squares[t] - squares[first]) / count - mean * mean, 0))
    return np.minimum(np.abs(y - mean) / np.where(spread > 0, spread, 1e-6), 8.2) / 8.2


def planted(seeds: list[int]) -> dict[str, list[float]]:
    """Of each detector, the score on each corpus."""
    variants: dict[str, dict[str, Any]] = {
        "ptncn": {},
        "no levels": {"level_weight": 0.0},
        "nothing for quiet values": {"quiet_weight": 0.0},
        "tails above 5 %": {"share": 0.05},
        "memory of 1,000": {"bulk": 1000.0},
        "every row of an event": {"hold": 0, "fade": 0.0},
    }
    found: dict[str, list[float]] = {name: [] for name in ("windowed Gaussian", "copy", *variants)}
    for seed in seeds:
        files = corpus(seed)
        values = [file.values[:, None] for file in files]
        forecasts = [expected(each) for each in values]
        copies = [np.concatenate([each[:1], each[:-1]]) for each in values]

        def score(of: Callable[[np.ndarray, np.ndarray], np.ndarray], guesses: list[np.ndarray]) -> float:
            return evaluate(files, [of(*pair) for pair in zip(values, guesses, strict=True)])[0]  # noqa: B023

        found["windowed Gaussian"].append(score(lambda y, _: gaussian(y), forecasts))
        found["copy"].append(score(lambda y, f: ours(y, f).anomaly, copies))
        for name, options in variants.items():
            found[name].append(score(lambda y, f, o=options: ours(y, f, **o).anomaly, forecasts))
    return found


def alarm_rates(files: list[File]) -> dict[str, list[float]]:
    """Alarms a row as a share of the rate asked for, of each file."""
    values = [file.values[:, None] for file in files]
    forecasts = [expected(each) for each in values]
    return {
        f"{rate} {'events' if events else 'rows'}": [
            float(ours(y, f, rate=rate, events=events).alarm.mean() / rate)
            for y, f in zip(values, forecasts, strict=True)
        ]
        for rate in (0.001, 0.01, 0.05)
        for events in (1, 0)
    }


def labelled(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Values and labels of the files of SKAB, and of the first 40,000 rows of those of MGAB."""
    found = {}
    for path in sorted(folder.glob("skab-*.csv.gz")):
        with gzip.open(path, "rt") as lines:
            rows = [line.rstrip("\n").split(";") for line in lines][1:]
        table = np.array([[float(x) for x in row[1:]] for row in rows])
        found[path.name.removesuffix(".csv.gz")] = table[:, :8], table[:, 8]
    for path in sorted(folder.glob("mgab-*.csv.gz")):
        table = np.genfromtxt(path, delimiter=",", skip_header=1, max_rows=40_000)
        found[path.name.removesuffix(".csv.gz")] = table[:, 1:2], table[:, 2]
    return found


def river_scores(values: np.ndarray) -> dict[str, np.ndarray]:
    detectors = {
        "HalfSpaceTrees": preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=0),
        "OneClassSVM": preprocessing.StandardScaler() | anomaly.OneClassSVM(),
    }
    rows = [dict(enumerate(row)) for row in values.tolist()]
    found = {}
    for name, detector in detectors.items():
        scores = np.empty(len(rows))
        for t, row in enumerate(rows):
            scores[t] = detector.score_one(row)
            detector.learn_one(row)
        found[name] = scores
    each = np.zeros(values.shape)
    for column in range(values.shape[1]):
        scorer = anomaly.GaussianScorer()
        for t, value in enumerate(values[:, column].tolist()):
            each[t, column] = scorer.score_one(None, value)
            scorer.learn_one(None, value)
    found["GaussianScorer"] = each.max(1)
    return found


def areas(folder: Path) -> dict[str, dict[str, float]]:
    """Of each file, the area under the ROC curve of each detector after the first 15 %."""
    table = {}
    for name, (values, labels) in labelled(folder).items():
        values = np.ascontiguousarray(values)
        scores = {"ptncn": ours(values, expected(values)).anomaly, **river_scores(values)}
        begin = int(0.15 * len(values))
        table[name] = {
            detector: round(float(roc_auc_score(labels[begin:], each[begin:])), 4) for detector, each in scores.items()
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = [len(TUNED) + number for number in range(parser.parse_args().seeds)]
    folder = Path(os.environ.get("PTNCN_DATA", "")) / "streams"
    record = {
        "command": f"python benchmarks/anomalies.py --seeds {len(seeds)}",
        "tuned_on": list(TUNED),
        "planted": {name: [round(x, 1) for x in scores] for name, scores in planted(seeds).items()},
        "alarm_rates": {k: [round(x, 2) for x in v] for k, v in alarm_rates(corpus(seeds[-1])).items()},
        "areas": areas(folder) if folder.is_dir() else {},
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
