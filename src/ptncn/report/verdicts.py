"""Whether the paper's numbers are reached, which models differ beyond chance, and what did not reproduce: in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ptncn.report.cells import Cell, differ, number
from ptncn.report.labels import label
from ptncn.report.subjects import Subject

HEROES = ("ptncn", "sign")
"""The network of the paper, by the names that it has in experiments."""
SLACK = 0.2
"""By how much a measured exponent may exceed a bound."""


def mark(cell: Cell, subject: Subject) -> str:
    """A sign and words, never a colour alone; on other data nothing counts as reached."""
    if cell.ours is None:
        return "– no record"
    if cell.ratio is None or cell.paper is None:
        return ""
    if cell.model in subject.references:
        return "– for reference"
    if subject.bounds:
        return "● within the bound" if cell.ours <= cell.paper + SLACK else "▲ grows faster"
    if cell.ratio > 1:
        return "▲ not reached; other data" if cell.stands_in else "▲ not reached"
    return "◇ lower; other data" if cell.stands_in else "● reached"


def not_reached(metric: str, cells: Sequence[Cell], subject: Subject) -> list[str]:
    """A sentence a column on the paper's values."""
    sentences = []
    for column, group in by_column(cells).items():
        known = [cell for cell in group if cell.ratio is not None and cell.model not in subject.references]
        missed = [cell for cell in known if mark(cell, subject).startswith("▲")]
        if not known:
            continue
        where = place(subject, metric, column)
        if not missed:
            standing = ", on other data" if any(cell.stands_in for cell in known) else ""
            above = "exceeds the bound" if subject.bounds else "lies above the paper’s number"
            sentences.append(f"{where}: of {_models(len(known))} none {above}{standing}.")
            continue
        told = ", ".join(f"{label(cell.model)} {number(cell.ours)} for {cell.paper:g}" for cell in missed)
        ours = next((cell for cell in known if cell.model == "ptncn"), None)
        own = ""
        if ours is not None and ours not in missed and ours.ratio is not None and not subject.bounds:
            own = f" The P-TNCN has {number(ours.ours)} for {ours.paper:g}, {ours.ratio:.2f}×."
        sentences.append(
            f"{where}: **{len(missed)} of {_models(len(known))} {_misses(len(missed), subject)}**: {told}.{own}"
        )
    return sentences


def other_order(metric: str, cells: Sequence[Cell], subject: Subject) -> list[str]:
    """A sentence a column on pairs of models that stand in another order than the paper's."""
    sentences = []
    for column, group in by_column(cells).items():
        known = [cell for cell in group if cell.paper is not None and cell.ours is not None]
        turned, pairs = [], 0
        for first, second in combinations(known, 2):
            if first.paper == second.paper or first.ours is None or second.ours is None:
                continue
            pairs += 1
            better, worse = (first, second) if (first.paper or 0) < (second.paper or 0) else (second, first)
            if (better.ours or 0) > (worse.ours or 0):
                turned.append((worse, better))
        if not pairs:
            continue
        where, tau = place(subject, metric, column), 1 - 2 * len(turned) / pairs
        if not turned:
            sentences.append(f"{where}: all {pairs} pairs of models stand in the paper’s order.")
            continue
        sure, unsure, untested = _sort(turned, metric, subject)
        parts = [
            f"{title}: {'; '.join(said[:8])}{f'; and {len(said) - 8} more' if len(said) > 8 else ''}."
            for title, said in (
                ("**Beyond chance**", sure),
                ("Perhaps by chance", unsure),
                ("Not tested, having no errors of single sequences", untested),
            )
            if said
        ]
        head = (
            f"{where}: {len(turned)} of {pairs} pairs stand in another order than the paper’s (Kendall’s τ {tau:.2f})."
        )
        sentences.append(f"{head} {' '.join(parts)}")
    return sentences


def ahead_of_ours(metric: str, cells: Sequence[Cell], subject: Subject) -> list[str]:
    """Who is better than the P-TNCN; those that the paper does not have among them."""
    sentences = []
    for column, group in by_column(cells).items():
        ours = next((cell for cell in group if cell.model == "ptncn" and cell.ours is not None), None)
        if ours is None:
            continue
        better = [cell for cell in group if cell.ours is not None and cell.ours < (ours.ours or 0)]
        if better:
            told = ", ".join(
                f"{label(cell.model)} {number(cell.ours)}{_doubt(subject, metric, ours, cell)}" for cell in better
            )
            sentences.append(f"{place(subject, metric, column)}: ahead of the P-TNCN with {number(ours.ours)}: {told}.")
    return sentences


def _sort(turned: Sequence[tuple[Cell, Cell]], metric: str, subject: Subject) -> tuple[list[str], list[str], list[str]]:
    sure: list[str] = []
    unsure: list[str] = []
    untested: list[str] = []
    for ahead, behind in turned:
        found = differ(subject, metric, ahead, behind)
        kind = untested if found is None else sure if found.beyond_chance else unsure
        kind.append(f"{label(ahead.model)} before {label(behind.model)}")
    return sure, unsure, untested


def by_column(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.column, []).append(cell)
    return groups


def place(subject: Subject, metric: str, column: str) -> str:
    name = subject.names.get(metric, metric)
    return f"{name}, {label(column)}" if column else name


def _models(count: int) -> str:
    return f"{count} models" if count != 1 else "1 model"


def _misses(count: int, subject: Subject) -> str:
    if subject.bounds:
        return "exceeds the bound" if count == 1 else "exceed the bound"
    return f"{'does' if count == 1 else 'do'} not reach the paper’s number"


def _doubt(subject: Subject, metric: str, ours: Cell, theirs: Cell) -> str:
    found = differ(subject, metric, ours, theirs)
    return " (may be chance)" if found is not None and not found.beyond_chance else ""
