"""The sentences of the page follow from the numbers, whichever learner was better."""

import copy
import io
import re
import shlex

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from ptncn.cli import app
from ptncn.demo import narrative
from ptncn.demo.page import BEFORE, COMMANDS, LONG, demo_page, error_table, frame_errors, make_pictures, shots
from ptncn.demo.simulate import LSTM, PTNCN


@pytest.fixture(scope="module")
def pictures(record):
    return make_pictures(record)


def set_parts(record, ours, theirs):
    tree = copy.deepcopy(record)
    for part, our, their in zip(tree["parts"], ours, theirs, strict=True):
        part["all"] |= {PTNCN: our, LSTM: their, "copy": 10.0}
    return tree


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ((1, 1, 1, 1), (2, 2, 2, 2), "The P-TNCN predicted better in all 4 parts"),
        ((2, 2, 2, 2), (1, 1, 1, 1), "The LSTM predicted better in all 4 parts"),
        ((2, 2, 2, 1), (1, 1, 1, 2), "The LSTM predicted better in 3 of the 4 parts of the stream, the P-TNCN in 1."),
        ((1, 1, 1, 1), (2, 2, 2, 1), "The P-TNCN predicted better in 3 of the 4 parts of the stream, neither in 1."),
        ((1, 1, 2, 2), (2, 2, 1, 1), "Neither learner was clearly better"),
        ((1, 1, 1, 1), (1.005, 1, 1, 1), "Neither learner was clearly better"),
    ],
)
def test_the_headline_names_the_better_learner(record, ours, theirs, expected):
    text = narrative.headline(set_parts(record, ours, theirs))
    assert text.startswith(f"**{expected}")
    assert f"is {np.mean(ours):.1f} for the P-TNCN" in text


def test_every_comparison_that_the_lstm_won_is_listed(record, swapped):
    text = narrative.lstm_wins(all_won(record, PTNCN))
    assert "the LSTM was better in none of 12 comparisons. " in text
    assert "it was better in none of 12 evaluations, and the P-TNCN in 12." in text
    text = narrative.lstm_wins(all_won(record, LSTM))
    assert "the LSTM was better in 12 of 12 comparisons: all of digits, the first frames of digits, " in text
    assert "it was better in 12 of 12 evaluations, and the P-TNCN in none." in text
    one, other = (narrative.lstm_wins(each) for each in (record, swapped))
    assert one != other


def test_a_lead_that_ends_with_frozen_weights_is_stated(record):
    online, frozen = all_won(record, PTNCN), all_won(record, LSTM)
    assert narrative.online_lead(online) is None
    assert narrative.online_lead(frozen) is None
    assert "not with frozen weights" in narrative.online_lead(online | {"evaluations": frozen["evaluations"]})


@pytest.mark.parametrize(
    ("without", "expected"), [(12.0, "that helps"), (10.0, "hardly any difference"), (8.0, "that hurts")]
)
def test_the_effect_of_correction_with_frozen_weights_is_stated(record, without, expected):
    tree = copy.deepcopy(record)
    tree["evaluations"] |= {PTNCN: [[99.0] * 3] + [[10.0] * 3] * 4, "uncorrected": [[99.0] * 3] + [[without] * 3] * 4}
    text = narrative.correcting(tree)
    assert expected in text
    assert f"is 10.0 with correction and {without:.1f} without" in text


def test_the_error_on_a_dataset_never_learnt_is_stated(record):
    tree = copy.deepcopy(record)
    for name, error in ((PTNCN, 11.0), (LSTM, 12.0)):
        tree["evaluations"][name][1][1] = error
    tree["evaluations"]["copy"][0][1] = 13.0
    expected = "the error on letters is 11.0 for the P-TNCN, 12.0 for the LSTM and 13.0 for repeating the last frame"
    assert expected in narrative.frozen(tree)


def all_won(record, winner):
    tree = copy.deepcopy(record)
    for part in tree["parts"]:
        for span in ("all", "first", "last"):
            part[span] |= {name: 1.0 if name == winner else 2.0 for name in (PTNCN, LSTM)}
    for name in (PTNCN, LSTM):
        tree["evaluations"][name] = [[1.0 if name == winner else 2.0] * 3] * 5
    return tree


