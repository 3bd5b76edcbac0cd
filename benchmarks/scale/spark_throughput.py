"""Compare rows per second and core on Spark with `ptncn stream --key` in one process; run it alone on the machine.

    python benchmarks/scale/spark_throughput.py

Both read the same CSV files and write JSON lines, a file at a time; the first files are not timed. Processor time is
that of all processes: the JVM and its Python workers, or the one process. A shape is keys x rows of a key in a batch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import readings
from launch import ROOT, write


def one_process(folder: Path, horizon: int, warm_up: int) -> dict[str, float]:
    """`Stream` from files to a JSON file, as `ptncn stream` runs it."""
    from ptncn.streaming import Stream, open_source
    from ptncn.streaming.formats import JsonWriter

    files = sorted(folder.glob("*.csv"))
    stream = Stream(key="device", targets=("load",), timestamp="time", horizon=horizon)
    out = folder.parent / "bank.jsonl"
    with out.open("wb") as sink:
        for number, path in enumerate(files):
            if number == warm_up:
                began, used = time.perf_counter(), time.process_time()
            stream.source = open_source(str(path))
            writer = JsonWriter()
            while (results := stream.read(256)) is not None:
                sink.write(writer.lines(results.table()))
    rows = stream.stats.observations * (len(files) - warm_up) / len(files)
    return {"rows": rows, "seconds": time.perf_counter() - began, "cpu": time.process_time() - used}


def one_group(keys: int, rows: int, horizon: int) -> dict[str, float]:
    """What a batch costs a worker without Spark: microseconds of the processor for each row, in groups as on Spark, and
    milliseconds to encode and to decode the state of a key, with its bytes.
    """
    from ptncn.spark.processor import group_of
    from ptncn.streaming.stream import StoredStreams

    groups: dict[int, list[str]] = {}
    for number in range(keys):
        groups.setdefault(group_of(f"d{number}"), []).append(f"d{number}")
    options = {"key": "device", "targets": ("load",), "timestamp": "time", "horizon": horizon}
    chance, store, names = np.random.default_rng(0), dict[str, bytes](), ("device", "time", "load")
    streams, others = (StoredStreams(keep=keys, **options) for _ in range(2))
    for batch in range(4):
        times = np.arange(batch * rows, (batch + 1) * rows)
        values = np.sin(times / 5) + chance.normal(scale=0.1, size=(keys, rows))
        of_keys = {f"d{number}": own.tolist() for number, own in enumerate(values)}
        began = time.process_time()
        for group in groups.values():
            table = [[key, 60.0 * at, x] for key in group for at, x in zip(times.tolist(), of_keys[key], strict=True)]
            for _ in streams.advance(names, table, store.get, store.__setitem__):
                pass
        used = time.process_time() - began
    began = time.process_time()
    for key in streams.keys:
        streams._to_bytes(key)
    encoded = time.process_time()
    others.begin(names, table)
    others._take = store.get
    for group in groups.values():
        others._assign_slots(group, list(range(len(group))))
    decode = time.process_time() - encoded
    found = {"row": 1e6 * used / rows, "encode": 1e3 * (encoded - began), "decode": 1e3 * decode}
    return {name: spent / keys for name, spent in found.items()} | {"bytes": len(store["d0"])}


def cpu(process: psutil.Process) -> dict[str, float]:
    """Seconds of processor time: of the JVM, and of Python, which is this process and the workers, ended ones too."""
    total = {"jvm": 0.0, "python": 0.0}
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total["jvm" if "java" in each.name() else "python"] += sum(each.cpu_times()[:4])
    return total


def on_spark(folder: Path, horizon: int, cores: int, warm_up: int, keep: int) -> dict[str, Any]:
    """Batch by batch, a file each. In the first ones workers start, and the JVM compiles its code."""
    from ptncn import spark

    session = spark.local_session(cores)
    session.sparkContext.setLogLevel("ERROR")
    readings = session.readStream.schema("time double, device string, load double").option("header", True)
    readings = readings.option("maxFilesPerTrigger", 1).csv(str(folder))
    table = spark.forecast(readings, key="device", targets=["load"], timestamp="time", horizon=horizon, keep=keep)
    places = {"path": str(folder.parent / "out"), "checkpointLocation": str(folder.parent / "checkpoint")}
    query = table.writeStream.format("json").options(**places).trigger(processingTime="0 seconds").start()
    marks: dict[int, tuple[float, dict[str, float], Any]] = {}
    last = len(list(folder.glob("*.csv"))) - 1
    while last not in marks:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        progress = query.lastProgress
        if progress is not None and progress["batchId"] not in marks and progress["numInputRows"]:
            marks[progress["batchId"]] = time.perf_counter(), cpu(psutil.Process()), progress
        time.sleep(0.1)
    query.stop()
    session.stop()
    began, used, _ = marks[warm_up - 1]
    ended, used_then, _ = marks[last]
    timed = [marks[number][2] for number in range(warm_up, last + 1)]
    states = [progress["stateOperators"][0] for progress in timed]
    return {
        "rows": sum(progress["numInputRows"] for progress in timed),
        "seconds": ended - began,
        "cpu": {name: used_then[name] - used[name] for name in used},
        "batch_ms": [progress["durationMs"]["triggerExecution"] for progress in timed],
        "commit_of_states_ms": [state["commitTimeMs"] for state in states],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=["100x1000", "1000x100"], help="keys x rows of a key in a batch")
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--warm-up", type=int, default=30, help="batches that are not timed")
    parser.add_argument("--horizon", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--keep", type=int, default=1000, help="streams that a worker keeps decoded")
    parser.add_argument("--part", choices=("bank", "spark", "group"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--keys", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part == "bank":
        print(json.dumps(one_process(arguments.folder, arguments.horizon, arguments.warm_up)))
        return
    if arguments.part == "group":
        print(json.dumps(one_group(arguments.keys, arguments.rows, arguments.horizon)))
        return
    if arguments.part == "spark":
        rest = arguments.horizon, arguments.cores, arguments.warm_up, arguments.keep
        print(json.dumps(on_spark(arguments.folder, *rest)))
        return
    runs = []
    for shape in arguments.shapes:
        keys, rows = map(int, shape.split("x"))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "in"
            many = {"rows": rows * arguments.batches, "files": arguments.batches}
            readings.write(folder, devices=keys, **many, seed=0)
            found: dict[str, Any] = {"keys": keys, "rows_a_key_and_batch": rows}
            for part in ("bank", "group", "spark"):
                command = [sys.executable, __file__, "--part", part, "--folder", str(folder)]
                command += ["--keys", str(keys), "--rows", str(rows)]
                for name in ("horizon", "cores", "warm_up", "keep"):
                    command += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))]
                one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT, env=one_thread)
                found[part] = json.loads(done.stdout.splitlines()[-1])
        bank, spark = found["bank"], found["spark"]
        found["ratio_a_core"] = spark["rows"] / spark["seconds"] / arguments.cores / (bank["rows"] / bank["seconds"])
        found["ratio_by_cpu"] = spark["rows"] / sum(spark["cpu"].values()) / (bank["rows"] / bank["cpu"])
        runs.append(found)
        print(
            f"{keys} keys, {rows} rows of each in a batch: bank {bank['rows'] / bank['seconds']:,.0f} rows/s, Spark "
            f"{spark['rows'] / spark['seconds'] / arguments.cores:,.0f} rows/s and core, ratio "
            f"{found['ratio_a_core']:.2f} by time, {found['ratio_by_cpu']:.2f} by processor time",
            flush=True,
        )
        settings = {"cores_of_spark": arguments.cores, "horizon": arguments.horizon}
        settings |= {"batches": arguments.batches, "warm_up": arguments.warm_up, "keep": arguments.keep}
        write("spark-throughput", {**settings, "runs": runs})


if __name__ == "__main__":
    main()
