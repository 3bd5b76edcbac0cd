"""The page shows its parts, escaped, and is self-contained."""

import itertools
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from ptncn.report.figures import animation
from ptncn.report.model import Commands, Figure, Paragraph, Points, Section, Table
from ptncn.report.plots import Curve, error_curves
from ptncn.report.render import make_page

VOID = {"meta", "link", "img", "source", "input", "br"}


class Outline(HTMLParser):
    """Tags with their attributes, and whether every one was closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, *tags):
        return [attributes for tag, attributes in self.tags if tag in tags]


@pytest.fixture(scope="module")
def page():
    curve = error_curves("curve", [Curve("ptncn", [1, 2, 3], [3.0, 2.0, 1.0])], title="T", error="SE")
    moving = animation("film", {"truth": [np.arange(5 * 64, dtype=np.uint8).reshape(5, 8, 8)]})
    table = Table("Numbers.", ("learner", "SE"), [("P-TNCN", "79.67"), ("LSTM", "85.27")], "From 2 records.", "ptncn x")
    parts = [Paragraph("a < b & `c`"), Points(["one", "two"]), Commands(["ptncn <x>"]), table]
    figures = [Figure(curve, 'A "curve"', "A curve."), Figure(moving, "A film", "A film.")]
    sections = [Section("Results", parts), Section("Results", figures, [Section("Details", [Paragraph("Words.")])])]
    return make_page("Title <b>", "Lead.", sections, footer="Made.")


def test_every_tag_is_closed_and_every_name_is_given_once(page):
    ids = [attributes["id"] for _, attributes in Outline(page).tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_links_and_labels_point_to_names_on_the_page(page):
    outline = Outline(page)
    ids = {attributes.get("id") for _, attributes in outline.tags}
    pointing = [each["href"][1:] for each in outline.all("a")] + [each["for"] for each in outline.all("label")]
    named = [each["aria-labelledby"] for _, each in outline.tags if "aria-labelledby" in each]
    assert len(pointing) >= 4
    assert {*pointing, *named} <= ids


def test_headings_do_not_skip_a_level(page):
    levels = [int(tag[1]) for tag, _ in Outline(page).tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_texts_are_escaped(page):
    assert "Title &lt;b&gt;" in page
    assert "a &lt; b &amp; <code>c</code>" in page
    assert "ptncn &lt;x&gt;" in page


def test_the_page_uses_neither_network_nor_scripts(page):
    assert not re.search(r"""(src|href|srcset)=["'](?!#|data:)""", page)
    assert not re.search(r"<script|@import|url\(", page)


def test_every_picture_has_alternative_text_and_a_size(page):
    pictures = Outline(page).all("img")
    assert len(pictures) == 3  # the film comes with a still
    for each in pictures:
        assert each["alt"]
        assert int(each["width"]) > 0
        assert int(each["height"]) > 0


def test_a_film_has_a_still_for_readers_who_prefer_no_motion(page):
    (source,) = Outline(page).all("source")
    assert source["media"] == "(prefers-reduced-motion: reduce)"
    assert source["srcset"].startswith("data:image/png")


def test_tables_have_headers_and_name_their_records(page):
    scopes = [each.get("scope") for each in Outline(page).all("th")]
    assert scopes == ["col", "col", "row", "row"]
    assert "From 2 records." in page
    assert "<code>ptncn x</code>" in page


def test_a_number_is_one_text_that_can_be_copied(page):
    assert '<td class="number">79.67</td>' in page


def test_the_same_input_gives_the_same_page(page):
    twice = [make_page("T", "L", [Section("S", [Paragraph("x")])]) for _ in range(2)]
    assert twice[0] == twice[1]
