"""What the page says follows from the numbers, whoever is better."""

import copy
import io
import re
import shlex

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from ptncn.cli import app
from ptncn.demo import words
from ptncn.demo.contestants import LSTM, PTNCN
from ptncn.demo.figures import pictures
from ptncn.demo.film import BEFORE, LONG, frame_errors, shots
from ptncn.demo.page import COMMANDS, error_table, page


@pytest.fixture(scope="module")
def drawn(record):
    return pictures(record)


def set_parts(record, ours, theirs):
    tree = copy.deepcopy(record)
    for part, our, their in zip(tree["parts"], ours, theirs, strict=True):
        part["all"] |= {PTNCN: our, LSTM: their, "copy": 10.0}
    return tree


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ((1, 1, 1, 1), (2, 2, 2, 2), "The P-TNCN predicted better in all 4 parts"),
        ((2, 2, 2, 2), (1, 1, 1, 1), "The LSTM predicted better in all 4 parts"),
        ((2, 2, 2, 1), (1, 1, 1, 2), "The LSTM predicted better in 3 of the 4 parts of the life, the P-TNCN in 1."),
        ((1, 1, 1, 1), (2, 2, 2, 1), "The P-TNCN predicted better in 3 of the 4 parts of the life, neither in 1."),
        ((1, 1, 2, 2), (2, 2, 1, 1), "Neither was clearly better"),
        ((1, 1, 1, 1), (1.005, 1, 1, 1), "Neither was clearly better"),
    ],
)
def test_the_headline_says_who_was_better(record, ours, theirs, said):
    text = words.headline(set_parts(record, ours, theirs))
    assert text.startswith(f"**{said}")
    assert f"{np.mean(ours):.1f} a frame" in text


def test_every_comparison_that_the_lstm_won_is_told(record, swapped):
    text = words.where_the_lstm_won(all_won(record, PTNCN))
    assert "the LSTM was better in none of 12 comparisons. " in text
    assert "it was better in none of 12 looks, the P-TNCN in 12." in text
    text = words.where_the_lstm_won(all_won(record, LSTM))
    assert "the LSTM was better in 12 of 12 comparisons: all of digits, the first frames of digits, " in text
    assert "it was better in 12 of 12 looks, the P-TNCN in none." in text
    one, other = (words.where_the_lstm_won(each) for each in (record, swapped))
    assert one != other


def test_a_lead_that_ends_when_weights_are_frozen_is_told(record):
    living, frozen = all_won(record, PTNCN), all_won(record, LSTM)
    assert words.pace(living) is None
    assert words.pace(frozen) is None
    assert "not when it is frozen" in words.pace(living | {"looks": frozen["looks"]})


@pytest.mark.parametrize(("without", "said"), [(12.0, "that helps"), (10.0, "hardly matters"), (8.0, "that harms")])
def test_what_correction_is_worth_to_frozen_weights_is_told(record, without, said):
    tree = copy.deepcopy(record)
    tree["looks"] |= {PTNCN: [[99.0] * 3] + [[10.0] * 3] * 4, "uncorrected": [[99.0] * 3] + [[without] * 3] * 4}
    text = words.correcting(tree)
    assert said in text
    assert f"is 10.0, and {without:.1f} when" in text


def test_a_world_that_was_never_learnt_is_told_of(record):
    tree = copy.deepcopy(record)
    for name, error in ((PTNCN, 11.0), (LSTM, 12.0)):
        tree["looks"][name][1][1] = error
    tree["looks"]["copy"][0][1] = 13.0
    assert "unseen letters cost the P-TNCN 11.0 a frame, the LSTM 12.0, and repeating the last frame 13.0" in (
        words.frozen(tree)
    )


def all_won(record, who):
    tree = copy.deepcopy(record)
    for part in tree["parts"]:
        for span in ("all", "first", "last"):
            part[span] |= {name: 1.0 if name == who else 2.0 for name in (PTNCN, LSTM)}
    for name in (PTNCN, LSTM):
        tree["looks"][name] = [[1.0 if name == who else 2.0] * 3] * 5
    return tree


