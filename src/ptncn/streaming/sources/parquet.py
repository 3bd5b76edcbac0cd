"""Rows of a Parquet file, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

from ptncn.streaming.errors import StreamError
from ptncn.streaming.sources import Block

BATCH = 1000


class ParquetReader:
    """Needs pyarrow: `pip install ptncn[parquet]`. Lines are rows here, from 1."""

    def __init__(self, path: str) -> None:
        try:
            pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise StreamError(f"{path}: Parquet needs pyarrow: pip install 'ptncn[parquet]'") from error
        self.name = path
        # what pyarrow raises on damaged files: names that are no text and impossible sizes among them
        self._broken = (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError)
        try:
            self._file = parquet.ParquetFile(path)
            self._names = tuple(self._file.schema_arrow.names)
        except self._broken as error:
            raise StreamError(f"{path}: not a Parquet file that can be read: {error}") from error
        self._rows = self._read_from(0)
        self._row = self._count = 0

    def read(self, most: int) -> Block | None:
        try:
            rows = list(islice(self._rows, most))
        except self._broken as error:
            raise StreamError(f"{self.name}: damaged after row {self._row}: {error}") from error
        self._count = len(rows)
        if not rows:
            return None
        lines = list(range(self._row + 1, self._row + 1 + len(rows)))
        self._row += len(rows)
        return Block(self._names, rows, lines)

    def position(self, count: int | None = None) -> dict[str, Any]:
        read = self._row if count is None else self._row - self._count + min(count, self._count)
        return {"rows": read, "of": self._file.metadata.num_rows}

    def seek(self, position: Mapping[str, Any], *, live: bool = False) -> None:
        if position["of"] != self._file.metadata.num_rows:
            raise StreamError(
                f"{self.name}: {self._file.metadata.num_rows} rows; the checkpoint was made with {position['of']}: "
                f"--resume needs the same file"
            )
        self._row, self._count = position["rows"], 0
        self._rows = self._read_from(self._row)

    def _read_from(self, row: int) -> Iterator[Sequence[Any]]:
        """Rows from `row` on; row groups before it are not read."""
        groups = list(range(self._file.metadata.num_row_groups))
        while groups and self._file.metadata.row_group(groups[0]).num_rows <= row:
            row -= self._file.metadata.row_group(groups.pop(0)).num_rows
        if not groups:
            return
        for batch in self._file.iter_batches(BATCH, row_groups=groups):
            part = batch.slice(min(row, batch.num_rows))
            yield from zip(*(column.to_pylist() for column in part.columns), strict=True)
            row = max(0, row - batch.num_rows)
