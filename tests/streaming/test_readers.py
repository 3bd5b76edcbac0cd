"""Readers: every row with its line, positions to resume from, and clear errors."""

import gzip
import os

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptncn.streaming import RowError, StreamError, open_source
from ptncn.streaming.lines import LineReader
from ptncn.streaming.readers import CsvReader, JsonReader, ParquetReader


@pytest.fixture
def file(tmp_path):
    def write(content, name="x.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def one(source):
    """The next row as (line, values); waits for it."""
    while not len(block := source.read(1)):
        pass
    return block.lines[0], dict(zip(block.names, block.rows[0], strict=True))


def read_all(source, most=3):
    """Every row as (line, values), with the errors in their places."""
    rows = []
    while True:
        try:
            block = source.read(most)
        except RowError as error:
            rows.append(error)
            continue
        if block is None:
            return rows
        rows += [
            (line, dict(zip(block.names, row, strict=True))) for line, row in zip(block.lines, block.rows, strict=True)
        ]


def lines_of(reader, most=2):
    """Every line; None for one that is too long."""
    read = []
    while True:
        try:
            lines = reader.read(most)
        except RowError:
            read.append(None)
            continue
        if lines is None:
            return read
        read += lines


class TestLines:
    def test_numbers_and_offsets(self, file):
        read = lines_of(LineReader(file(b"ab\n\nc\r\nlast")))
        assert [line[:3] for line in read] == [(1, 0, 3), (2, 3, 4), (3, 4, 7), (4, 7, 11)]

    def test_a_long_line_is_an_error_in_bounded_memory_and_the_next_line_follows(self, file):
        lines = LineReader(file(b"a\n" + b"x" * 1_000_000 + b"\nb\n"), longest=1000)
        assert [line.data for line in lines.read(9)] == [b"a\n"]
        with pytest.raises(RowError, match="line 2: longer than 1,000 bytes"):
            lines.read(9)
        assert len(lines._buffer) < 200_000
        assert lines.read(9)[0][:3] == (3, 1_000_003, 1_000_005)

    @given(content=st.binary(max_size=300), longest=st.integers(1, 50), most=st.integers(1, 5))
    @settings(max_examples=60, deadline=None)
    def test_any_content_is_read_as_the_lines_of_the_file(self, tmp_path_factory, content, longest, most):
        path = tmp_path_factory.mktemp("lines") / "x"
        path.write_bytes(content)
        read = lines_of(LineReader(str(path), longest=longest), most)
        expected = content.split(b"\n")
        expected = [part + b"\n" for part in expected[:-1]] + ([expected[-1]] if expected[-1] else [])
        assert len(read) == len(expected)
        for actual, line in zip(read, expected, strict=True):
            assert actual is None or (actual.data == line == content[actual.start : actual.end])
            assert actual is not None or len(line.rstrip(b"\n")) > longest - 1


class TestFollow:
    """Like `tail -F`."""

    def follow(self, path):
        source = CsvReader(LineReader(path, follow=True, poll=0.01))
        return lambda: one(source)[1]["a"]

    def test_an_incomplete_line_waits_for_its_end(self, file):
        path = file("a\n1\n")
        source = CsvReader(LineReader(path, follow=True, poll=0.001))
        assert one(source)[1] == {"a": "1"}
        with open(path, "a") as more:
            more.write("2")
            more.flush()
            assert [len(source.read(9)) for _ in range(3)] == [0, 0, 0]
            more.write("5\n3\n")
        assert [one(source)[1]["a"] for _ in range(2)] == ["25", "3"]

    def test_a_replaced_file_is_read_to_its_end_then_the_new_one(self, file):
        path = file("a\n1\n")
        follow = self.follow(path)
        assert follow() == "1"
        with open(path, "a") as more:
            more.write("2\n3")  # written at the last moment, without a line break
        os.rename(path, path + ".1")
        file("a\n4\n")
        assert [follow() for _ in range(3)] == ["2", "3", "4"]

    def test_a_truncated_file_is_read_from_its_start(self, file):
        path = file("a\n1\n2\n")
        follow = self.follow(path)
        assert [follow(), follow()] == ["1", "2"]
        os.truncate(path, 0)
        with open(path, "a") as more:
            more.write("7\n")
        assert follow() == "7"

    def test_a_missing_file_is_waited_for(self, file):
        path = file("a\n1\n")
        source = CsvReader(LineReader(path, follow=True, poll=0.001))
        one(source)
        os.rename(path, path + ".1")
        assert [len(source.read(9)) for _ in range(3)] == [0, 0, 0]
        file("a\n2\n")
        assert one(source)[1]["a"] == "2"

    def test_a_rotation_while_stopped_is_handled_on_resume(self, file):
        path = file("a\n1\n2\n3\n")
        source = CsvReader(LineReader(path, follow=True, poll=0.001))
        one(source)
        position = source.position()
        os.rename(path, path + ".1")
        file("a\n4\n")
        again = CsvReader(LineReader(path, follow=True, poll=0.001))
        again.seek(position)
        assert [one(again)[1]["a"] for _ in range(3)] == ["2", "3", "4"]


class TestCompressed:
    CONTENT = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(20_000))

    @pytest.fixture(params=["gz", "zst"])
    def path(self, file, request):
        if request.param == "gz":  # two streams in succession, as from `cat a.gz b.gz`
            half = len(self.CONTENT) // 2
            return file(gzip.compress(self.CONTENT[:half]) + gzip.compress(self.CONTENT[half:]), "x.csv.gz")
        zstandard = pytest.importorskip("zstandard")
        return file(zstandard.ZstdCompressor(write_checksum=True).compress(self.CONTENT), "x.csv.zst")

    def test_it_is_read_like_the_plain_file(self, path, file):
        assert read_all(open_source(path), 500) == read_all(open_source(file(self.CONTENT)), 500)

    def test_it_is_resumed(self, path):
        source = open_source(path)
        source.read(12_345)
        again = open_source(path)
        again.seek(source.position(12))
        assert one(again) == (14, {"a": "12", "b": "144"})

    def test_a_truncated_or_damaged_file_is_an_error(self, path, tmp_path):
        with open(path, "rb") as file:
            data = file.read()
        for name, content in (("cut", data[: len(data) // 3]), ("damaged", data[:40] + b"xxxx" + data[44:])):
            bad = tmp_path / (name + os.path.basename(path))
            bad.write_bytes(content)
            with pytest.raises(StreamError, match=str(bad)):
                read_all(open_source(str(bad)), 500)


class TestCsv:
    def test_rows_by_name_with_their_lines(self, file):
        rows = read_all(open_source(file("a,b\n1,x\n\n2,y\n")))
        assert rows == [(2, {"a": "1", "b": "x"}), (4, {"a": "2", "b": "y"})]

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_the_delimiter_is_detected(self, file, delimiter):
        rows = read_all(open_source(file(f"a{delimiter}b\n1{delimiter}2\n")))
        assert rows == [(2, {"a": "1", "b": "2"})]

    def test_a_byte_order_mark_and_carriage_returns_are_not_part_of_the_values(self, file):
        assert read_all(open_source(file(b"\xef\xbb\xbfa,b\r\n1,2\r\n"))) == [(2, {"a": "1", "b": "2"})]

    def test_a_quoted_field_may_contain_line_breaks_and_later_positions_are_right(self, file):
        path = file('a,b\n1,"x\ny"\n2,z\n')
        source = open_source(path)
        assert one(source)[1]["b"] == "x\ny"
        position = source.position()
        again = open_source(path)
        again.seek(position)
        assert read_all(again) == [(4, {"a": "2", "b": "z"})]

    def test_an_unclosed_quote_affects_only_its_line(self, file):
        first, *others = read_all(open_source(file('a,b\n1,"x\n2,y\n3,z\n')))
        assert "line 2: not CSV" in str(first)
        assert [row[1]["b"] for row in others] == ["y", "z"]

    def test_a_repeated_header_is_not_a_row_and_a_new_header_applies_from_there_on(self, file):
        rows = read_all(open_source(file("a,b\n1,2\na,b\n3,4\nb,c\n5,6\n")))
        assert [row[1] for row in rows] == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}, {"b": "5", "c": "6"}]

    def test_without_a_header_columns_are_numbered(self, file):
        assert read_all(open_source(file("1,2\n3,4\n"), header=False))[0][1] == {"x0": "1", "x1": "2"}

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
    def test_a_bad_header_is_rejected(self, file, content, message):
        with pytest.raises(StreamError, match=message):
            one(open_source(file(content)))

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b"1", "line 3: 1 fields; the header names 2"),
            (b"1,2,3", "line 3: 3 fields; the header names 2"),
            (b'1,"2"x', "line 3: not CSV"),
            (b"1,\xc3(", "line 3: byte 3 of the line, 0xc3, is not UTF-8"),
        ],
    )
    def test_a_bad_row_names_its_line_and_the_next_one_follows(self, file, line, message):
        source = open_source(file(b"a,b\n1,2\n" + line + b"\n3,4\n"))
        one(source)
        before = source.position()
        with pytest.raises(RowError, match=message):
            one(source)
        assert source.position() == before  # a fixed file can be resumed at the bad line
        assert one(source) == (4, {"a": "3", "b": "4"})


