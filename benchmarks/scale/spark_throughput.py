"""Rows a second and core on Spark, beside `ptncn stream --key` in one process: run it alone on the machine.

    python benchmarks/scale/spark_throughput.py

Both read the same CSV files and write JSON lines; both are timed from the first row to the last, without their start.
Processor time is that of all processes: the JVM and its Python workers, or the one process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import readings
from launch import ROOT, write


def one_process(folder: Path, horizon: int) -> dict[str, float]:
    """`Stream` from files to a JSON file, as `ptncn stream` runs it; the first file is the warm-up."""
    from ptncn.streaming import Stream, open_source
    from ptncn.streaming.formats import JsonWriter

    files = sorted(folder.glob("*.csv"))
    stream = Stream(key="device", targets=("load",), timestamp="time", horizon=horizon)
    out = folder.parent / "bank.jsonl"
    with out.open("w") as sink:
        for number, path in enumerate(files):
            if number == 1:
                began, used = time.perf_counter(), time.process_time()
            stream.source = open_source(str(path))
            writer = JsonWriter()
            while (results := stream.read(256)) is not None:
                sink.write("".join(writer.lines(results.table())))
    rows = stream.stats.observations * (len(files) - 1) / len(files)
    return {"rows": rows, "seconds": time.perf_counter() - began, "cpu": time.process_time() - used}


def cpu(process: psutil.Process) -> float:
    """Seconds of processor time of a process and its descendants, those that ended included."""
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        times = each.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def on_spark(folder: Path, horizon: int, cores: int) -> dict[str, float]:
    """Batch by batch, a file each; the first two are the warm-up, in which workers start and code is compiled."""
    from ptncn import spark

    session = spark.local_session(cores)
    session.sparkContext.setLogLevel("ERROR")
    readings = session.readStream.schema("time double, device string, load double").option("header", True)
    readings = readings.option("maxFilesPerTrigger", 1).csv(str(folder))
    table = spark.forecast(readings, key="device", targets=["load"], timestamp="time", horizon=horizon)
    places = {"path": str(folder.parent / "out"), "checkpointLocation": str(folder.parent / "checkpoint")}
    query = table.writeStream.format("json").options(**places).trigger(processingTime="0 seconds").start()
    marks, me = {}, psutil.Process()
    last = len(list(folder.glob("*.csv"))) - 1
    while last not in marks:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        progress = query.lastProgress
        if progress is not None and progress["batchId"] not in marks and progress["numInputRows"]:
            marks[progress["batchId"]] = time.perf_counter(), cpu(me), progress["numInputRows"], progress
        time.sleep(0.02)
    query.stop()
    session.stop()
    numbers = sorted(marks)
    first = numbers[min(1, len(numbers) - 2)]
    rows = sum(marks[number][2] for number in numbers if number > first)
    parts = {name: float(ms) for name, ms in marks[last][3]["durationMs"].items()}
    seconds, used = (marks[last][i] - marks[first][i] for i in (0, 1))
    return {"rows": rows, "seconds": seconds, "cpu": used, "last_batch_ms": parts}  # type: ignore[dict-item]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--rows", type=int, nargs="+", default=[25, 100, 400], help="of a key in a batch")
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--horizon", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--part", choices=("bank", "spark"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part == "bank":
        print(json.dumps(one_process(arguments.folder, arguments.horizon)))
        return
    if arguments.part == "spark":
        print(json.dumps(on_spark(arguments.folder, arguments.horizon, arguments.cores)))
        return
    runs = []
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "in"
            many = {"rows": rows * arguments.batches, "files": arguments.batches}
            readings.write(folder, devices=arguments.keys, **many, seed=0)
            found: dict[str, Any] = {"keys": arguments.keys, "rows_a_key_and_batch": rows}
            for part in ("bank", "spark"):
                command = [sys.executable, __file__, "--part", part, "--folder", str(folder)]
                command += ["--horizon", str(arguments.horizon), "--cores", str(arguments.cores)]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
                found[part] = json.loads(done.stdout.splitlines()[-1])
        bank, spark = found["bank"], found["spark"]
        found["ratio_a_core"] = spark["rows"] / spark["seconds"] / arguments.cores / (bank["rows"] / bank["seconds"])
        found["ratio_by_cpu"] = spark["rows"] / spark["cpu"] / (bank["rows"] / bank["cpu"])
        runs.append(found)
        print(
            f"{rows} rows a key and batch: bank {bank['rows'] / bank['seconds']:,.0f} rows/s, Spark "
            f"{spark['rows'] / spark['seconds'] / arguments.cores:,.0f} rows/s and core, ratio "
            f"{found['ratio_a_core']:.2f} by time, {found['ratio_by_cpu']:.2f} by processor time",
            flush=True,
        )
    write("spark-throughput", {"cores_of_spark": arguments.cores, "horizon": arguments.horizon, "runs": runs})


if __name__ == "__main__":
    main()
