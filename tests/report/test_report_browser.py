"""The page in a real browser: narrow and wide, light and dark, with a keyboard, on paper."""

import shutil
from pathlib import Path

import pytest
from made_records import write_complexity_record
from typer.testing import CliRunner
from webdriver import AVAILABLE, browser

from ptncn.cli import app

SMOKE = Path(__file__).resolve().parents[2] / "results/smoke"
CHOSEN = (
    "prediction/ptncn-mnist-0",
    "prediction/lstm-bptt-mnist-0",
    "prediction/ptncn-ptb-0",
    "continual/ptncn-mnist+notmnist+fashion-mnist-0",
    "continual/ptncn-mnist+notmnist+fashion-mnist-1",
    "continual/lstm-bptt-mnist+notmnist+fashion-mnist-0",
    "discrete/sign-noisy-cosine-0",
    "discrete/cosine-noisy-cosine-0",
)

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no chromium, or no chromedriver")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of every kind of figure."""
    folder = tmp_path_factory.mktemp("report")
    for name in CHOSEN:
        (folder / "records" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SMOKE / f"{name}.json", folder / "records" / f"{name}.json")
    write_complexity_record(folder / "records", "ptncn", 1.0)
    write_complexity_record(folder / "records", "lstm-bptt", 2.0)
    result = CliRunner().invoke(app, ["report", str(folder / "records"), "--out", str(folder / "out")])
    assert result.exit_code == 0, result.output
    return folder / "out"


@pytest.fixture(scope="module")
def window():
    with browser() as driver:
        yield driver


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_every_figure_is_loaded_and_nothing_overflows(width, scheme, window, report):
    window.emulate(width, scheme=scheme)
    window.open(f"file://{report}/index.html")
    assert window.console() == []
    assert window.requests() == [f"file://{report}/index.html"]
    pictures = window.run("return [...document.images].map(i => [i.alt, i.naturalWidth, i.naturalHeight])")
    names = {path.stem for path in (report / "figures").iterdir()}
    films = {path.stem for path in (report / "figures").glob("*.gif")}
    assert len(pictures) == len(names) + len(films)  # a film comes with a still
    assert all(alt and wide > 0 and high > 0 for alt, wide, high in pictures)
    assert window.run("return document.documentElement.scrollWidth") <= width
    ground = window.run("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, ground[4:-1].split(","))) < 64) == (scheme == "dark")


def test_every_table_has_as_many_rows_as_in_markdown(window, report):
    window.emulate(1280)
    window.open(f"file://{report}/index.html")
    displayed = window.run("return [...document.querySelectorAll('table')].map(t => t.tBodies[0].rows.length)")
    written = [count for name in ("README", *ORDER) for count in table_sizes(report / f"{name}.md")]
    assert displayed == written


ORDER = ("prediction", "continual", "discrete", "complexity")


def table_sizes(page):
    """How many rows each table of a Markdown page has."""
    sizes, rows = [], 0
    for line in [*page.read_text().splitlines(), ""]:
        if line.startswith("|"):
            rows += 1
        elif rows:
            sizes.append(rows - 2)
            rows = 0
    return sizes


def test_wide_tables_scroll_inside_and_their_first_column_stays(window, report):
    window.emulate(360)
    window.open(f"file://{report}/index.html")
    offsets = window.run(
        "const box = [...document.querySelectorAll('.scroll')].find(b => b.scrollWidth > b.clientWidth + 200);"
        "const head = box.querySelector('tbody th'); const before = head.getBoundingClientRect().left;"
        "box.scrollLeft = 150; return [box.scrollLeft, head.getBoundingClientRect().left - before]"
    )
    assert offsets[0] == 150
    assert abs(offsets[1]) <= 2


def test_a_keyboard_reaches_the_content_the_tables_and_the_films(window, report):
    window.emulate(1280)
    window.open(f"file://{report}/index.html")
    reached = []
    for _ in range(200):
        window.press("Tab")
        element = window.run(
            "const e = document.activeElement; const s = getComputedStyle(e);"
            "return [e.className || e.tagName, e.matches(':focus-visible') && s.outlineStyle !== 'none']"
        )
        if element[0] == "BODY":
            break
        reached.append(tuple(element))
    assert reached[0][0] == "skip"
    assert {"scroll", "INPUT", "A"} <= {name for name, _ in reached}
    assert all(outlined for _, outlined in reached)


def test_the_film_stops_if_the_reader_prefers_no_motion(window, report):
    visible = (
        "const f = document.querySelector('.film');"
        "return ['.moving img', '.still'].map(s => f.querySelector(s).getClientRects().length > 0)"
    )
    window.emulate(768)
    window.open(f"file://{report}/index.html")
    assert window.run(visible) == [True, False]
    window.run("document.querySelector('.film input').click()")
    assert window.run(visible) == [False, True]
    source = "return document.querySelector('.moving img').currentSrc.slice(0, 14)"
    window.open(f"file://{report}/index.html")
    assert window.run(source) == "data:image/gif"
    window.emulate(768, motion="reduce")
    window.open(f"file://{report}/index.html")
    assert window.run(source) == "data:image/png"


def test_on_paper_there_is_no_navigation_and_nothing_is_cut_off(window, report):
    window.emulate(800, scheme="dark", media="print")
    window.open(f"file://{report}/index.html")
    assert window.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    assert window.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    hidden = "return [...document.querySelectorAll('.scroll')].filter(b => getComputedStyle(b).overflowX !== 'visible')"
    assert window.run(hidden) == []
    window.emulate(800)
