"""A report as data: sections of text, tables and figures, which `render` turns into pages; labels and plot style.

Text is inline Markdown: `code`, **strong**, *emphasis* and [links](https://example.org).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from PIL import Image

from ptncn.data.registry import DATASETS
from ptncn.experiments.experiment import Experiment
from ptncn.learners.registry import LEARNERS, Style
from ptncn.metrics import METRICS

_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?( ?[×%])?|–|")


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    words: str


@dataclass(frozen=True)
class Points:
    """A bulleted or numbered list."""

    items: Sequence[str]
    numbered: bool = False


@dataclass(frozen=True)
class Commands:
    """Shell commands."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table of strings; columns of numbers are right-aligned."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    source: str = ""
    """The records behind the table."""
    command: str = ""
    """The command that makes those records."""

    def numeric(self, column: int) -> bool:
        """Whether every cell of the column is a number or empty, and at least one is not empty."""
        cells = [row[column] for row in self.rows]
        return any(cells) and all(is_number(cell) for cell in cells)


@dataclass(frozen=True)
class Picture:
    """One image in all its formats."""

    name: str
    """Name of its files, without extension."""
    width: int
    height: int
    """In CSS pixels."""
    png: bytes
    svg: bytes | None = None
    gif: bytes | None = None
    """An animation; `png` is then one frame of it."""

    def files(self) -> dict[str, bytes]:
        """{extension: content} of every format."""
        formats = {"png": self.png, "svg": self.svg, "gif": self.gif}
        return {extension: content for extension, content in formats.items() if content is not None}


@dataclass(frozen=True)
class Figure:
    """A picture with alternative text and a caption."""

    picture: Picture
    alt: str
    caption: str
    wide: bool = False
    """Whether it takes the full width, and scrolls sideways on a narrow screen."""

    @property
    def extension(self) -> str:
        """The format that a Markdown page shows."""
        picture = self.picture
        return "gif" if picture.gif is not None else "svg" if picture.svg is not None and not self.wide else "png"

    @property
    def file_name(self) -> str:
        return f"{self.picture.name}.{self.extension}"


Part = Paragraph | Points | Commands | Table | Figure


@dataclass(frozen=True)
class Section:
    """A heading with parts and subsections."""

    title: str
    parts: Sequence[Part] = ()
    sections: Sequence[Section] = ()

    def all_parts(self) -> list[Part]:
        """Its own parts and those of its subsections, in reading order."""
        return [*self.parts, *(part for section in self.sections for part in section.all_parts())]

    def figures(self) -> list[Figure]:
        return [part for part in self.all_parts() if isinstance(part, Figure)]


def is_number(cell: str) -> bool:
    """
    >>> [is_number(cell) for cell in ("-1.50", "1,000", "1.12 ×", "–", "", "P-TNCN", "2 layers")]
    [True, True, True, True, True, False, False]
    """
    return _NUMBER.fullmatch(cell) is not None


def slug(title: str) -> str:
    """
    >>> slug("Table I: what is asked?")
    'table-i-what-is-asked'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"


BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY = "#e69f00", "#56b4e9"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
"""The Okabe-Ito palette without yellow, which is hardly visible on white."""
GROUND, INK, SOFT, LINE = "#ffffff", "#1f2328", "#57606a", "#d5d9de"
"""On a page these follow the reader's light or dark mode."""
WIDTH, HEIGHT = 5.4, 3.5
"""Inches; small enough for the text to be readable on a phone."""

RC: Any = {
    "svg.hashsalt": "ptncn",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "axes.facecolor": GROUND,
    "figure.facecolor": GROUND,
    "savefig.facecolor": GROUND,
}


@contextmanager
def theme() -> Iterator[None]:
    """Draw and save plots with these settings, independent of the user's."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        yield


def canvas(width: float = WIDTH, height: float = HEIGHT, **options: Any) -> tuple[Canvas, Any]:
    """An empty figure of this size in inches, and its axes; call it inside `theme()`."""
    figure = Canvas(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**options)


def legend_below(figure: Canvas, axes: Axes, columns: int = 3) -> None:
    """Put the legend below the axes, where it hides no line."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)), handlelength=2.6)