def test_forgetting_is_told_where_there_is_some(record):
    tree = copy.deepcopy(record)
    tree["looks"][PTNCN][1][0], tree["looks"][PTNCN][3][0] = 10.0, 9.0
    tree["looks"][LSTM][1][0], tree["looks"][LSTM][3][0] = 10.0, 15.0
    text = words.forgetting(tree)
    assert "the P-TNCN forgot nothing (10.0, then 9.0)" in text
    assert "the LSTM forgot some: 50% more error (10.0, then 15.0)" in text


def test_a_return_is_compared_with_the_end_and_the_beginning_of_the_first_time(record):
    tree = copy.deepcopy(record)
    for name, values in ((PTNCN, (3.0, 2.0, 1.0)), (LSTM, (3.0, 1.0, 2.0)), ("copy", (4.0, 4.0, 4.0))):
        tree["parts"][0]["first"][name], tree["parts"][0]["last"][name], tree["parts"][3]["first"][name] = values
    text = words.returning(tree)
    assert "the P-TNCN begins at 25%, better than it had left off (50%; it was born with 75%)" in text
    assert "the LSTM begins at 50%, worse than it had left off (25%" in text


def test_how_long_it_took_to_beat_the_last_frame_is_read_from_the_curve(record):
    tree = copy.deepcopy(record)
    tree["curve"] = {"frames": [10, 30, 50], "copy": [1.0] * 3, PTNCN: [2.0, 0.5, 0.4], LSTM: [2.0, 2.0, 2.0]}
    text = words.learning(tree)
    assert "the P-TNCN did so within 40 frames" in text
    assert "the LSTM never did" in text


def test_the_table_has_the_numbers_of_the_record(record):
    table = error_table(record)
    assert len(table.rows) == 4 * 3 + 2
    assert table.rows[0][1] == f"{record['parts'][0]['all'][PTNCN]:.1f}"
    assert table.rows[-3][2] == f"{record['parts'][3]['last'][LSTM]:.1f}"
    assert table.rows[-2][1] == f"{record['learners'][PTNCN]['weights']:,}"


def test_the_film_shows_birth_every_change_and_the_end(record, drawn):
    told = shots(record)
    assert [len(shot.rows["truth"]) for shot in told] == [LONG, *[BEFORE, LONG] * 3, LONG]
    assert "letters for the first time" in told[2].heading
    assert "digits are back" in told[6].heading
    assert [shot.place for shot in told] == sorted(shot.place for shot in told)
    with Image.open(io.BytesIO(drawn["film"].gif)) as film:
        assert film.n_frames == pytest.approx(2 * LONG + 3 * (LONG + BEFORE), abs=3)  # equal frames may be one
        assert film.size == (drawn["film"].width, drawn["film"].height)


def test_errors_in_the_film_are_those_of_its_frames():
    black, white = np.zeros((2, 2, 2), np.uint8), np.full((2, 2, 2), 255, np.uint8)
    assert frame_errors({"truth": white, PTNCN: black}, PTNCN) == [4.0, 4.0]
    assert frame_errors({"truth": np.stack([black[0], white[0]])}, "truth") == [0.0, 4.0]


@pytest.mark.parametrize("line", [line for line in COMMANDS if not line.startswith("ptncn demo")])
def test_what_the_page_proposes_to_try_works(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "your.csv").write_text("load\n" + "".join(f"{(t % 7) / 7}\n" for t in range(60)))
    result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
    assert result.exit_code == 0, result.output


def test_the_page_stands_alone_and_tells_the_story_in_order(record, drawn):
    text = page(record, drawn)
    titles = [re.sub("<.*?>", "", title) for title in re.findall(r"<h2.*?</h2>", text)]
    assert titles[1:6] == [
        "What you are seeing",
        "What happened",
        "When the world changes",
        "What is kept of each world",
        "What it means",
    ]
    assert titles[6] == "What to try next"
    assert not re.search(r'(src|href)="(?!data:|#|https://)', text)
    assert "<script" not in text
    for command in ("ptncn demo --seed 1", "ptncn stream", "ptncn reproduce"):
        assert command in text
