"""The readers under test, each with good files to damage and an oracle for what it may accept.

A reader returns "refused" if it raised an expected error, or "accepted" if the oracle agrees. Anything else is a
finding and raises an error.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mutation import mutate


class WrongError(Exception):
    """A reader accepted something that its oracle rejects."""


def read_rows(path: Path) -> tuple[list[tuple[int, dict[str, Any]]], set[int]]:
    """The rows of the source with their line numbers, and the rejected lines."""
    from ptncn.streaming import RowError, StreamError, open_source

    rows: list[tuple[int, dict[str, Any]]] = []
    bad: set[int] = set()
    source = open_source(str(path))
    while True:
        try:
            block = source.read(7)
        except RowError as error:
            bad.add(error.line)
            continue
        except StreamError:
            if rows or bad:
                bad.add(-1)
                return rows, bad
            raise
        if block is None:
            return rows, bad
        named = (dict(zip(block.names, row, strict=True)) for row in block.rows)
        rows.extend(zip(block.lines, named, strict=True))


def lines_of(data: bytes) -> list[bytes]:
    return data.removeprefix(b"\xef\xbb\xbf").split(b"\n")


class Csv:
    suffix = ".csv"

    def seeds(self, folder: Path) -> list[bytes]:
        return [
            b"a,b,c\n1,2,3\n4.5,-6e-3,x\n,7,8\n",
            b't;u\r\n"1;2";3\r\n"a ""b""";4\r\n',
            b'\xef\xbb\xbfname|value\n"two\nlines"|2\n\xc3\xa9|3\n\nname|value\n5|6\n',
            b"x\ty\n" + b"0.25\t1\n" * 20,
        ]

    def check(self, path: Path, data: bytes) -> None:
        """Each row must equal what Python's csv module reads, starting at the row's line."""
        rows, _ = read_rows(path)
        texts = lines_of(data)
        for line, values in rows:
            rest = [text.decode(errors="replace") + "\n" for text in texts[line - 1 : line + 400]]
            wanted = [self._fields(rest, delimiter) for delimiter in ",;\t|"]
            if list(values.values()) not in wanted:
                raise WrongError(f"line {line}: {values!r:.200} is none of {wanted!r:.400}")

    def _fields(self, lines: list[str], delimiter: str) -> list[str] | None:
        """The first row, or None if the lines are not CSV with this delimiter."""
        try:
            return next(csv.reader(iter(lines), delimiter=delimiter, strict=False), None)
        except csv.Error:
            return None


class JsonLines:
    suffix = ".jsonl"

    def seeds(self, folder: Path) -> list[bytes]:
        return [
            b'{"a": 1, "b": 2.5}\n{"a": 3, "b": null}\n\n{"b": -1e-3, "a": true}\n',
            b'[1, 2, 3]\n[4, 5, 6.5]\n["x", [1], {"y": 2}]\n',
            b'\xef\xbb\xbf{"\xc3\xa9": "\\u00e9\\n"}\r\n{"\xc3\xa9": NaN}\r\n',
        ]

    def check(self, path: Path, data: bytes) -> None:
        """A line must give the values that Python's json module reads, or an error if it is not an object or a list."""
        rows, bad = read_rows(path)
        accepted = dict(rows)
        for number, text in enumerate(lines_of(data), 1):
            if not text.strip():
                continue
            wanted = self._wanted(text)
            if number in accepted:
                if wanted is None or repr(accepted[number]) != repr(wanted):
                    raise WrongError(f"line {number}: {accepted[number]!r:.200} is not {wanted!r:.200}")
            elif number not in bad or wanted is not None:
                raise WrongError(f"line {number}: {text!r:.200} was neither read nor refused for a reason")

    def _wanted(self, text: bytes) -> dict[str, Any] | None:
        try:
            tree = json.loads(text.decode())
        except (ValueError, RecursionError):
            return None
        if isinstance(tree, list):
            return {f"x{index}": value for index, value in enumerate(tree)}
        return tree if isinstance(tree, dict) else None