class TestJson:
    def test_objects_and_lists(self, file):
        rows = read_all(open_source(file('{"a": 1.5, "b": null}\n\n[1, 2]\n', "x.jsonl")))
        assert rows == [(1, {"a": 1.5, "b": None}), (3, {"x0": 1, "x1": 2})]

    @pytest.mark.parametrize(
        "line",
        [b"{", b"3", b'"x"', b"nul", b"\xff", b"[" * 100_000, b'{"a": 1' + b"0" * 5000 + b"}", b'{"a":1}{"a":2}'],
    )
    def test_a_bad_line_names_its_number_and_the_next_one_follows(self, file, line):
        bad, good = read_all(open_source(file(line + b'\n{"a": 1}\n', "x.jsonl")))
        assert "line 1: " in str(bad)
        assert good[1] == {"a": 1}


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
        assert [row[1]["a"] for row in rows] == list(range(2500))
        assert rows[1] == (2, {"a": 1.0, "b": None})

    @pytest.mark.parametrize("at", [0, 1, 699, 700, 1399, 2400, 2500])
    def test_reading_resumes_from_any_row(self, path, at):
        source = open_source(path)
        for _ in range(at):
            one(source)
        again = open_source(path)
        again.seek(source.position())
        assert [row[1]["a"] for row in read_all(again)] == list(range(at, 2500))

    def test_an_invalid_file_is_rejected(self, file):
        pytest.importorskip("pyarrow")
        with pytest.raises(StreamError, match=r"x\.parquet: not a Parquet file"):
            ParquetReader(file(b"PAR1 no", "x.parquet"))

    def test_a_column_without_a_text_name_is_rejected(self, tmp_path):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        path = tmp_path / "x.parquet"
        parquet.write_table(pyarrow.table({"abcdefgh": [1.0, 2.0]}), path, store_schema=False)
        path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"\xff" * 8))
        with pytest.raises(StreamError, match=r"x\.parquet: not a Parquet file"):
            ParquetReader(str(path))

    def test_inconsistent_row_groups_are_rejected(self, tmp_path):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        path, messages = tmp_path / "x.parquet", []
        parquet.write_table(pyarrow.table({"a": [1.0, 2.0, 3.0]}), path, row_group_size=2, store_schema=False)
        good = path.read_bytes()
        footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
        for at in (at for at in range(footer, len(good)) if good[at] == 4):  # 2 as a zigzag varint, among others
            path.write_bytes(good[:at] + b"\0" + good[at + 1 :])
            try:
                assert [row["a"] for _, row in read_all(open_source(str(path)))] == [1.0, 2.0, 3.0]
            except StreamError as error:
                messages.append(str(error))
        assert any("damaged: its row groups hold 1 rows, but the file declares 3" in each for each in messages)

    def test_without_pyarrow_the_error_says_what_to_install(self, file, monkeypatch):
        monkeypatch.setattr("ptncn.streaming.readers.import_module", _not_there)
        with pytest.raises(StreamError, match=r"pip install 'ptncn\[parquet\]'"):
            open_source(file(b"", "x.parquet"))


