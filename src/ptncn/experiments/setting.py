"""How large an experiment is, at each scale; every value with its reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ptncn.data.show import TEXTS
from ptncn.learners import describe

SCALES = ("smoke", "laptop", "paper")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Of learning on one kind of data. Every model gets the same data in the same order, and the same budget."""

    embedded: bool = False
    """Use the embedded data even where the real is found: a smoke test gives the same numbers everywhere."""
    canvas: int = 64
    """Pixels along an edge of a video; the paper's is 64."""
    sequences: int
    """To learn from in one epoch. The paper makes 10,000 videos; Penn Treebank has 42,068 sentences."""
    epochs: int
    """The paper is silent on them; after each, the validation error is taken, and the best network is kept."""
    valid: int
    """Sequences to choose by; the paper does not say how many."""
    test: int
    """Sequences to be tested on; the paper's 10,000."""
    batch_size: int
    """Sequences side by side: the paper has 20 for videos, 50 for text and 1 for continual learning."""
    decay: float = 1.0
    """The step size falls linearly to this share. The paper's "ranged between 0.01 to 0.0004", a share of 0.04."""
    layers: int
    """Of the P-TNCN: the paper has 3 for videos and 2 for text."""
    units: int
    """In each layer of the P-TNCN: 1,000 to 3,000 in the paper."""
    gated_units: int
    """Of LSTM, GRU and RHN: 1,000 in the paper."""
    plain_units: int
    """Of RNN and ESN: 2,000 in the paper."""
    rank_one_units: int
    """Of cells under UORO and KF-RTRL, whose state is as large as the weights, for each row of a batch."""
    exact_units: int
    """Of cells under exact RTRL. The paper's 1,000 would take 163 GB for each row of a batch: it cannot have been
    run as stated. This is what fits."""
    seeds: int = 1
    """Trials, if nobody says how many."""

    def hidden_size(self, model: str) -> int | list[int]:
        """
        >>> LAPTOP_VIDEO.hidden_size("ptncn"), LAPTOP_VIDEO.hidden_size("gru-bptt")
        ([500, 500, 500], 500)
        """
        size_class = describe(model).size_class
        if size_class == "layers":
            return [self.units] * self.layers
        sizes = {"exact": self.exact_units, "rank_one": self.rank_one_units, "plain": self.plain_units}
        return sizes.get(size_class, self.gated_units)

    def values(self) -> dict[str, Any]:
        return asdict(self)


SMOKE_VIDEO = Setting(
    embedded=True,
    canvas=32,  # the smallest power of two that a 28×28 object can move on
    sequences=60,
    epochs=2,  # two, so that the choice by validation is run through
    valid=20,
    test=40,
    batch_size=20,
    decay=0.1,
    layers=2,
    units=24,
    gated_units=24,
    plain_units=24,
    rank_one_units=8,
    exact_units=2,
)
"""Seconds. Shows that everything works, and nothing else."""

LAPTOP_VIDEO = Setting(
    sequences=2_000,  # a fifth of the paper's: half a minute to two minutes a model
    epochs=1,  # new videos teach more than old ones again
    valid=200,
    test=500,  # differences between models are tested sequence by sequence: 1 in SE is seen
    batch_size=20,
    decay=0.1,
    layers=3,
    units=500,  # a quarter of the paper's weights
    gated_units=500,
    plain_units=1_000,
    rank_one_units=50,  # 20 rows × 0.83 million weights: 66 MB of state, gone through at each step
    exact_units=8,  # 20 rows of 16 units × 131 thousand weights: 168 MB
)

PAPER_VIDEO = Setting(
    sequences=10_000,
    epochs=10,  # about the time that one night gives a table on two cores
    valid=1_000,
    test=10_000,
    batch_size=20,
    decay=0.04,
    layers=3,
    units=1_000,
    gated_units=1_000,
    plain_units=2_000,
    rank_one_units=1_000,  # 1.6 GB of state at 20 rows
    exact_units=32,  # 2.7 GB at 20 rows, and some seconds a step
)

SMOKE_TEXT = Setting(
    embedded=True,
    sequences=60,
    epochs=2,
    valid=20,
    test=20,
    batch_size=20,
    decay=0.1,
    layers=2,
    units=16,
    gated_units=16,
    plain_units=16,
    rank_one_units=8,
    exact_units=4,
)

LAPTOP_TEXT = Setting(
    sequences=5_000,  # 0.6 million characters of Penn Treebank
    epochs=1,
    valid=500,
    test=500,
    batch_size=20,  # not 50: BPTT makes one update a batch, and 100 in all would teach nobody
    decay=0.1,
    layers=2,
    units=300,
    gated_units=300,
    plain_units=600,
    rank_one_units=100,
    exact_units=16,
)

PAPER_TEXT = Setting(
    sequences=42_068,
    epochs=10,
    valid=3_370,
    test=3_761,
    batch_size=50,
    decay=0.04,
    layers=2,
    units=1_000,
    gated_units=1_000,
    plain_units=2_000,
    rank_one_units=500,
    exact_units=64,
)

VIDEO = {"smoke": SMOKE_VIDEO, "laptop": LAPTOP_VIDEO, "paper": PAPER_VIDEO}
TEXT = {"smoke": SMOKE_TEXT, "laptop": LAPTOP_TEXT, "paper": PAPER_TEXT}


def is_text(data: str) -> bool:
    return data in TEXTS


def find_setting(data: str, scale: str) -> Setting:
    """
    >>> find_setting("ptb", "paper").layers, find_setting("mnist", "paper").layers
    (2, 3)
    """
    return (TEXT if is_text(data) else VIDEO)[scale]
