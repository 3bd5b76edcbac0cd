"""Turn a streaming DataFrame of observations into one of predictions, forecasts, anomaly scores and alarms."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ptncn.spark.processor import GROUP, StreamProcessor, packed
from ptncn.streaming.stream import Stream
from ptncn.system import one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PACKAGES = {"pyspark": "pyspark", "pandas": "pandas", "pyarrow": "pyarrow", "protobuf": "google.protobuf"}


def forecast(
    df: DataFrame,
    *,
    key: str,
    targets: str | Sequence[str],
    timestamp: str,
    horizon: int = 1,
    timeout: float | None = None,
    keep: int = 500,
    **options: Any,
) -> DataFrame:
    """A streaming DataFrame with a row for each row of `df`; see `output_schema` for its columns.

    Arguments:
        df: streaming or not, with a column for the key, the timestamp and each target.
        key: the column that names the stream of a row.
        targets: columns to predict.
        timestamp: the column that orders the rows of a key within a batch, because Spark does not keep their order.
        horizon: steps to forecast after each row, with bounds.
        timeout: seconds after which a silent key is dropped, with a last row in which `silent` is true.
        keep: number of streams that a Python worker keeps decoded; all states are stored in any case.
        options: any other option of `ptncn.streaming.StreamOptions`, such as `alarm_rate` or `features`.

    The state of a key is a versioned blob in Spark's state store, which must be RocksDB. It is written with the batch,
    so that after a failure and a restart from the checkpoint no row is lost or counted twice. Spark handles keys in 64
    groups, so up to 64 tasks work at a time.
    """
    check_packages()
    names = [targets] if isinstance(targets, str) else list(targets)
    features, categorical = (_as_list(options.get(name, ())) for name in ("features", "categorical"))
    for role, column in (("key", key), ("timestamp", timestamp), *(("targets", name) for name in names + features)):
        if column not in df.columns:
            raise ValueError(f"{role}: no column {column!r}; the columns are {', '.join(df.columns)}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout: expected a positive number of seconds, got {timeout!r}")
    if options.get("weights", "own") != "own":
        raise ValueError(f"weights={options['weights']!r}: on Spark each key has its own; leave it out")
    settings = {"targets": tuple(names), "timestamp": timestamp, "horizon": horizon, "key": key, **options}
    Stream(**settings)  # rejects bad options here, not in a worker
    conf = df.sparkSession.conf
    if conf.get("spark.sql.streaming.stateStore.providerClass", "") != ROCKSDB:
        conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    schema = output_schema(names, horizon, categorical)
    inputs = list(dict.fromkeys([key, timestamp, *names, *features]))
    chosen = df.select(*(f"`{name}`" for name in inputs))
    return (
        packed(chosen)
        .groupBy(GROUP)
        .transformWithStateInPandas(
            statefulProcessor=StreamProcessor(settings, chosen.schema, schema, timeout, keep),
            outputStructType=schema,
            outputMode="append",
            timeMode="none" if timeout is None else "processingTime",
        )
    )


def output_schema(targets: Sequence[str], horizon: int, categorical: Sequence[str] = ()) -> StructType:
    """Columns: key, index (number of earlier rows of the key), timestamp; for each target its value, `_predicted`, and
    for each step h `_ahead{h}`, `_ahead{h}_lower` and `_ahead{h}_upper`; surprise, anomaly, alarm, severity, silent."""
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

    suffixes = ["", "_predicted"]
    suffixes += [f"_ahead{h}{bound}" for h in range(1, horizon + 1) for bound in ("", "_lower", "_upper")]
    fields: list[tuple[str, Any]] = [("key", StringType()), ("index", LongType()), ("timestamp", StringType())]
    for name in targets:
        labels = any(fnmatchcase(name, pattern) for pattern in categorical)
        fields += [(f"{name}{suffix}", StringType() if labels else DoubleType()) for suffix in suffixes]
    fields += [("surprise", DoubleType()), ("anomaly", DoubleType()), ("alarm", BooleanType())]
    fields += [("severity", DoubleType()), ("silent", BooleanType())]
    return StructType([StructField(name, kind) for name, kind in fields])


def _as_list(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def check_packages() -> None:
    """Raise an error that names missing packages in one line."""
    missing = [package for package, module in PACKAGES.items() if not _is_there(module)]
    if missing:
        raise ImportError(f"ptncn.spark: {', '.join(missing)} not installed; try: pip install 'ptncn[spark]'")


def check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java") if home is None else shutil.which("java", path=os.path.join(home, "bin"))
    if found is None:
        where = "on the PATH" if home is None else f"in JAVA_HOME={home}"
        raise OSError(f"ptncn.spark: expected Java 17 or later {where}, found none")


def local_session(cores: int = 2, **settings: Any) -> SparkSession:
    """A Spark session in this process, with the state store that `forecast` needs, and further `settings` by name."""
    check_packages()
    check_java()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run the first python3 in the PATH
    builder = SparkSession.builder.master(f"local[{cores}]").appName("ptncn")
    chosen = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        **settings,
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def reason(error: BaseException) -> str:
    """The one-line reason why a query ended, extracted from Spark's output.

    >>> reason(RuntimeError("FAILED\\nptncn.streaming.storage.BlobError: device a: state of version 9\\n at java"))
    'device a: state of version 9'
    """
    if "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE" in str(error):
        return "checkpoint: states in layout 1 of an earlier version; this version reads layout 2; start a new one"
    reasons = re.findall(r"(?:BlobError|StreamError): (.+)", str(error))
    return str(reasons[-1]).strip() if reasons else one_line(error)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
