"""Compare prequential errors of `ptncn stream` and other online forecasters on real and synthetic streams.

    python benchmarks/streams.py                # errors, times, alarms: results/streams/{comparison,alarms}.json
    python benchmarks/streams.py --timing       # only the times in comparison.json, in half a minute
    python benchmarks/streams.py --throughput   # lines per second and memory over a million lines: throughput.json
    python benchmarks/streams.py --page         # docs/streams-results.md, from the records

All but the last also write the page. `--workers 1` uses one processor; an interrupted run continues when started again.
Every model forecasts one step and then learns. Its settings are chosen on data that is not scored.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from rich.progress import track

import ptncn.streaming
from stream_models import GRIDS, MODELS, NETWORKS, REGIME, STREAMS, USUAL, Rows, forecasts, rows, suggest

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "results/streams"
PARTIAL = ROOT / "results/streams/comparison.partial.json"
SEEDS = {True: range(60), False: range(3)}
"""Seeds for the stream that switches (True), and for the others."""
VALIDATION = (100, 101)
"""Seeds of the data used for tuning, if data is random."""
TRIALS = 40
"""Settings tried for each of our learners."""
SMOOTH = 50


def errors(model: str, setting: dict[str, Any], season: int, seed: int, data: Rows) -> np.ndarray:
    """(len(data) − 1,) the absolute error of each forecast; infinite from the step at which the model failed."""
    distances = np.full(len(data) - 1, np.inf)
    try:
        for t, predicted in enumerate(forecasts(model, setting, season, seed, data)):
            distances[t] = abs(predicted - data[t + 1][1])
    except (OverflowError, ptncn.streaming.StreamError):
        pass
    return np.where(np.isfinite(distances), distances, np.inf)


def tune(model: str, stream: str) -> dict[str, Any]:
    """The setting with the smallest mean absolute error on data that is not scored."""
    if model in GRIDS:
        return min(GRIDS[model], key=lambda setting: tried(model, setting, stream))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    for usual, target in product(USUAL[model], ("both", "change")):
        study.enqueue_trial(usual | {"target": target})

    def objective(trial: optuna.Trial) -> float:
        setting = suggest(trial, model)
        trial.set_user_attr("setting", setting)
        return tried(model, setting, stream)

    study.optimize(objective, n_trials=TRIALS)
    return study.best_trial.user_attrs["setting"]


def tried(model: str, setting: dict[str, Any], stream: str) -> float:
    """The mean absolute error of a setting with seed 0, for tuning.

    Random data is drawn with the seeds `VALIDATION` and scored after its first part. Other data is scored in the second
    half of its first part, which the results leave out.
    """
    spec = STREAMS[stream]
    draws = [rows(stream, seed) for seed in VALIDATION] if spec.random else [rows(stream, 0)[: spec.tuned]]
    skipped = spec.tuned if spec.random else spec.tuned // 2
    means = [errors(model, setting, spec.season, 0, data)[skipped:].mean() for data in draws]
    return min(float(np.mean(means)), 1e9)


def run(model: str, stream: str) -> dict[str, Any]:
    """Tune a model, then run it over the stream once with each seed."""
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    setting, spec = tune(model, stream), STREAMS[stream]
    varies = spec.random or model in NETWORKS
    runs = []
    for seed in SEEDS[stream == "switch"] if varies else [0]:
        runs.append(errors(model, setting, spec.season, seed, rows(stream, seed)))
    scored = [float(each[spec.tuned :].mean()) for each in runs]
    result = {
        "setting": setting,
        "mae": statistics.mean(scored),
        "sd": statistics.stdev(scored) if len(scored) > 1 else None,
        "rmse": float(np.sqrt(np.mean([np.square(each[spec.tuned :]) for each in runs]))),
    }
    if stream == "switch":
        result["recovery"] = [recovery(np.mean(runs, axis=0), k * REGIME) for k in (1, 2)]
    return result


def recovery(curve: np.ndarray, switch: int) -> dict[str, Any]:
    """Observations after a switch until the error is within 10 % of the mean of the 500 before it; None if it never is.

    The error is averaged over seeds and over the last `SMOOTH` observations.
    """
    before = float(curve[switch - 501 : switch - 1].mean())
    smooth = np.convolve(curve, np.full(SMOOTH, 1 / SMOOTH), "valid")[switch - 1 :][: REGIME - SMOOTH + 1]
    back = np.flatnonzero(smooth <= 1.1 * before)
    return {
        "error_before": before,
        "error_after": float(curve[switch - 1 : switch + 99].mean()),
        "observations": int(back[0]) + SMOOTH if len(back) else None,
    }


def cost(model: str, setting: dict[str, Any], count: int = 1000) -> float:
    """Microseconds for one forecast and one observation: the median over the stream of sines."""
    data, times = rows("sines", 0)[: count + 201], [0.0]
    for _ in forecasts(model, setting, STREAMS["sines"].season, 0, data):
        times.append(time.perf_counter())
    blocks = [(times[k + 100] - times[k]) / 100 for k in range(200, count + 100, 100)]  # updates may come in bursts
    return 1e6 * statistics.median(blocks)


def measure(workers: int) -> dict[str, Any]:
    """The comparison without the times."""
    load = os.getloadavg()[0]
    by_run = run_all(workers)
    return {
        "command": "python benchmarks/streams.py",
        **about(),
        "loadavg": {"before": round(load, 2)},
        "seeds": {"switch": list(SEEDS[True]), "others": list(SEEDS[False]), "validation": list(VALIDATION)},
        "trials": {model: len(GRIDS[model]) if model in GRIDS else TRIALS for model in MODELS},
        "regime": REGIME,
        "smooth": SMOOTH,
        "streams": {
            name: {
                "about": spec.about,
                "observations": len(rows(name, 0)),
                "tuned_on": spec.tuned,
                "random": spec.random,
                "optimum": spec.optimum,
                "last_values": [round(y, 6) for _, y in rows(name, 0)[-3:]],
            }
            for name, spec in STREAMS.items()
        },
        "results": {model: {stream: by_run[f"{model} on {stream}"] for stream in STREAMS} for model in MODELS},
    }


def run_all(workers: int) -> dict[str, Any]:
    """{"model on stream": result}; results of an interrupted run with the same settings are reused."""
    same = json.loads(
        json.dumps({"grids": GRIDS, "usual": USUAL, "trials": TRIALS, "seeds": [len(SEEDS[True]), len(SEEDS[False])]})
    )
    kept = json.loads(PARTIAL.read_text(encoding="utf-8")) if PARTIAL.exists() else {}
    done = kept["found"] if kept.get("of") == same else {}
    pairs = [pair for pair in product(MODELS, reversed(STREAMS)) if " on ".join(pair) not in done]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        jobs = {pool.submit(run, *pair): " on ".join(pair) for pair in pairs}
        for job in track(as_completed(jobs), description="models on streams", total=len(jobs)):
            done[jobs[job]] = job.result()
            PARTIAL.write_text(json.dumps({"of": same, "found": done}), encoding="utf-8")
    return done


def times(record: dict[str, Any]) -> dict[str, Any]:
    """Microseconds per observation of each model, with its setting for the sines."""
    torch.set_num_threads(1)
    load, results = os.getloadavg()[0], record["results"]
    took = {
        model: round(cost(model, results[model]["sines"]["setting"]), 1) for model in track(MODELS, description="times")
    }
    return {
        "command": "python benchmarks/streams.py --timing",
        **about(),
        "loadavg": round(load, 2),
        "microseconds_per_observation": took,
    }


def about() -> dict[str, Any]:
    names = ("ptncn", "river", "torch", "numpy")
    return {
        "versions": {"python": platform.python_version()} | {name: version(name) for name in names},
        "machine": {"cores": os.cpu_count(), "processor": platform.machine()},
    }


def read(name: str) -> dict[str, Any]:
    """A record; empty if it does not exist yet."""
    path = RECORDS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(name: str, record: dict[str, Any]) -> None:
    RECORDS.mkdir(parents=True, exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    import stream_alarms
    import stream_page
    import stream_throughput

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--lines", type=int, default=1_000_000, help="for --throughput")
    only = parser.add_mutually_exclusive_group()
    for each in ("alarms", "timing", "throughput", "page"):
        only.add_argument(f"--{each}", action="store_true", help=f"only the {each}")
    options = parser.parse_args()
    everything = not (options.alarms or options.timing or options.throughput or options.page)
    if everything:
        write("comparison", measure(options.workers))
        PARTIAL.unlink()
    if everything or options.timing:
        record = read("comparison")
        write("comparison", record | {"timing": times(record)})
    if everything or options.alarms:
        write("alarms", {"command": "python benchmarks/streams.py --alarms", **about(), **stream_alarms.measure()})
    if options.throughput:
        command = f"python benchmarks/streams.py --throughput --lines {options.lines}"
        write("throughput", {"command": command, **about(), **stream_throughput.measure(options.lines)})
    stream_page.write(ROOT / "docs/streams-results.md", read)


if __name__ == "__main__":
    main()
