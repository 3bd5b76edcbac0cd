"""What the report says about an experiment beyond its records: the question, how to read the numbers, the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ptncn.experiments.config import VIDEO
from ptncn.learners.registry import Choice
from ptncn.records import Record

SE = "**SE**: squared error, summed over the pixels of a frame, mean over frames and sequences. Lower is better."
CE = "**CE**: cross-entropy in nats, summed and averaged in the same way. Lower is better."
NETWORK = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13)
"""The numbers in docs/choices.md that concern the P-TNCN itself."""

OWN_CHOICES = {
    12: Choice("how CE and SE are counted", answer="sums over pixels, means over frames and sequences, nats"),
    14: Choice("exact RTRL with 1,000 units", answer="as many units as fit: see the sizes below"),
}
"""Those that concern the experiments; no option of a learner decides them."""

ErrorKey = tuple[str, str] | None
"""Phase and metric under which records keep the errors of single sequences."""


@dataclass(frozen=True)
class FigureSpec:
    """A figure that the report draws from the records of an experiment."""

    kind: str
    """"curves", "matrices", "films" or "growth": a drawing function of the report."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its arguments."""


LEARNING_CURVES = FigureSpec("curves", {"what": "learning"})
PREQUENTIAL_CURVES = FigureSpec("curves", {"what": "prequential"})
FILMS = FigureSpec("films", {"rows": ("ptncn", "lstm-bptt")})
"""Predictions of these rows below the truth: as in the paper, whose figures have an LSTM in between."""
FILMS_AND_SURPRISE = FigureSpec("films", {"rows": ("ptncn", "lstm-bptt"), "surprise": "ptncn"})


@dataclass(frozen=True, kw_only=True)
class Page:
    """An experiment for readers."""

    title: str
    question: str
    metrics: tuple[str, ...]
    """How each metric is to be read."""
    metric_labels: Mapping[str, str]
    """What tables call the metrics."""
    choices: tuple[int, ...] = (*NETWORK, 12, 14)
    """The numbers in docs/choices.md that matter here."""
    own_choices: Mapping[int, Choice] = field(default_factory=lambda: OWN_CHOICES)
    """Choices among them that no learner's entry describes."""
    unstated: tuple[str, ...] = ()
    """What else the paper does not say, and what is done here."""
    errors: Callable[[str, str], ErrorKey] = lambda metric, column: None
    """(metric, column) → where records keep the errors of single sequences."""
    paper_config: Callable[[Record], dict[str, Any]] = lambda record: VIDEO["paper"].values()
    """The same values as the record's config, at the paper's scale."""
    references: tuple[str, ...] = ()
    """Rows that only show where the others stand: their numbers are not to be reached."""
    bounds: bool = False
    """The paper's numbers are bounds on growth, not losses."""
    figures: tuple[FigureSpec, ...] = ()