class Parquet:
    suffix = ".parquet"

    def seeds(self, folder: Path) -> list[bytes]:
        import pyarrow
        import pyarrow.parquet

        tables = [
            pyarrow.table({"a": [1.5, None, 3.0], "b": ["x", "y", None], "c": [1, 2, 3]}),
            pyarrow.table({"v": [index / 7 for index in range(50)]}),
            pyarrow.table({"l": [[1, 2], [], None], "t": [True, False, None]}),
        ]
        contents = []
        for table, codec in zip(tables, ("none", "snappy", "zstd"), strict=True):
            buffer = io.BytesIO()
            pyarrow.parquet.write_table(table, buffer, compression=codec, row_group_size=2)
            contents.append(buffer.getvalue())
        return contents

    def check(self, path: Path, data: bytes) -> None:
        """The rows must equal those of the whole table, read at once."""
        import pyarrow.parquet

        rows, bad = read_rows(path)
        if bad:
            return
        table = pyarrow.parquet.ParquetFile(io.BytesIO(data)).read()
        columns = [column.to_pylist() for column in table.columns]
        wanted = [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
        if repr([values for _, values in rows]) != repr(wanted):
            raise WrongError(f"{rows!r:.300} is not {wanted!r:.300}")


class Checkpoints:
    suffix = ".ckpt"

    def seeds(self, folder: Path) -> list[bytes]:
        import torch

        import ptncn
        from ptncn.learners import make

        contents = []
        options = {"ptncn": {"hidden_size": [3, 2]}, "lstm-tbptt": {"hidden_size": 2}, "esn-rls": {"hidden_size": 3}}
        for name in ("ptncn", "lstm-tbptt", "esn-rls", "mean"):
            learner = make(name, input_size=2, **options.get(name, {}))
            state, path = learner.begin(2), folder / "good.ckpt"
            for x in torch.rand(4, 2, 2):
                learner.step(x, state)
            ptncn.save(path, learner, state, {"log": [1, None, 0.5, "é"]})
            contents.append(path.read_bytes())
        self.good = set(contents)
        return contents

    def check(self, path: Path, data: bytes) -> None:
        """Only unchanged files may be accepted; with a recomputed checksum, the learner must be able to learn."""
        import torch

        import ptncn
        from ptncn.checkpoint_file import decode

        learner, state, _ = ptncn.load(path)
        if data in self.good:
            return
        decode(io.BytesIO(data), len(data))
        if data not in self.forged:
            raise WrongError("a damaged checkpoint was loaded")
        if state is not None:
            try:
                learner.step(torch.rand(state.batch_size, learner.input_size), state)
            except (ValueError, RuntimeError, TypeError, LookupError):
                return

    forged: frozenset[bytes] = frozenset()

    def forge(self, rng: random.Random, data: bytes) -> bytes:
        """A checkpoint with a damaged text and a valid checksum."""
        from ptncn.checkpoint_file import decode, encode

        text, tensors = decode(io.BytesIO(data), len(data))
        damaged = mutate(rng, [text.encode()]).decode("utf-8", "replace")
        name = rng.choice(sorted(tensors))
        if rng.random() < 0.3:
            tensors[name] = tensors[name].flatten()[: rng.randrange(1 + tensors[name].numel())].clone()
            damaged = text
        forged = encode(damaged, tensors, "0.1.0")
        self.forged = frozenset([forged])
        return forged


class Records:
    suffix = ".json"

    def seeds(self, folder: Path) -> list[bytes]:
        from ptncn.records import Record

        path = folder / "good.json"
        fields: dict[str, Any] = {"metrics": {"test": {"ce": 0.5}}, "notes": ["é"], "seconds": 1.5}
        Record(experiment="e", row="m", data="d", scale="smoke", seed=0, **fields).write(path)
        contents = [path.read_bytes()]
        return [
            *contents,
            json.dumps({"schema": 1, "experiment": "e"}).encode(),
            json.dumps(json.loads(contents[0])).encode(),
        ]

    def check(self, path: Path, data: bytes) -> None:
        """A record must hold exactly what Python's json module reads, field by field."""
        from ptncn.records import read_record

        held = dataclasses.asdict(read_record(path))
        tree = json.loads(data)
        if repr({key: held.get(key) for key in tree}) != repr(tree):
            raise WrongError(f"{held!r:.300} is not {tree!r:.300}")


READERS: dict[str, Callable[[], Any]] = {
    "csv": Csv,
    "jsonl": JsonLines,
    "parquet": Parquet,
    "checkpoint": Checkpoints,
    "record": Records,
}
