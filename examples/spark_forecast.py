"""Forecast every device of a folder of CSV files with Spark, and continue from the checkpoint after any failure.

    python examples/spark_forecast.py readings/ forecasts/ checkpoint/

The files have the columns time (seconds since 1970), device and load; the output is JSON lines.
"""

from __future__ import annotations

import argparse
import sys

from ptncn import spark

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("readings")
parser.add_argument("forecasts")
parser.add_argument("checkpoint")
parser.add_argument("--horizon", type=int, default=2)
parser.add_argument("--cores", type=int, default=2)
parser.add_argument("--files", type=int, default=1, help="files per batch")
parser.add_argument("--timeout", type=float, help="seconds without a reading after which a device is dropped")
arguments = parser.parse_args()

try:
    session = spark.local_session(arguments.cores)
except (ImportError, OSError) as error:  # a package or Java is missing
    sys.exit(str(error))
session.sparkContext.setLogLevel("ERROR")
readings = (
    session.readStream.schema("time double, device string, load double")
    .option("header", True)
    .option("maxFilesPerTrigger", arguments.files)
    .csv(arguments.readings)
)
forecasts = spark.forecast(
    readings,
    key="device",
    targets=["load"],
    timestamp="time",
    horizon=arguments.horizon,
    timeout=arguments.timeout,
)
query = (
    forecasts.writeStream.format("json")
    .option("path", arguments.forecasts)
    .option("checkpointLocation", arguments.checkpoint)
    .trigger(availableNow=True)
    .start()
)
try:
    query.awaitTermination()
except Exception as error:  # what was committed stays; the same command continues from the checkpoint
    sys.exit(spark.reason(error))
finally:
    session.stop()