def test_forgetting_is_stated_if_it_occurs(record):
    tree = copy.deepcopy(record)
    tree["evaluations"][PTNCN][1][0], tree["evaluations"][PTNCN][3][0] = 10.0, 9.0
    tree["evaluations"][LSTM][1][0], tree["evaluations"][LSTM][3][0] = 10.0, 15.0
    text = narrative.forgetting(tree)
    assert "the P-TNCN forgot nothing (10.0, then 9.0)" in text
    assert "the LSTM forgot some, with 50% more error (10.0, then 15.0)" in text


def test_returning_digits_are_compared_with_the_start_and_end_of_the_first_part(record):
    tree = copy.deepcopy(record)
    for name, values in ((PTNCN, (3.0, 2.0, 1.0)), (LSTM, (3.0, 1.0, 2.0)), ("copy", (4.0, 4.0, 4.0))):
        tree["parts"][0]["first"][name], tree["parts"][0]["last"][name], tree["parts"][3]["first"][name] = values
    text = narrative.returning(tree)
    assert "the P-TNCN starts at 25%, better than it had ended (50%; it first began at 75%)" in text
    assert "the LSTM starts at 50%, worse than it had ended (25%" in text


def test_how_long_it_took_to_beat_the_last_frame_is_read_from_the_curve(record):
    tree = copy.deepcopy(record)
    tree["curve"] = {"frames": [10, 30, 50], "copy": [1.0] * 3, PTNCN: [2.0, 0.5, 0.4], LSTM: [2.0, 2.0, 2.0]}
    text = narrative.learning(tree)
    assert "P-TNCN: within 40 frames" in text
    assert "LSTM: never" in text


def test_the_table_has_the_numbers_of_the_record(record):
    table = error_table(record)
    assert len(table.rows) == 4 * 3 + 2
    assert table.rows[0][1] == f"{record['parts'][0]['all'][PTNCN]:.1f}"
    assert table.rows[-3][2] == f"{record['parts'][3]['last'][LSTM]:.1f}"
    assert table.rows[-2][1] == f"{record['learners'][PTNCN]['weights']:,}"


def test_the_animation_shows_the_start_every_change_and_the_end(record, pictures):
    chosen = shots(record)
    assert [len(shot.rows["truth"]) for shot in chosen] == [LONG, *[BEFORE, LONG] * 3, LONG]
    assert "letters, new" in chosen[2].heading
    assert "digits again" in chosen[6].heading
    assert [shot.place for shot in chosen] == sorted(shot.place for shot in chosen)
    with Image.open(io.BytesIO(pictures["film"].gif)) as film:
        assert film.n_frames == pytest.approx(2 * LONG + 3 * (LONG + BEFORE), abs=3)  # equal frames may be one
        assert film.size == (pictures["film"].width, pictures["film"].height)


def test_errors_in_the_animation_are_those_of_its_frames():
    black, white = np.zeros((2, 2, 2), np.uint8), np.full((2, 2, 2), 255, np.uint8)
    assert frame_errors({"truth": white, PTNCN: black}, PTNCN) == [4.0, 4.0]
    assert frame_errors({"truth": np.stack([black[0], white[0]])}, "truth") == [0.0, 4.0]


@pytest.mark.parametrize("line", [line for line in COMMANDS if not line.startswith("ptncn demo")])
def test_the_commands_on_the_page_work(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "your.csv").write_text("load\n" + "".join(f"{(t % 7) / 7}\n" for t in range(60)))
    result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
    assert result.exit_code == 0, result.output


def test_the_page_is_self_contained_and_has_its_sections_in_order(record, pictures):
    text = demo_page(record, pictures)
    titles = [re.sub("<.*?>", "", title) for title in re.findall(r"<h2.*?</h2>", text)]
    assert titles[1:6] == [
        "What you see",
        "What happened",
        "When the stream changes",
        "What the learners remember",
        "What it means",
    ]
    assert titles[6] == "What to try next"
    assert not re.search(r'(src|href)="(?!data:|#|https://)', text)
    assert "<script" not in text
    for command in ("ptncn demo --seed 1", "ptncn stream", "ptncn reproduce"):
        assert command in text
