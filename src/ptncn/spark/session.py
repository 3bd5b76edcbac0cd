"""A local Spark session and its requirements."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ptncn.system import one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PACKAGES = {"pyspark": "pyspark", "pandas": "pandas", "pyarrow": "pyarrow", "protobuf": "google.protobuf"}


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
    """Spark in this process, with the state store that `forecast` needs, and further `settings` by name."""
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
        **settings,
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def reason(error: BaseException) -> str:
    """The one-line reason why a query ended, extracted from the pages that Spark prints.

    >>> reason(RuntimeError("FAILED\\nptncn.streaming.storage.BlobError: device a: state of version 9\\n at java"))
    'device a: state of version 9'
    """
    said = re.findall(r"(?:BlobError|StreamError): (.+)", str(error))
    return str(said[-1]).strip() if said else one_line(error)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
