"""The contents of a report, from records with known numbers."""

import pytest
from made_records import RUN_CONFIG, write_complexity_record, write_plain_record, write_record

from ptncn.report.model import Figure, Paragraph, Points, Table
from ptncn.report.pages import make_pages
from ptncn.report.sources import gather


def page_of(path):
    (only,) = make_pages(gather([path]))
    return only


def section(page, title):
    (only,) = [each for each in page.section.sections if each.title == title]
    return only


def rows(page, caption):
    """The rows of the table whose caption begins with this, each as a dict by heading."""
    tables = [part for part in section(page, "Results").parts if isinstance(part, Table)]
    (table,) = [each for each in tables if each.caption.startswith(caption)]
    return {row[0]: dict(zip(table.headings, row, strict=True)) for row in table.rows}


def words(part):
    return "\n".join(part.items if isinstance(part, Points) else [part.words] if isinstance(part, Paragraph) else [])


def not_reproduced(page):
    return "\n".join(words(part) for part in section(page, "What did not reproduce").parts)


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory):
    """The P-TNCN just reaches the paper's 79.67; the LSTM does not reach its 85.27; the copy is not in the paper."""
    path = tmp_path_factory.mktemp("records")
    write_record(path, se=79.67)
    write_record(path, row="lstm-bptt", se=95.50)
    write_record(path, row="copy", se=200.0)
    return page_of(path)


def test_a_page_has_its_parts_in_a_fixed_order(three_runs):
    titles = [each.title for each in three_runs.section.sections]
    assert titles == ["Question", "Metrics", "Command", "Results", "What did not reproduce", "Setup"]


def test_a_row_has_the_papers_value_ours_the_ratio_and_a_mark(three_runs):
    page = rows(three_runs, "**Test SE")
    ours, theirs, copy = page["**P-TNCN**"], page["LSTM (BPTT)"], page["repeat last frame"]
    assert (ours["paper"], ours["ours"], ours["ratio"], ours["reached?"]) == ("79.67", "79.67", "1.00×", "● reached")
    assert (theirs["paper"], theirs["ratio"], theirs["reached?"]) == ("85.27", "1.12×", "▲ not reached")
    assert (copy["paper"], copy["ratio"], copy["reached?"]) == ("–", "–", "")


def test_a_table_names_the_learners_of_each_size(tmp_path):
    write_record(tmp_path)
    write_record(tmp_path, row="copy")
    write_record(tmp_path, row="lstm-bptt", config={"run_config": {**RUN_CONFIG, "epochs": 4}})
    write_record(tmp_path, row="gru-bptt", config={"run_config": {**RUN_CONFIG, "epochs": 4}})
    tables = [part for part in section(page_of(tmp_path), "Results").parts if isinstance(part, Table)]
    caption = next(each.caption for each in tables if each.caption.startswith("**Test SE"))
    assert "4 epochs (paper: 3 × 1,000 units, 10,000 sequences, 10 epochs): LSTM (BPTT), GRU (BPTT)" in caption
    assert ": P-TNCN, repeat last frame" in caption


def test_rows_of_the_paper_without_a_run_are_listed(three_runs):
    assert rows(three_runs, "**Test SE")["GRU (BPTT)"]["reached?"] == "– no record"


def test_differences_are_those_of_a_paired_test(three_runs):
    theirs = rows(three_runs, "**Test SE")["LSTM (BPTT)"]
    assert theirs["difference"] == theirs["95 % from"] == theirs["to"] == "-15.83"  # alike on every sequence
    assert theirs["significant?"] == "yes"


def test_where_the_reference_row_has_no_run_differences_are_from_its_variant(tmp_path):
    write_plain_record(tmp_path, row="ptncn-best", se=76.0)
    write_plain_record(tmp_path, row="lstm-bptt", se=86.0)
    write_plain_record(tmp_path, row="copy", se=70.0)
    page = page_of(tmp_path)
    captions = [part.caption for part in section(page, "Results").parts if isinstance(part, Table)]
    assert any(each.endswith("Differences are from P-TNCN (best).") for each in captions)
    assert rows(page, "**Test SE")["LSTM (BPTT)"]["difference"] == "-10.00"
    assert "test SE, MNIST: better than the P-TNCN (best) with 76.00: repeat last frame 70.00" in not_reproduced(page)


def test_over_seeds_the_mean_and_the_deviation_are_given(tmp_path):
    for seed, se in enumerate((90.0, 91.0, 92.0)):
        write_plain_record(tmp_path, seed=seed, se=se)
    ours = rows(page_of(tmp_path), "**Test SE")["**P-TNCN**"]
    assert (ours["ours"], ours["± sd"], ours["seeds"]) == ("91.00", "1.00", "3")


def test_on_other_data_nothing_counts_as_reached(tmp_path):
    write_plain_record(tmp_path, se=10.0, stand_ins={"mnist": "digits"})
    page = page_of(tmp_path)
    assert rows(page, "**Test SE")["**P-TNCN**"]["reached?"] == "◇ lower; other data"
    assert "not the paper’s data" in words(section(page, "Results").parts[0])