def _not_there(name):
    raise ImportError(name)


class TestAnyBytes:
    """Whatever a file contains, each line is a row or an error that names it, and reading resumes from any row."""

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
                block = source.read(1)
                if block is None:
                    break
                if not len(block):
                    continue
                rows.append((block.lines[0], dict(zip(block.names, block.rows[0], strict=True))))
                if sum(not isinstance(row, RowError) for row in rows) <= stop:
                    kept, position = len(rows), source.position()
            except RowError as error:
                rows.append(error)
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
    one(source)
    one(source)
    position = source.position()
    file("a\n1\n9\n3\n")
    with pytest.raises(StreamError, match="line 3, the last one in the checkpoint, has changed"):
        open_source(path).seek(position)
    file("a\n1\n")
    with pytest.raises(StreamError, match="line 3"):
        open_source(path).seek(position)


def test_the_first_character_identifies_the_format_if_the_name_does_not(file):
    assert isinstance(open_source(file('{"a": 1}\n', "feed")), JsonReader)
    assert isinstance(open_source(file("a,b\n", "feed")), CsvReader)


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path):
    with pytest.raises(StreamError, match=r"nowhere\.csv: cannot be opened: No such file"):
        open_source(str(tmp_path / "nowhere.csv"))
    with pytest.raises(StreamError, match="got a directory"):
        open_source(str(tmp_path))
    with pytest.raises(ValueError, match="unknown input format 'xml'; choose one of: csv, jsonl, parquet"):
        open_source(str(tmp_path), "xml")


def test_a_carriage_return_in_a_last_line_without_a_line_break_is_rejected(file):
    source = CsvReader(LineReader(file("a,b\n1\r,2")))
    with pytest.raises(RowError, match="line 2: not CSV"):
        source.read(1)


def test_a_garbage_collected_source_closes_its_file(file):
    path = file("a\n1\n")
    source = CsvReader(LineReader(path))
    assert [each.path for each in psutil.Process().open_files()].count(path) == 1
    source.read(1)
    del source
    assert path not in [each.path for each in psutil.Process().open_files()]
