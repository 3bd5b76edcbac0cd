"""What there is to say of each experiment that its records do not know: the question, and how to read the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ptncn.experiments import complexity, continual, discrete
from ptncn.experiments.setting import TEXT, VIDEO, is_text
from ptncn.records import Record

ErrorKey = tuple[str, str] | None

SE = "**SE**: squared error, summed over the pixels of a frame, mean over frames and sequences. Lower is better."
CE = "**CE**: cross-entropy in nats, summed and averaged in the same way. Lower is better."
NETWORK = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13)
"""Those of docs/choices.md that concern the P-TNCN itself."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An experiment, for readers."""

    title: str
    asked: str
    metrics: tuple[str, ...]
    names: Mapping[str, str]
    """What the metrics are called in tables."""
    choices: tuple[int, ...] = (*NETWORK, 12, 14)
    """The numbers in docs/choices.md that matter here."""
    silent: tuple[str, ...] = ()
    """What else the paper does not say, and what is done."""
    errors: Callable[[str, str], ErrorKey] = lambda metric, column: None
    """By metric and column: where records keep the errors of single sequences."""
    paper_scale: Callable[[Record], dict[str, Any]] = lambda record: asdict(VIDEO["paper"])
    """The same values as the record's setting, at the paper's scale."""
    references: tuple[str, ...] = ()
    """Models that only show where the others stand: nobody tries to reach their numbers."""
    bounds: bool = False
    """The paper's numbers are bounds on growth, not losses."""


def _prediction_errors(metric: str, column: str) -> ErrorKey:
    split, _, what = metric.partition("_")
    return ("test", what) if split == "test" else None


def _prediction_scale(record: Record) -> dict[str, Any]:
    if not is_text(record.data):
        return asdict(VIDEO["paper"])
    return {name: value for name, value in asdict(TEXT["paper"]).items() if name != "canvas"}


def _continual_errors(metric: str, column: str) -> ErrorKey:
    task, after, last = column.partition(" after ")
    order = continual.TASKS.split("+")
    return (f"{order.index(last) + 1}/{task}", metric) if after and last in order else None


def _one_shot_errors(metric: str, column: str) -> ErrorKey:
    return column.split(" ")[0], metric


def _out_of_domain_errors(metric: str, column: str) -> ErrorKey:
    return f"objects/{column.rpartition(' ')[2]}", metric


SUBJECTS: dict[str, Subject] = {
    "prediction": Subject(
        title="Table I: the next frame, the next character",
        asked="How well does each model predict the next frame of two bouncing objects, and the next character of a "
        "text? All see the same sequences in the same order; the best epoch by validation is tested.",
        metrics=(CE, SE, "**BPC**: bits a character, on validation and test text. Lower is better."),
        names={"test_ce": "test CE", "test_se": "test SE", "valid_bpc": "valid BPC", "test_bpc": "test BPC"},
        silent=(
            "Epochs, the size of the validation set and the course of the step size are not given; those used here "
            "are in the table of the scale.",
            "Step sizes of all models were chosen by validation, never by the test set.",
            "The last frame again is not in the paper: it is what a learner must beat to have learnt anything.",
        ),
        errors=_prediction_errors,
        paper_scale=_prediction_scale,
    ),
    "continual": Subject(
        title="Table II: three tasks, one video at a time",
        asked="What is left of the first task when the second and third have been learnt? Digits, then letters, then "
        "clothes, each video seen once, one at a time, and nobody says when the world changes.",
        metrics=(
            SE + " It is taken on the test set of each task after each task.",
            "**average**: final SE over all tasks. **forgetting**: how much SE rose on a task since it was learnt. "
            "**backward transfer**: the same with the other sign. **forward transfer**: how much earlier tasks "
            "lowered the SE on one not yet learnt. **prequential SE**: of all frames, each tested before it teaches.",
        ),
        names={
            "se": "SE",
            "backward_transfer": "backward transfer",
            "forward_transfer": "forward transfer",
            "prequential_se": "prequential SE",
        },
        silent=("The step size is constant: who does not know when a task ends cannot let it fall towards the end.",),
        errors=_continual_errors,
        paper_scale=lambda record: asdict(continual.SCALES["paper"]),
    ),
    "zero-shot": Subject(
        title="Table III: objects never seen, weights frozen",
        asked="What does a network that only knows digits make of letters, and the other way round, if it may not "
        "change a weight? The P-TNCN still corrects its states.",
        metrics=(CE, SE),
        names={"ce": "CE", "se": "SE"},
        errors=lambda metric, column: ("test", metric),
    ),
    "one-shot": Subject(
        title="Appendix: letters met once, then clothes with frozen weights",
        asked="A network that knows digits meets letters once, testing each video before it learns from it, under "
        "plain SGD at 0.01; then it meets clothes with frozen weights. How well does it predict either?",
        metrics=(CE, SE),
        names={"ce": "CE", "se": "SE"},
        silent=(
            "Whether the updates of the one pass are rescaled is not said: here those of the P-TNCN are brought to "
            "norm 1, and gradients of the others are clipped at 1, as in training.",
        ),
        errors=_one_shot_errors,
    ),
    "out-of-domain": Subject(
        title="Appendix: one and three objects after two",
        asked="Networks that have only ever seen two objects meet one, and three, with frozen weights. The paper shows "
        "frames and gives no numbers; two objects are here for comparison.",
        metrics=(CE, SE),
        names={"ce": "CE", "se": "SE"},
        errors=_out_of_domain_errors,
        choices=(*NETWORK, 12),
    ),
    "discrete": Subject(
        title="Appendix: a network of signs",
        asked="Can the network learn online when its units are signs, which have no derivative? It follows a noisy "
        "cosine, and is compared with itself with tanh, with the cosine without noise, and with no training.",
        metrics=("**prequential SE**: squared error of each step, tested before it teaches, mean over the stream.",),
        names={"prequential_se": "prequential SE"},
        choices=NETWORK,
        silent=(
            "What layer 2 expects of layer 1 is not squashed to signs (choice 9): an error of -2, 0 or 2 tells too "
            "little.",
            "The tanh network starts from larger weights (0.3): with 0.025 it stays in the linear range of tanh.",
            "Curves are prequential: the faded mean remembers about 1,000 steps.",
        ),
        references=("cosine", "untrained"),
        paper_scale=lambda record: asdict(discrete.SCALES["paper"]),
    ),
    "complexity": Subject(
        title="Appendix: what a step costs",
        asked="How do time and memory of learning grow with units, layers and the length of a sequence? The paper "
        "gives bounds; here they are measured, for every learner.",
        metrics=(
            "**Exponents** of the power law through the larger half of the sizes. The paper's O(n²) is an exponent of "
            "2; one that is lower, or higher by no more than 0.2, lies within the bound: small sizes have costs that "
            "do not grow.",
            "**ms a step**: median time of one step of learning at the largest size.",
        ),
        names={
            "time_exponent_units": "time by units",
            "memory_exponent_units": "memory by units",
            "time_exponent_length": "time by length",
            "memory_exponent_length": "memory of the state by length",
            "time_exponent_layers": "time by layers",
            "ms_a_step": "ms a step",
        },
        choices=(14,),
        silent=("There are as many inputs as units, so that every matrix is n × n, as in the paper's analysis.",),
        paper_scale=lambda record: asdict(complexity.SCALES["paper"]),
        bounds=True,
    ),
}
