"""Records: atomic writes, checked reads, paired comparisons."""

import json

import numpy as np
import pytest
from scipy import stats

from ptncn.records import Record, RecordError, compare, pack, read_record, summarise, unpack


def make_record(**others):
    defaults = {"experiment": "prediction", "row": "ptncn", "data": "mnist", "scale": "smoke", "seed": 0}
    return Record(**{**defaults, **others})


def test_a_written_record_is_read_back(tmp_path):
    errors = np.linspace(0, 1, 5, dtype=np.float32)
    record = make_record(metrics={"se": 1.5}, errors={"test": {"se": pack(errors)}}, status="finished")
    record.write(tmp_path / "deep" / "a.json")
    again = read_record(tmp_path / "deep" / "a.json")
    assert again == record
    assert (again.sequence_errors("test", "se") == errors).all()


def test_nan_is_written_as_null(tmp_path):
    make_record(metrics={"se": float("nan")}).write(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["metrics"] == {"se": None}


def test_older_records_have_their_stand_ins_in_the_config(tmp_path):
    make_record(config={"training": {"data": "mnist", "source": "digits"}}).write(tmp_path / "a.json")
    tree = json.loads((tmp_path / "a.json").read_text())
    del tree["stand_ins"]
    (tmp_path / "a.json").write_text(json.dumps(tree))
    assert read_record(tmp_path / "a.json").stand_ins == {"mnist": "digits"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": "one"}, "'seed' holds 'one'; expected int"),
        ({"schema": 0}, "expected a record of version 1, got version 0"),
        ({"status": "done"}, "expected one of running, failed, finished"),
        ({"colour": 1}, "no field 'colour'"),
        ({"metrics": []}, "'metrics' holds"),
    ],
)
def test_the_problem_with_a_record_is_reported(tmp_path, change, message):
    make_record().write(tmp_path / "a.json")
    tree = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps({**tree, **change}))
    with pytest.raises(RecordError, match=message):
        read_record(tmp_path / "a.json")


@pytest.mark.parametrize(
    "array", [np.arange(12, dtype=np.uint8).reshape(3, 4), np.array([0.1, np.nan]), np.zeros((0,))]
)
def test_arrays_survive_packing(array):
    np.testing.assert_array_equal(unpack(pack(array)), array if array.dtype == np.uint8 else array.astype(np.float32))


def test_a_packed_array_of_another_size_is_refused():
    with pytest.raises(ValueError, match="wrong number of bytes"):
        unpack({**pack(np.zeros(3)), "shape": [4]})
    with pytest.raises(ValueError, match="not a packed array"):
        unpack({"dtype": "float32", "shape": [1], "zlib": "####"})


class TestComparison:
    def test_it_is_scipys_paired_t_test_and_signed_rank_test(self):
        rng = np.random.default_rng(0)
        ours, theirs = rng.normal(size=50), rng.normal(0.5, 1, size=50)
        comparison = compare(ours, theirs)
        assert comparison.p_t == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
        assert comparison.p_wilcoxon == pytest.approx(stats.wilcoxon(ours, theirs, method="approx").pvalue)
        low, high = stats.ttest_rel(ours, theirs).confidence_interval()
        assert (comparison.low, comparison.high) == pytest.approx((low, high))
        assert comparison.difference < 0

    def test_sequences_without_an_error_are_left_out(self):
        assert compare([1.0, 2.0, 4.0, np.nan], [2.0, 2.5, 4.1, np.nan]).pairs == 3

    def test_equal_errors_are_no_difference(self):
        assert not compare([1.0, 2.0], [1.0, 2.0]).significant

    def test_lists_of_different_lengths_cannot_be_paired(self):
        with pytest.raises(ValueError, match="expected two lists of one length"):
            compare([1.0, 2.0], [1.0])


def test_trials_are_summarised_by_mean_and_standard_deviation():
    summary = summarise([1.0, 2.0, 3.0])
    assert (summary.mean, summary.sd, summary.trials) == (2.0, 1.0, 3)
    assert np.isnan(summarise([1.0]).sd)


def test_a_record_with_former_names_is_read(tmp_path):
    make_record().write(tmp_path / "a.json")
    tree = json.loads((tmp_path / "a.json").read_text())
    tree |= {"model": tree.pop("row"), "config": {"training": {"model": "ptncn", "setting": {"units": 3}}}}
    (tmp_path / "a.json").write_text(json.dumps(tree))
    read = read_record(tmp_path / "a.json")
    assert read.row == "ptncn"
    assert read.config == {"training": {"row": "ptncn", "run_config": {"units": 3}}}
