"""One page per experiment, in a fixed order: question, metrics, then per scale command, results, shortfalls and setup.

Pages are written as one HTML file or as Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.experiment import Experiment
from ptncn.report.assessment import (
    STANDING_HEADINGS,
    better_than_reference,
    by_column,
    cells_of,
    changed_order,
    metrics_of,
    place,
    standings,
    unreached_values,
    uses_other_data,
)
from ptncn.report.figures import make_drawings
from ptncn.report.model import Commands, Figure, Paragraph, Part, Points, Section, Table, metric_label, row_label, slug
from ptncn.report.plots import comparison
from ptncn.report.render import make_markdown, make_page, plain
from ptncn.report.sources import BROKEN, Gathered, RecordSource
from ptncn.report.tables import (
    MANY,
    choices_table,
    command,
    learners_table,
    origin,
    result_tables,
    size_in_words,
    size_tables,
)
from ptncn.system import write_atomically

TITLE = "The paper’s tables and figures, reproduced"
LEAD = (
    "The Parallel Temporal Neural Coding Network and the learners it is compared with: the paper’s numbers, ours, and "
    "a mark where ours fall short. One command generates these pages from the records."
)
FOLDER = "figures"
MADE = "Made from records by"
QUEUE = "[the estimated hours of each](../results/queue.md)"
SCALE_TITLES = {"paper": "At the paper’s size", "laptop": "At laptop scale", "smoke": "Smoke test"}


@dataclass(frozen=True)
class ExperimentPage:
    """One experiment at every scale that has records."""

    name: str
    """Name of its file."""
    section: Section
    standings: Sequence[Sequence[str]]
    """Rows for the overview."""


def make_pages(gathered: Gathered) -> Iterator[ExperimentPage]:
    """A page for each experiment that has records, in the order of the paper."""
    for name, scales in gathered.experiments().items():
        experiment = EXPERIMENTS.find(name)
        rows = experiment.all_rows()
        sections, ranks, used = [], [], []
        for scale in scales:
            sources = [
                each for each in gathered.sources if (each.record.experiment, each.record.scale) == (name, scale)
            ]
            sources.sort(key=lambda each: rows.index(each.record.row) if each.record.row in rows else len(rows))
            failed = [why for record, why in gathered.unfinished if (record.experiment, record.scale) == (name, scale)]
            stem = f"{name}-{scale}" if len(scales) > 1 else name
            parts = _scale_sections(experiment, scale, stem, sources, failed)
            sections += parts if len(scales) == 1 else [Section(SCALE_TITLES.get(scale, scale), (), parts)]
            ranks += standings(experiment, sources)
            used += sources
        page = experiment.page
        head = [
            Section("Question", [Paragraph(page.question)]),
            Section("Metrics", [Points([*page.metrics, *_tests(experiment, used)])]),
        ]
        yield ExperimentPage(name, Section(page.title, (), [*head, *sections]), ranks)


def _scale_sections(
    experiment: Experiment, scale: str, stem: str, sources: Sequence[RecordSource], failed: Sequence[str]
) -> list[Section]:
    comparisons = list(_comparisons(stem, experiment, sources))
    figures, broken = _figures(stem, experiment, sources)
    sections = [
        Section("Command", _commands(experiment, scale, sources)),
        Section("Results", [*_notes(sources, scale), *result_tables(experiment, sources), *comparisons, *figures]),
        Section("What did not reproduce", _shortfalls(experiment, sources)),
        Section("Setup", _setup(experiment, sources)),
    ]
    if failed or broken:
        sections.append(Section("Runs without a result", [Points([*failed, *broken])]))
    return sections


def _commands(experiment: Experiment, scale: str, sources: Sequence[RecordSource]) -> list[Part]:
    line = command(experiment, sources) or f"ptncn reproduce {experiment.name} --scale {scale}"
    parts: list[Part] = [Commands([line])]
    if sources:
        seconds = sum(source.record.seconds for source in sources)
        versions = sorted({f"torch {source.record.versions.get('torch')}" for source in sources})
        time = f"Computing time: {_time(seconds)}; " if seconds else "Made with "
        parts.append(Paragraph(f"{origin(sources)} Each record contains its command. {time}{', '.join(versions)}."))
    return parts


def _tests(experiment: Experiment, sources: Sequence[RecordSource]) -> list[str]:
    """How rows are compared, if the records have errors per sequence."""
    name, errors = row_label(experiment, experiment.reference), experiment.page.errors
    if not any(errors(metric, column) for each in sources for metric, row in each.cells.items() for column in row):
        return []
    return [
        f"**difference**: error of the {name} (or of its variant, where only that has a record) minus that of the row, "
        f"mean over the same test sequences, with its 95 % interval; below 0 the {name} is better. It is "
        "significant if the paired t test and Wilcoxon’s signed-rank test both have p < 0.05. With several seeds, "
        "errors are first averaged over the seeds for each sequence; ± sd is over seeds."
    ]


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"


def _setup(experiment: Experiment, sources: Sequence[RecordSource]) -> list[Part]:
    parts: list[Part] = [choices_table(experiment, sources)]
    if experiment.page.unstated:
        parts += [Paragraph("Where the paper is silent:"), Points(experiment.page.unstated, numbered=True)]
    learners = learners_table(experiment, sources)
    return [*parts, *size_tables(experiment, sources), *([learners] if learners else [])]


def _notes(sources: Sequence[RecordSource], scale: str) -> list[Part]:
    if not sources:
        return [Paragraph("**No run has finished.**")]
    notes = [f"{note}." for note in dict.fromkeys(str(note) for source in sources for note in source.record.notes)]
    parts: list[Part] = [Points(notes)] if notes else []
    if any(uses_other_data(source) for source in sources):
        warning = (
            "**These are not the paper’s data.** Ratios to the paper’s numbers mean little, and nothing is marked as "
            "reached; comparisons between learners remain valid."
        )
        parts.insert(0, Paragraph(warning))
    if scale == "paper":
        parts.append(Paragraph(f"Rows without a record have not been run at this size; see {QUEUE}."))
    return parts


def _shortfalls(experiment: Experiment, sources: Sequence[RecordSource]) -> list[Part]:
    if not sources:
        return [Paragraph("There is no finished run.")]
    values, orders, better = [], [], []
    for metric in metrics_of(sources):
        cells = cells_of(experiment, sources, metric)
        values += unreached_values(experiment, metric, cells)
        if not experiment.page.bounds:
            orders += changed_order(experiment, metric, cells)
            if any(experiment.page.errors(metric, cell.column) for cell in cells):
                better += better_than_reference(experiment, metric, cells)
    parts: list[Part] = []
    if values:
        parts += [Paragraph("Values:"), Points(values)]
    else:
        parts.append(Paragraph("The paper gives only figures here, no numbers."))
    if orders:
        parts += [Paragraph("Order of the learners:"), Points(orders)]
    if better:
        parts += [Paragraph(f"Better than the {row_label(experiment, experiment.reference)}:"), Points(better)]
    if not experiment.page.bounds:
        sizes = dict.fromkeys(size_in_words(experiment, source) for source in sources)
        parts.append(Paragraph(f"Size of these runs: {'; '.join(sizes)}."))
    return parts


def _comparisons(stem: str, experiment: Experiment, sources: Sequence[RecordSource]) -> Iterator[Figure]:
    """A plot for each column with many rows that have both a number in the paper and one of ours."""
    for metric in metrics_of(sources):
        for column, group in by_column(cells_of(experiment, sources, metric)).items():
            if sum(cell.ratio is not None for cell in group) < MANY or experiment.page.bounds:
                continue
            rows = [
                (row_label(experiment, cell.row), cell.paper, cell.ours, cell.sd)
                for cell in group
                if cell.ours is not None
            ]
            title, measure = place(experiment, metric, column), metric_label(experiment, metric)
            picture = comparison(f"{stem}-{slug(title)}", rows, title=title, measure=measure)
            other = ", on other data" if any(cell.other_data for cell in group) else ""
            caption = (
                f"{title}: circles are the paper’s numbers, diamonds ours{other}. Scale {sources[0].record.scale}."
            )
            alt = f"Our numbers and the paper’s for {len(rows)} learners; the table above has them."
            yield Figure(picture, alt, caption)


def _figures(stem: str, experiment: Experiment, sources: Sequence[RecordSource]) -> tuple[list[Figure], list[str]]:
    """The figures, and a line for each that could not be drawn."""
    figures, failed = [], []
    for what, draw in make_drawings(experiment, stem, [source.record for source in sources]):
        try:
            figures.append(draw())
        except BROKEN as error:
            failed.append(f"The figure “{what}” could not be drawn: {type(error).__name__}: {error}")
    return figures, failed


def write_report(pages: Sequence[ExperimentPage], out: Path, *, unreadable: Sequence[str], command: str) -> Path:
    """Write `index.html`, which is self-contained, and next to it every page as Markdown and every figure as files."""
    files = _markdown(pages, unreadable, command, alone=True)
    for picture in (figure.picture for page in pages for figure in page.section.figures()):
        files |= {f"{FOLDER}/{picture.name}.{ending}": content for ending, content in picture.files().items()}
    overview = _overview({f"[{page.name}](#{slug(page.section.title)})": page for page in pages})
    top = [Section("Overview", overview)] if overview else []
    sections = [*top, *(page.section for page in pages), *_left_out(unreadable)]
    files["index.html"] = make_page(TITLE, LEAD, sections, footer=f"Made by `{command}`.").encode()
    _write(out, files)
    return out / "index.html"


def write_markdown(pages: Sequence[ExperimentPage], out: Path, *, unreadable: Sequence[str], command: str) -> Path:
    """Write a page per experiment and an overview, `README.md`, with their figures."""
    _write(out, _markdown(pages, unreadable, command, alone=False))
    return out / "README.md"


def _markdown(
    pages: Sequence[ExperimentPage], unreadable: Sequence[str], command: str, *, alone: bool
) -> dict[str, bytes]:
    """{name: content} of every file; with `alone`, pages do not link to files outside their folder."""
    note = f"*{MADE} `{command}`. Do not edit by hand.*"
    files = {}
    for page in pages:
        section = page.section if alone else _with_one_film(page.section)
        files[f"{page.name}.md"] = make_markdown(section, figures=FOLDER, note=note, alone=alone).encode()
        for figure in section.figures():
            files[f"{FOLDER}/{figure.file_name}"] = figure.picture.files()[figure.extension]
    links = {f"[{page.name}]({page.name}.md)": page for page in pages}
    contents = Points([f"{link}: {page.section.title}" for link, page in links.items()])
    overview = Section(TITLE, [Paragraph(LEAD), contents, *_overview(links)], _left_out(unreadable))
    return {**files, "README.md": make_markdown(overview, note=note).encode()}


def _overview(pages: Mapping[str, ExperimentPage]) -> list[Part]:
    """A table of the reference rows of all experiments; empty if the paper has no numbers for them."""
    rows = [[link, *row] for link, page in pages.items() for row in page.standings]
    if not rows:
        return []
    rows.sort(key=lambda row: row[STANDING_HEADINGS.index("scale")] != "paper")
    caption = (
        "The P-TNCN in every table, starting with runs at the paper’s size: the paper’s number, ours, and the rank "
        "among the learners that have both. "
        "● reached, ▲ not reached, ◇ lower than the paper’s, but on other data."
    )
    return [Table(caption, STANDING_HEADINGS, rows)]


def _left_out(unreadable: Sequence[str]) -> list[Section]:
    return [Section("Files left out", [Points([plain(line) for line in unreadable])])] if unreadable else []


def _with_one_film(section: Section) -> Section:
    """Drop all animations but the first: they are by far the largest files, and filmstrips show the same."""
    films = [figure for figure in section.figures() if figure.picture.gif is not None][1:]

    def keep(some: Section) -> Section:
        return Section(some.title, [part for part in some.parts if part not in films], [*map(keep, some.sections)])

    return keep(section)


def _write(out: Path, files: Mapping[str, bytes]) -> None:
    """Write all files, and remove those of an earlier report that are obsolete."""
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out / name, content)
    for path in _stale(out, {out / name for name in files}):
        path.unlink()


def _stale(out: Path, kept: set[Path]) -> Iterable[Path]:
    yield from [page for page in out.glob("*.md") if page not in kept and MADE in page.read_text(errors="replace")]
    for figure in (out / FOLDER).glob("*"):
        ours = figure.stem.startswith(tuple(EXPERIMENTS.names())) and figure.suffix in (".svg", ".png", ".gif")
        if ours and figure not in kept:
            yield figure
