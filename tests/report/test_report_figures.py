"""Figures: the same bytes for the same numbers, both formats, and clear errors."""

import io
import itertools
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from ptncn.learners.registry import names
from ptncn.report.figures import animation, filmstrip
from ptncn.report.model import PALETTE, for_page, line_style
from ptncn.report.plots import Curve, cost_growth, error_curves, surprise_over_time, task_matrices, thin

CURVES = [Curve("ptncn", [1, 2, 3], [3.0, 2.0, 1.0]), Curve("lstm-bptt", [1, 2, 3], [4.0, 3.0, 2.5])]
FRAMES = np.arange(6 * 64, dtype=np.uint8).reshape(6, 8, 8)
DRAWN = {
    "learning": lambda: error_curves("a", CURVES, title="T", error="SE"),
    "prequential": lambda: error_curves(
        "a", CURVES, title="T", error="SE", changes=[(1, "mnist"), (2, "Penn Treebank")]
    ),
    "surprise": lambda: surprise_over_time("a", np.ones((9, 3)), title="T"),
    "cost": lambda: cost_growth("a", {"ptncn": {8: 1.0, 16: 4.0}}, {"ptncn": 2.0}, title="T", size="n", cost="s"),
    "matrices": lambda: task_matrices("a", ["x", "y"], {"ptncn": [[9, 8], [2, 7], [3, 1]]}, title="T"),
    "strip": lambda: filmstrip("a", {"truth": FRAMES, "P-TNCN": FRAMES[::-1]}),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_a_figure_has_both_forms_and_the_same_bytes_each_time(kind):
    first, second = DRAWN[kind](), DRAWN[kind]()
    assert first == second
    assert ElementTree.fromstring(first.svg).tag.endswith("svg")
    image = Image.open(io.BytesIO(first.png))
    assert image.width / image.height == pytest.approx(first.width / first.height, rel=0.02)
    assert b"<dc:date>" not in first.svg


@pytest.mark.parametrize("kind", DRAWN)
def test_on_a_page_a_figure_follows_light_and_dark(kind):
    text = for_page(DRAWN[kind]().svg).decode()
    ElementTree.fromstring(text)
    assert "prefers-color-scheme: dark" in text
    assert "var(--ink)" in text or "var(--soft)" in text
    assert "fill: #ffffff" not in text


def test_changes_of_the_data_are_marked_and_labelled():
    plain, marked = DRAWN["learning"]().svg, DRAWN["prequential"]().svg
    assert b"Penn Treebank" not in plain
    assert b"Penn Treebank" in marked


def test_the_exponent_is_in_the_legend():
    several = {"P-TNCN": {8: 1.0, 16: 4.0}, "LSTM (RTRL)": {8: 1.0, 16: 16.0}}
    figure = cost_growth("a", several, {"P-TNCN": 2.0, "LSTM (RTRL)": 4.0}, title="T", size="n", cost="s")
    assert b"P-TNCN: 2.00" in figure.svg
    assert b"LSTM (RTRL): 4.00" in figure.svg


def test_every_cell_of_a_task_matrix_has_its_number():
    text = DRAWN["matrices"]().svg
    assert all(f">{value}.0<".encode() in text for value in (9, 8, 2, 7, 3, 1))


def test_no_two_learners_share_a_line_style():
    styles = [str(sorted(line_style(name).items())) for name in names()]
    assert len(set(styles)) == len(styles)


def luminance(colour: str) -> float:
    """Relative, by the definition of WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


DEUTERANOPIA = [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
PROTANOPIA = [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]


@pytest.mark.parametrize("matrix", [np.eye(3), DEUTERANOPIA, PROTANOPIA], ids=["all", "no green", "no red"])
def test_colours_differ_under_colour_blindness(matrix):
    """Under the matrices of Machado, Oliveira and Fernandes (2009)."""
    colours = [np.asarray(matrix) @ [int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in PALETTE]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(colours, 2)) > 30


def test_colours_can_be_seen_on_light_and_on_dark():
    for colour in PALETTE:
        for ground in ("#ffffff", "#14171c"):
            light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) > 2


def test_a_film_moves_through_every_frame_and_its_still_is_one_of_them():
    film = animation("a", {"truth": [FRAMES, FRAMES], "P-TNCN": [FRAMES[::-1], FRAMES]})
    moving, still = Image.open(io.BytesIO(film.gif)), Image.open(io.BytesIO(film.png))
    assert moving.n_frames == 6
    assert moving.size == still.size == (film.width, film.height)
    assert film == animation("a", {"truth": [FRAMES, FRAMES], "P-TNCN": [FRAMES[::-1], FRAMES]})


def test_long_curves_are_thinned_and_keep_their_ends():
    x, y = thin(range(10_000), np.arange(10_000.0))
    assert len(x) <= 160
    assert (x[0], y[-1]) == (0, 9_999)


@pytest.mark.parametrize(
    ("draw", "word"),
    [
        (lambda: error_curves("a", [], title="T", error="SE"), "at least one"),
        (lambda: error_curves("a", [Curve("ptncn", [1, 2], [1.0])], title="T", error="SE"), "equal length"),
        (lambda: surprise_over_time("a", [1.0, 2.0], title="T"), "layers"),
        (lambda: task_matrices("a", ["x"], {"ptncn": [[1.0]]}, title="T"), r"expected shape \(2, 1\)"),
        (lambda: filmstrip("a", {"truth": FRAMES, "P-TNCN": FRAMES[:2]}), "equal shapes"),
        (lambda: animation("a", {"truth": [FRAMES[:0]]}), "at least one pixel"),
        (lambda: cost_growth("a", {}, {}, title="T", size="n", cost="s"), "at least one"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_with_a_reason(draw, word):
    with pytest.raises(ValueError, match=word):
        draw()