def save(figure: Canvas, name: str, *, dpi: int = 160, grey: bool = False) -> Picture:
    """The figure as SVG and PNG, without dates or versions; `grey` halves the size of a PNG without colours."""
    svg, png = io.BytesIO(), io.BytesIO()
    FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    FigureCanvasAgg(figure)
    figure.savefig(png, format="png", dpi=dpi, metadata={"Software": None})
    width, height = (round(float(size) * 96) for size in figure.get_size_inches())
    return Picture(name, width, height, _greyscale(png) if grey else png.getvalue(), _rounded(svg.getvalue()))


def _greyscale(png: io.BytesIO) -> bytes:
    small = io.BytesIO()
    Image.open(png).convert("L").save(small, "PNG", optimize=True)
    return small.getvalue()


def _rounded(svg: bytes) -> bytes:
    """Round paths to a hundredth of a point, to save space, and strip trailing blanks."""
    paths = re.compile(rb' d="[^"]*"')
    text = paths.sub(lambda path: re.sub(rb"(\.\d\d)\d+", rb"\1", path[0]), svg)
    return b"\n".join(line.rstrip() for line in text.splitlines()) + b"\n"


def for_page(svg: bytes) -> bytes:
    """The SVG with CSS variables for colours, so that it follows dark mode, and without the XML preamble."""
    text = svg[svg.index(b"<svg") :].decode()
    for name, colour in (("ground", GROUND), ("ink", INK), ("soft", SOFT), ("line", LINE)):
        text = text.replace(f" {colour}", f" var(--{name})").replace(f'"{colour}"', f'"var(--{name})"')
    text = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font: \1 system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif", text)
    css = (files("ptncn.report") / "templates/figure.css").read_text(encoding="utf-8")
    return re.sub(r"(<svg[^>]*>)", lambda match: f"{match[1]}<style>{css}</style>", text, count=1).encode()


JOINTS = {"-to-": " → ", "+": " → ", " after ": " after ", " ": " "}
"""{separator of dataset names in a column: separator of their labels}."""


def data_label(name: str) -> str:
    """The label of a dataset, or of a column that joins several.

    >>> data_label("mnist-to-notmnist"), data_label("bouncing-digits"), data_label("mnist 3"), data_label("random")
    ('MNIST → NotMNIST', 'digits', 'MNIST, 3 objects', 'random')
    """
    generated = name.removeprefix("bouncing-")
    if generated in DATASETS:
        return DATASETS[generated].label
    what, _, count = name.rpartition(" ")
    if count.isdigit():
        return f"{data_label(what)}, {count} object{'s' * (count != '1')}"
    for joint, words in JOINTS.items():
        if joint in name:
            return words.join(data_label(part) for part in name.split(joint))
    return name


def learner_label(name: str) -> str:
    """
    >>> learner_label("lstm-kf-rtrl"), learner_label("unregistered")
    ('LSTM (KF-RTRL)', 'unregistered')
    """
    return (LEARNERS[name].label if name in LEARNERS else "") or name


def metric_label(experiment: Experiment, metric: str) -> str:
    """The label of a metric on the page or, for a name such as "test_se", in the registry of metrics."""
    if metric in experiment.page.metric_labels:
        return experiment.page.metric_labels[metric]
    split, _, name = metric.rpartition("_")
    return f"{split} {METRICS[name].label}".strip() if name in METRICS else metric


def row_label(experiment: Experiment, name: str) -> str:
    """The label of a row: that of the variant or of the learner."""
    return experiment.variants[name].label or name if name in experiment.variants else learner_label(name)


def line_style(name: str) -> dict[str, Any]:
    """Line options of matplotlib for a learner."""
    return _line((LEARNERS[name].style if name in LEARNERS else None) or Style(SOFT, ":"))


def row_style(experiment: Experiment, name: str) -> dict[str, Any]:
    """Line options for a row: those of its learner; variants have one colour each, and the reference row stands out."""
    if name not in experiment.variants:
        return line_style(name)
    if name in experiment.page.references:
        return _line(Style(SOFT, ":" if name == experiment.page.references[0] else "-."))
    place = list(experiment.variants).index(name)
    return _line(Style(PALETTE[place % len(PALETTE)], emphasis=name == experiment.reference))


def _line(style: Style) -> dict[str, Any]:
    return {
        "color": style.colour,
        "linestyle": style.dashes,
        "linewidth": 2.6 if style.emphasis else 1.5,
        "zorder": 4 if style.emphasis else 3,
    }
