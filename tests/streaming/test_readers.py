"""Readers: every row with its line, positions from which the rest follows, and a clear word about what is wrong."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptncn.streaming import RowError, StreamError, open_source
from ptncn.streaming.csv_reader import CsvReader
from ptncn.streaming.json_reader import JsonReader
from ptncn.streaming.lines import LineReader
from ptncn.streaming.parquet_reader import ParquetReader


@pytest.fixture
def file(tmp_path):
    def write(content, name="x.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def read_all(source):
    """Every row, with the errors in their places."""
    rows = []
    while True:
        try:
            rows.append(next(source))
        except RowError as error:
            rows.append(error)
        except StopIteration:
            return rows


class TestLines:
    def test_numbers_and_offsets(self, file):
        lines = LineReader(file(b"ab\n\nc\r\nlast"))
        read = [lines.read() for _ in range(5)]
        assert read[4] is None
        assert [(line.number, line.start, line.end) for line in read[:4]] == [
            (1, 0, 3),
            (2, 3, 4),
            (3, 4, 7),
            (4, 7, 11),
        ]

    def test_a_long_line_is_an_error_in_bounded_memory_and_the_next_line_follows(self, file):
        lines = LineReader(file(b"a\n" + b"x" * 1_000_000 + b"\nb\n"), longest=1000)
        assert lines.read().data == b"a\n"
        with pytest.raises(RowError, match="line 2: longer than 1,000 bytes"):
            lines.read()
        assert len(lines._buffer) < 200_000
        assert lines.read()[:3] == (3, 1_000_003, 1_000_005)

    @given(content=st.binary(max_size=300), longest=st.integers(1, 50))
    @settings(max_examples=60, deadline=None)
    def test_lines_are_those_of_the_file_whatever_is_in_it(self, tmp_path_factory, content, longest):
        path = tmp_path_factory.mktemp("lines") / "x"
        path.write_bytes(content)
        reader, read = LineReader(str(path), longest=longest), []
        while True:
            try:
                line = reader.read()
            except RowError:
                read.append(None)
                continue
            if line is None:
                break
            assert content[line.start : line.end] == line.data
            read.append(line.data)
        wanted = content.split(b"\n")
        wanted = [part + b"\n" for part in wanted[:-1]] + ([wanted[-1]] if wanted[-1] else [])
        assert len(read) == len(wanted)
        for got, line in zip(read, wanted, strict=True):
            assert got == line if len(line.rstrip(b"\n")) <= longest - 1 else got in (None, line)

    def test_a_growing_file_is_followed_and_half_a_line_waits_for_its_other_half(self, file):
        path = file("a\n1\n")
        source = CsvReader(LineReader(path, follow=True, poll=0.01))
        assert next(source).values == {"a": "1"}
        parts = iter(("2", "5\n", "3\n"))

        def grow():
            with open(path, "a") as more:
                more.write(next(parts))

        source.idle = grow  # the file grows whenever the reader has come to its end
        assert [next(source).values["a"] for _ in range(2)] == ["25", "3"]
        assert list(parts) == []

    @pytest.mark.parametrize("what", ["cut", "removed", "replaced"])
    def test_a_followed_file_that_is_not_there_any_more_is_an_error(self, file, what):
        path = file("a\n1\n")
        source = CsvReader(LineReader(path, follow=True, poll=0.01))
        next(source)
        if what == "cut":
            os.truncate(path, 1)
        else:
            os.rename(path, path + ".old")
            if what == "replaced":
                file("a\n1\n")
        with pytest.raises(StreamError, match=what):
            next(source)


class TestCsv:
    def test_rows_by_name_with_their_lines(self, file):
        rows = read_all(open_source(file("a,b\n1,x\n\n2,y\n")))
        assert rows == [(2, {"a": "1", "b": "x"}), (4, {"a": "2", "b": "y"})]

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_the_delimiter_is_found(self, file, delimiter):
        rows = read_all(open_source(file(f"a{delimiter}b\n1{delimiter}2\n")))
        assert rows == [(2, {"a": "1", "b": "2"})]

    def test_a_byte_order_mark_and_carriage_returns_are_no_part_of_the_values(self, file):
        assert read_all(open_source(file(b"\xef\xbb\xbfa,b\r\n1,2\r\n"))) == [(2, {"a": "1", "b": "2"})]

    def test_a_quoted_field_may_hold_line_breaks_and_positions_are_right_behind_it(self, file):
        path = file('a,b\n1,"x\ny"\n2,z\n')
        source = open_source(path)
        assert next(source).values["b"] == "x\ny"
        position = source.position()
        again = open_source(path)
        again.seek(position)
        assert read_all(again) == [(4, {"a": "2", "b": "z"})]

    def test_a_quote_that_is_never_closed_takes_only_its_line_with_it(self, file):
        first, *others = read_all(open_source(file('a,b\n1,"x\n2,y\n3,z\n')))
        assert "line 2: not CSV" in str(first)
        assert [row.values["b"] for row in others] == ["y", "z"]

    def test_a_repeated_header_is_no_row_and_another_one_counts_from_there_on(self, file):
        rows = read_all(open_source(file("a,b\n1,2\na,b\n3,4\nb,c\n5,6\n")))
        assert [row.values for row in rows] == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}, {"b": "5", "c": "6"}]

    def test_without_a_header_columns_are_numbered(self, file):
        assert read_all(open_source(file("1,2\n3,4\n"), header=False))[0].values == {"x0": "1", "x1": "2"}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "empty"),
            (b"\n\n", "blank"),
            (b"1,2\n3,4\n", "line 1: numbers where the names .* --no-header"),
            (b"a,a\n1,2\n", "line 1: two columns are called 'a'"),
            (b"a,\xff\n1,2\n", "line 1: byte 3 of the line, 0xff, is not UTF-8"),
        ],
    )
    def test_a_header_that_cannot_be(self, file, content, message):
        with pytest.raises(StreamError, match=message):
            next(open_source(file(content)))

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b"1", "line 3: 1 fields; the header names 2"),
            (b"1,2,3", "line 3: 3 fields; the header names 2"),
            (b'1,"2"x', "line 3: not CSV"),
            (b"1,\xc3(", "line 3: byte 3 of the line, 0xc3, is not UTF-8"),
        ],
    )
    def test_a_bad_row_says_its_line_and_the_next_one_follows(self, file, line, message):
        source = open_source(file(b"a,b\n1,2\n" + line + b"\n3,4\n"))
        next(source)
        before = source.position()
        with pytest.raises(RowError, match=message):
            next(source)
        assert source.position() == before  # a fixed file can be resumed at the bad line
        assert next(source) == (4, {"a": "3", "b": "4"})


class TestJson:
    def test_objects_and_lists(self, file):
        rows = read_all(open_source(file('{"a": 1.5, "b": null}\n\n[1, 2]\n', "x.jsonl")))
        assert rows == [(1, {"a": 1.5, "b": None}), (3, {"x0": 1, "x1": 2})]

    @pytest.mark.parametrize(
        "line",
        [b"{", b"3", b'"x"', b"nul", b"\xff", b"[" * 100_000, b'{"a": 1' + b"0" * 5000 + b"}", b'{"a":1}{"a":2}'],
    )
    def test_a_bad_line_says_its_number_and_the_next_one_follows(self, file, line):
        bad, good = read_all(open_source(file(line + b'\n{"a": 1}\n', "x.jsonl")))
        assert "line 1: " in str(bad)
        assert good.values == {"a": 1}


class TestParquet:
    @pytest.fixture
    def path(self, tmp_path):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = pyarrow.table({"a": [float(index) for index in range(2500)], "b": ["x", None] * 1250})
        parquet.write_table(table, tmp_path / "x.parquet", row_group_size=700)
        return str(tmp_path / "x.parquet")

    def test_rows(self, path):
        rows = read_all(open_source(path))
        assert [row.values["a"] for row in rows] == list(range(2500))
        assert rows[1] == (2, {"a": 1.0, "b": None})

    @pytest.mark.parametrize("at", [0, 1, 699, 700, 1399, 2400, 2500])
    def test_it_goes_on_from_any_row(self, path, at):
        source = open_source(path)
        for _ in range(at):
            next(source)
        again = open_source(path)
        again.seek(source.position())
        assert [row.values["a"] for row in read_all(again)] == list(range(at, 2500))

    def test_a_file_that_is_none_is_refused(self, file):
        pytest.importorskip("pyarrow")
        with pytest.raises(StreamError, match=r"x\.parquet: not a Parquet file"):
            ParquetReader(file(b"PAR1 no", "x.parquet"))

    def test_without_pyarrow_the_error_says_what_to_install(self, file, monkeypatch):
        monkeypatch.setattr("ptncn.streaming.parquet_reader.import_module", _not_there)
        with pytest.raises(StreamError, match=r"pip install 'ptncn\[parquet\]'"):
            open_source(file(b"", "x.parquet"))


def _not_there(name):
    raise ImportError(name)


class TestAnyBytes:
    """Whatever a file holds, each line is a row or an error that names it, and from any row on the rest is the same."""

    @given(
        content=st.one_of(
            st.binary(max_size=200), st.text('a,b\n"1 .;{}[]:\r\t\0é', max_size=200).map(lambda text: text.encode())
        ),
        kind=st.sampled_from([CsvReader, JsonReader]),
        data=st.data(),
    )
    @settings(max_examples=150, deadline=None)
    def test_read_and_resumed(self, tmp_path_factory, content, kind, data):
        path = tmp_path_factory.mktemp("fuzz") / "x"
        path.write_bytes(b"a,b\n" + content)
        source = kind(LineReader(str(path), longest=100))
        stop = data.draw(st.integers(1, 10))
        rows, fatal, kept = [], None, None
        while fatal is None:
            try:
                rows.append(next(source))
                if sum(not isinstance(row, RowError) for row in rows) <= stop:
                    kept, position = len(rows), source.position()
            except RowError as error:
                rows.append(error)
            except StopIteration:
                break
            except StreamError as error:
                fatal = error
        errors = [row for row in rows if isinstance(row, RowError)]
        assert all(f"{path}: line {error.line}: " in str(error) for error in errors)
        assert fatal is None or str(path) in str(fatal)
        if kept and fatal is None:
            again = kind(LineReader(str(path), longest=100))
            again.seek(position)
            assert list(map(str, read_all(again))) == list(map(str, rows[kept:]))


def test_a_source_that_changed_before_the_position_is_not_resumed(file):
    path = file("a\n1\n2\n3\n")
    source = open_source(path)
    next(source)
    next(source)
    position = source.position()
    file("a\n1\n9\n3\n")
    with pytest.raises(StreamError, match="line 3, the last that the checkpoint knows, is another one now"):
        open_source(path).seek(position)
    file("a\n1\n")
    with pytest.raises(StreamError, match="line 3"):
        open_source(path).seek(position)


def test_the_first_character_tells_where_the_name_does_not(file):
    assert isinstance(open_source(file('{"a": 1}\n', "feed")), JsonReader)
    assert isinstance(open_source(file("a,b\n", "feed")), CsvReader)


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(StreamError, match=r"nowhere\.csv: cannot be opened: No such file"):
        open_source(str(tmp_path / "nowhere.csv"))
    with pytest.raises(StreamError, match="a directory"):
        open_source(str(tmp_path))
    with pytest.raises(ValueError, match="unknown format 'xml'; choose one of: csv, jsonl, parquet"):
        open_source(str(tmp_path), "xml")
