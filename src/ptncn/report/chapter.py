"""A page a table, in a fixed order: what was asked, command, metrics, choices, results, what did not reproduce."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ptncn.experiments import find_experiment
from ptncn.experiments.experiment import Experiment
from ptncn.report.cells import cells_of, metrics_of, other_data
from ptncn.report.illustrations import illustrate
from ptncn.report.labels import label
from ptncn.report.model import Commands, Figure, Part, Points, Section, Text, slug
from ptncn.report.overview import standings
from ptncn.report.plots import comparison
from ptncn.report.roster import roster_table
from ptncn.report.scale import choices_table, scale_in_words, scale_tables
from ptncn.report.sources import BROKEN, Gathered, Source
from ptncn.report.subjects import SUBJECTS, Subject
from ptncn.report.tables import MANY, command, origin, result_tables
from ptncn.report.verdicts import ahead_of_ours, by_column, not_reached, other_order, place

COMPARED = (
    "**P-TNCN − it**: the mean difference between the errors of the P-TNCN and of that model on the same sequences of "
    "the test, with its 95 % interval; below 0 the P-TNCN is better. It is beyond chance where the paired t test and "
    "Wilcoxon’s signed ranks both say so at 0.05. Over several seeds each sequence has its mean error; how much "
    "networks of other seeds differ is the standard deviation, ± sd."
)


@dataclass(frozen=True)
class Chapter:
    """One experiment at one scale."""

    name: str
    """Of its file."""
    section: Section
    standings: Sequence[Sequence[str]]
    """Rows for the overview."""


def make_chapters(found: Gathered) -> Iterator[Chapter]:
    """One for each experiment and scale that has records."""
    groups = found.groups()
    for name, scale in groups:
        several = sum(name == other for other, _ in groups) > 1
        stem = f"{name}-{scale}" if several else name
        experiment = find_experiment(name)
        sources = [each for each in found.sources if (each.record.experiment, each.record.scale) == (name, scale)]
        roster = list(dict.fromkeys(model for models in experiment.rows.values() for model in models))
        sources.sort(key=lambda each: roster.index(each.record.model) if each.record.model in roster else len(roster))
        missing = [why for record, why in found.unfinished if (record.experiment, record.scale) == (name, scale)]
        yield _chapter(stem, scale, experiment, SUBJECTS[name], sources, missing)


def _chapter(
    stem: str, scale: str, experiment: Experiment, subject: Subject, sources: Sequence[Source], missing: Sequence[str]
) -> Chapter:
    beside = list(_beside(stem, experiment, subject, sources))
    figures, failed = _figures(stem, experiment, sources)
    sections = [
        Section("What was asked", [Text(subject.asked)]),
        Section("Command", _commands(experiment, scale, sources)),
        Section("Metrics", [Points([*subject.metrics, *_tests(subject, sources)])]),
        Section("Choices", _choices(subject, sources)),
        Section("Results", [*_notes(sources), *result_tables(experiment, subject, sources), *beside, *figures]),
        Section("What did not reproduce", _verdict(experiment, subject, sources)),
    ]
    if missing or failed:
        sections.append(Section("Runs without a result", [Points([*missing, *failed])]))
    section = Section(f"{subject.title} ({scale})", (), sections)
    return Chapter(stem, section, standings(experiment, subject, sources))


def _commands(experiment: Experiment, scale: str, sources: Sequence[Source]) -> list[Part]:
    line = command(experiment, sources) or f"ptncn reproduce {experiment.name} --scale {scale}"
    parts: list[Part] = [Commands([line])]
    if sources:
        seconds = sum(source.record.seconds for source in sources)
        versions = sorted({f"torch {source.record.versions.get('torch')}" for source in sources})
        took = f"Computing took {_time(seconds)}; {', '.join(versions)}."
        parts.append(Text(f"{origin(sources)} Every record holds its own command. {took}"))
    return parts


def _tests(subject: Subject, sources: Sequence[Source]) -> list[str]:
    compared = any(
        subject.errors(metric, column) for source in sources for metric, row in source.cells.items() for column in row
    )
    return [COMPARED] if compared else []


def _time(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _choices(subject: Subject, sources: Sequence[Source]) -> list[Part]:
    records = [source.record for source in sources]
    parts: list[Part] = [choices_table(subject, records)]
    if subject.silent:
        parts += [Text("And where it says nothing:"), Points(subject.silent, numbered=True)]
    roster = roster_table(records)
    return [*parts, *scale_tables(subject, records), *([roster] if roster else [])]


def _notes(sources: Sequence[Source]) -> list[Part]:
    if not sources:
        return [Text("**No run has come to its end.**")]
    reasons = dict.fromkeys(str(note) for source in sources for note in source.record.notes)
    parts: list[Part] = [Points([f"{note}." for note in reasons])] if reasons else []
    if any(other_data(source) for source in sources):
        parts.insert(
            0,
            Text(
                "**These are not the paper’s data**: what stands in for them is listed here. Ratios to the paper’s "
                "numbers say little then, and nothing is marked as reached; differences between models still count."
            ),
        )
    return parts


def _verdict(experiment: Experiment, subject: Subject, sources: Sequence[Source]) -> list[Part]:
    values, orders, ahead = [], [], []
    for metric in metrics_of(sources):
        cells = cells_of(experiment, sources, metric)
        values += not_reached(metric, cells, subject)
        if subject.bounds:
            continue
        orders += other_order(metric, cells, subject)
        if any(subject.errors(metric, cell.column) for cell in cells):
            ahead += ahead_of_ours(metric, cells, subject)
    if not sources:
        return [Text("Nothing can be said: there is no finished run.")]
    parts: list[Part] = []
    if values:
        parts += [Text("The paper’s values:"), Points(values)]
    else:
        parts.append(Text("The paper gives no numbers here: its figures are to be held beside ours."))
    if orders:
        how = ", with paired tests over the sequences of a test" if _tests(subject, sources) else ""
        parts += [Text(f"The order of models{how}:"), Points(orders)]
    if ahead:
        parts += [Text("Who predicts better than the P-TNCN:"), Points(ahead)]
    if not subject.bounds:
        sizes = dict.fromkeys(scale_in_words(subject, source.record) for source in sources)
        parts.append(Text(f"What these runs are, beside the paper’s: {'; '.join(sizes)}."))
    return parts


def _beside(stem: str, experiment: Experiment, subject: Subject, sources: Sequence[Source]) -> Iterator[Figure]:
    """A picture of each column in which many models have a number of the paper and one of ours."""
    for metric in metrics_of(sources):
        for column, group in by_column(cells_of(experiment, sources, metric)).items():
            rows = [(label(cell.model), cell.paper, cell.ours, cell.sd) for cell in group if cell.ours is not None]
            if sum(cell.ratio is not None for cell in group) < MANY or subject.bounds:
                continue
            title = place(subject, metric, column)
            picture = comparison(f"{stem}-{slug(title)}", rows, title=title, measure=subject.names[metric])
            other = ", on other data than the paper’s" if any(cell.stands_in for cell in group) else ""
            scale = sources[0].record.scale
            caption = f"{title}: a ring is the paper’s number, a diamond is ours{other}. Scale {scale}."
            alt = f"Our numbers beside the paper’s for {len(rows)} models; the table above has them."
            yield Figure(picture, alt, caption)


def _figures(stem: str, experiment: Experiment, sources: Sequence[Source]) -> tuple[list[Figure], list[str]]:
    """Those that can be drawn, and a line for each that cannot."""
    figures, failed = [], []
    for what, draw in illustrate(experiment.name, stem, [source.record for source in sources]):
        try:
            figures.append(draw())
        except BROKEN as error:
            failed.append(f"The figure “{what}” could not be drawn: {type(error).__name__}: {error}")
    return figures, failed