def test_captions_state_the_size_in_the_record(three_runs):
    tables = [part for part in section(three_runs, "Results").parts if isinstance(part, Table)]
    for table in tables:
        assert "laptop: 3 × 500 units, 4,000 sequences, 1 epoch" in table.caption
        assert table.source.startswith("From 3 records in ")
        assert table.command == "ptncn reproduce prediction --scale laptop"


def test_what_did_not_reproduce_is_listed(three_runs):
    text = not_reproduced(three_runs)
    assert "test SE, MNIST: **1 of 2 rows does not reach the paper’s number**: LSTM (BPTT) 95.50 vs 85.27" in text
    assert "test SE, MNIST: the only pair is ordered as in the paper" in text
    assert "laptop: 3 × 500 units" in text


def test_a_changed_order_is_listed_with_its_significance(tmp_path):
    write_plain_record(tmp_path, se=120.0)
    write_plain_record(tmp_path, row="lstm-bptt", se=100.0)
    text = not_reproduced(page_of(tmp_path))
    assert "1 of 1 pair is ordered differently" in text
    assert "**Significant**: LSTM (BPTT) before P-TNCN" in text
    assert "better than the P-TNCN with 120.00: LSTM (BPTT) 100.00" in text


def test_choices_have_the_numbers_of_the_page_of_choices_and_the_values_of_the_record(tmp_path):
    write_plain_record(tmp_path, learner={"sparsity_sign": "derived", "error_rule": "transpose", "beta": 0.5})
    table = section(page_of(tmp_path), "Setup").parts[0]
    assert [int(row[0]) for row in table.rows] == list(range(1, 15))
    assert table.rows[2][2] == "`error_rule=transpose`"


def test_exponents_are_compared_with_the_bounds(tmp_path):
    write_complexity_record(tmp_path, "ptncn", 1.1)
    write_complexity_record(tmp_path, "lstm-bptt", 2.1)
    page = page_of(tmp_path)
    table = rows(page, "**Exponents")
    assert table["**P-TNCN**"]["reached?"] == "● within all bounds"
    assert table["LSTM (BPTT)"]["reached?"] == "▲ time by length"
    assert "time by length: **1 of 2 rows exceeds the bound**: LSTM (BPTT) 2.100 vs 1" in not_reproduced(page)


def test_a_table_has_its_figures(three_runs):
    figures = [part for part in section(three_runs, "Results").parts if isinstance(part, Figure)]
    assert [figure.picture.name for figure in figures] == [
        f"prediction-mnist-{what}" for what in ("learning", "surprise", "film", "strip")
    ]
    assert "truth, P-TNCN, LSTM" in figures[-1].alt


def test_the_papers_scale_comes_first_on_a_page_with_two_scales(tmp_path):
    write_plain_record(tmp_path / "a", se=90.0)
    write_plain_record(tmp_path / "b", scale="paper", se=85.0)
    page = page_of(tmp_path)
    assert [each.title for each in page.section.sections[2:]] == ["At the paper’s size", "At laptop scale"]
    for scale, value in zip(page.section.sections[2:], ("85.00", "90.00"), strict=True):
        (results,) = [each for each in scale.sections if each.title == "Results"]
        assert any(value in row for part in results.parts if isinstance(part, Table) for row in part.rows)


def test_ranks_are_given_for_both(three_runs):
    (row,) = [row for row in three_runs.standings if row[1] == "test SE"]
    assert row[-2:] == ["1 of 2", "1 of 2"]


def test_a_variant_is_compared_with_the_papers_number_of_its_network(tmp_path):
    write_plain_record(tmp_path, se=90.0)
    write_plain_record(tmp_path, row="ptncn-best", se=79.0)
    rows = {row[0]: row for row in page_of(tmp_path).standings if row[1] == "test SE"}
    assert rows["P-TNCN"][4:8] == ["79.67", "90.00", "1.13×", "▲ not reached"]
    assert rows["P-TNCN (best)"][4:8] == ["79.67", "79.00", "0.99×", "● reached"]


def test_a_variant_that_was_not_run_is_not_listed(tmp_path):
    write_plain_record(tmp_path)
    assert {row[0] for row in page_of(tmp_path).standings} == {"P-TNCN"}


def test_learners_are_listed_with_units_and_step_size(tmp_path):
    options = {"hidden_sizes": [500, 500], "optimizer": "rmsprop", "lr": 0.001, "sparsity_sign": "derived"}
    write_plain_record(tmp_path, learner=options)
    table = section(page_of(tmp_path), "Setup").parts[-1]
    assert table.rows == [("P-TNCN", "MNIST", "2 × 500", "rmsprop", "0.001", "–")]


def test_many_rows_are_plotted_against_the_papers_numbers(tmp_path):
    for row in ("ptncn", "lstm-bptt", "lstm-sab", "gru-bptt", "rnn-bptt", "rnn-sab"):
        write_plain_record(tmp_path, row=row)
    figures = [part for part in section(page_of(tmp_path), "Results").parts if isinstance(part, Figure)]
    assert [each.picture.name for each in figures] == ["prediction-test-ce-mnist", "prediction-test-se-mnist"]
