"""Forecast the modes of devices with Spark: `python labelled.py in/ out/ checkpoint/`."""

from __future__ import annotations

import sys

from ptncn import spark

readings, out, checkpoint = sys.argv[1:]
session = spark.local_session(2)
session.sparkContext.setLogLevel("ERROR")
rows = session.readStream.schema("time double, device string, load double, mode string").option("header", True)
forecasts = spark.forecast(
    rows.option("maxFilesPerTrigger", 1).csv(readings),
    key="device",
    targets=["load", "mode"],
    categorical=["mode"],
    timestamp="time",
    horizon=2,
)
query = forecasts.writeStream.format("json").option("path", out).option("checkpointLocation", checkpoint)
query.trigger(availableNow=True).start().awaitTermination()
session.stop()
