"""From rows to vectors and back."""

import math

import numpy as np
import pytest

from ptncn.streaming import RowError, StreamError
from ptncn.streaming.columns import Columns
from ptncn.streaming.sources import Block


def block(line, values):
    return Block(tuple(values), [list(values.values())], [line])


def begun(values, *args, **options):
    columns = Columns(*args, **options)
    columns.begin(block(2, values), "x.csv")
    return columns


def encode(columns, values):
    """The entries of one row, or the error about it."""
    entries, bad, _ = columns.encode(block(7, values), "x.csv")
    if bad:
        raise bad[0][1]
    return entries[0]


FIRST = {"time": "9:00", "t1": "20", "t2": "21", "load": "0.5", "city": "Rome"}


def test_by_default_every_numeric_column_is_used_and_text_columns_are_reported():
    columns = Columns()
    note = "left out because they contain text: city; use --categorical to include them"
    assert columns.begin(block(2, FIRST), "x.csv") == note
    assert columns.names == ("t1", "t2", "load")
    assert columns.timestamp == "time"


def test_columns_are_selected_by_name_and_pattern_in_the_order_of_the_source():
    assert begun(FIRST, ["load", "t*"]).names == ("t1", "t2", "load")
    assert begun({"a[0]": "1", "a0": "2"}, ["a[0]"]).names == ("a[0]", "a0")  # both the name and the pattern


def test_a_selection_that_matches_nothing_lists_the_columns():
    with pytest.raises(StreamError, match=r"x\.csv: no column matches 'temp\*'; there are: time, t1, t2, load, city"):
        begun(FIRST, ["temp*"])
    with pytest.raises(StreamError, match="no timestamp matches 'when'"):
        begun(FIRST, timestamp="when")
    with pytest.raises(StreamError, match="line 2: no column with numbers among: city"):
        begun({"city": "Rome"})
    with pytest.raises(StreamError, match=r"among: load; with decimal commas, as in 10,25, use --decimal ,$"):
        begun({"load": "10,25"})
    note = "left out because they contain text: load; with decimal commas, as in 10,25, use --decimal ,"
    assert Columns().begin(block(2, {"n": "1", "load": "10,25"}), "x.csv") == note


def test_numbers_and_missing_values_are_encoded():
    columns = begun({"a": "1", "b": "2"}, missing=["NA", "-999"])
    assert encode(columns, {"a": " 1.5", "b": 2}).tolist() == [1.5, 2.0]
    for text in ("", " ", "NA", "-999", None):
        assert math.isnan(encode(columns, {"a": text, "b": "1"})[0])


@pytest.mark.parametrize("value", ["x", "inf", "1e300", "1,5", [1], {}, 10**400, math.inf])
def test_a_value_that_is_not_a_number_is_an_error_with_line_and_column(value):
    with pytest.raises(RowError, match=r"x\.csv: line 7: column 'a' holds "):
        encode(begun({"a": "1"}), {"a": value})


def test_only_the_bad_entry_is_missing():
    entries, bad, _ = begun({"a": "1", "b": "2"}).encode(block(7, {"a": "x", "b": "3"}), "x.csv")
    assert math.isnan(entries[0, 0])
    assert entries[0, 1] == 3
    assert [row for row, _ in bad] == [0]


@pytest.mark.parametrize("value", ["nan", "NaN", "NAN", " nan ", math.nan, None, "null"])
def test_a_nan_is_a_missing_value(value):
    assert math.isnan(encode(begun({"a": "1"}), {"a": value})[0])


@pytest.mark.parametrize(("text", "number"), [("1,5", 1.5), ("-0,25", -0.25), ("3", 3.0)])
def test_decimal_commas_are_read(text, number):
    assert encode(begun({"a": "1,0"}, decimal=","), {"a": text})[0] == number


def test_targets_come_first_then_features_and_neither_time_nor_key():
    columns = begun(FIRST, ["load"], features=["t*"], key="city")
    assert columns.names == ("load",)
    assert columns.features == ("t1", "t2")
    assert encode(columns, FIRST).tolist() == [0.5, 20.0, 21.0]
    assert columns.column("city", block(3, FIRST)) == ["Rome"]
    assert columns.decode([0.7]) == {"load": 0.7}


class TestCategories:
    def test_labels_get_slots_as_they_appear_and_the_last_slot_is_for_all_others(self):
        columns = begun({"c": "red"}, categorical=["c"], slots=3)
        assert columns.width == 3
        assert [encode(columns, {"c": value}).tolist() for value in ("red", "blue", "green", "red")] == [
            [1, 0, 0],
            [0, 1, 0],
            [0, 0, 1],
            [1, 0, 0],
        ]
        assert columns.decode([0.2, 0.5, 0.1]) == {"c": "blue"}
        assert columns.decode([0.2, 0.5, 0.9]) == {"c": "other"}

    def test_an_unused_slot_is_never_predicted(self):
        columns = begun({"c": "red"}, categorical=["c"], slots=4)
        encode(columns, {"c": "red"})
        assert columns.decode([0.1, 9.0, 9.0, 0.0]) == {"c": "red"}

    def test_a_missing_category_is_missing_in_all_its_slots(self):
        columns = begun({"c": "red", "a": 1}, categorical=["c"], slots=2)
        assert np.isnan(encode(columns, {"c": "", "a": 1})).tolist() == [True, True, False]
        assert columns.decode([math.nan, math.nan, 1.0]) == {"c": None, "a": 1.0}

    def test_categories_are_saved(self):
        columns = begun({"c": "red", "a": 1}, categorical=["c"], slots=3)
        encode(columns, {"c": "red", "a": 1})
        other = Columns(categorical=["c"], slots=3)
        other.load_tree(columns.tree())
        assert encode(other, {"c": "blue", "a": 2}).tolist() == encode(columns, {"c": "blue", "a": 2}).tolist()


class TestChange:
    def test_refused(self):
        columns = begun({"a": "1", "b": "2"})
        with pytest.raises(RowError, match="line 7: the columns changed: 'b' vanished and 'c' appeared"):
            encode(columns, {"a": "1", "c": "2"})

    def test_masked(self):
        columns = begun({"a": "1", "b": "2"}, change="mask")
        assert encode(columns, {"c": "3", "a": "1"}).tolist() == pytest.approx([1.0, math.nan], nan_ok=True)

    def test_another_order_of_columns_is_not_a_change(self):
        assert encode(begun({"a": "1", "b": "2"}), {"b": "2", "a": "1"}).tolist() == [1.0, 2.0]
