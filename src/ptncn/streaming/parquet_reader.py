"""Rows of a Parquet file, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from ptncn.streaming.errors import StreamError
from ptncn.streaming.source import Row, nothing

BATCH = 1000


class ParquetReader:
    """Needs pyarrow: `pip install ptncn[parquet]`. Lines are rows here, from 1."""

    nan_is_missing = False

    def __init__(self, path: str) -> None:
        try:
            pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise StreamError(f"{path}: Parquet needs pyarrow: pip install 'ptncn[parquet]'") from error
        self.name = path
        self.idle: Callable[[], None] = nothing
        self._broken = (pyarrow.ArrowException, OSError)
        try:
            self._file = parquet.ParquetFile(path)
        except self._broken as error:
            raise StreamError(f"{path}: not a Parquet file that can be read: {error}") from error
        self._rows = self._read_from(0)
        self._row = self._good = 0

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        try:
            values = next(self._rows)
        except self._broken as error:
            raise StreamError(f"{self.name}: damaged after row {self._row}: {error}") from error
        self._row += 1
        self._good = self._row
        return Row(self._row, values)

    def position(self) -> dict[str, Any]:
        return {"rows": self._good, "of": self._file.metadata.num_rows}

    def reject(self) -> None:
        self._good = self._row - 1

    def seek(self, position: Mapping[str, Any]) -> None:
        if position["of"] != self._file.metadata.num_rows:
            raise StreamError(
                f"{self.name}: {self._file.metadata.num_rows} rows; the checkpoint was made with {position['of']}: "
                f"--resume wants the same file"
            )
        self._row = self._good = position["rows"]
        self._rows = self._read_from(self._row)

    def _read_from(self, row: int) -> Iterator[dict[str, Any]]:
        """Rows from `row` on; row groups before it are not read."""
        groups = list(range(self._file.metadata.num_row_groups))
        while groups and self._file.metadata.row_group(groups[0]).num_rows <= row:
            row -= self._file.metadata.row_group(groups.pop(0)).num_rows
        if not groups:
            return
        for batch in self._file.iter_batches(BATCH, row_groups=groups):
            yield from batch.slice(min(row, batch.num_rows)).to_pylist()
            row = max(0, row - batch.num_rows)
