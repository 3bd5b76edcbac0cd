"""How large a run is at each scale, with the reason for every value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ptncn.data.registry import describe_data
from ptncn.learners.registry import SIZE_CLASSES, describe

SCALES = ("smoke", "laptop", "paper")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The size of training on one kind of data. Every learner gets the same data in the same order."""

    embedded: bool = False
    """Use embedded data even if the real data is in the cache: smoke runs give the same numbers everywhere."""
    canvas: int = 64
    """Pixels along an edge of a video; the paper's 64."""
    sequences: int
    """Sequences in an epoch. The paper makes 10,000 videos; Penn Treebank has 42,068 sentences."""
    epochs: int
    """Not given in the paper. The validation error is measured after each epoch, and the best learner is kept."""
    valid: int
    """Validation sequences; not given in the paper."""
    test: int
    """Test sequences; the paper's 10,000."""
    batch_size: int
    """Sequences per batch: in the paper 20 for videos, 50 for text and 1 for continual learning."""
    decay: float = 1.0
    """The step size falls linearly to this share. The paper's "ranged between 0.01 to 0.0004" is a share of 0.04."""
    layers: int
    """Layers of the P-TNCN: 3 for videos and 2 for text in the paper."""
    units: int
    """Units in each layer of the P-TNCN: 1,000 to 3,000 in the paper."""
    gated_units: int
    """Units of LSTM, GRU and RHN: 1,000 in the paper."""
    plain_units: int
    """Units of RNN and ESN: 2,000 in the paper."""
    rank_one_units: int
    """Units for UORO and KF-RTRL, which store as many numbers as there are weights for each row of a batch."""
    exact_units: int
    """Units for exact RTRL, as many as fit. The paper's 1,000 would take 163 GB for each row of a batch, so it cannot
    have been run as stated."""
    seeds: int = 1
    """Default number of trials."""
    patience: int | None = None
    """Stop when validation has not improved for this many epochs; None: train for all epochs."""

    def hidden_size(self, learner: str) -> int | list[int]:
        """
        >>> VIDEO["laptop"].hidden_size("ptncn"), VIDEO["laptop"].hidden_size("gru-bptt")
        ([500, 500, 500], 500)
        """
        size_class = describe(learner).size_class
        if size_class == "layers":
            return [self.units] * self.layers
        sizes = {
            "exact": self.exact_units,
            "rank_one": self.rank_one_units,
            "factored": self.rank_one_units,
            "plain": self.plain_units,
        }
        return sizes.get(size_class, self.gated_units)

    def with_units(self, units: int, layers: int = 1) -> RunConfig:
        """The same config with this many units for every learner."""
        sizes: dict[str, Any] = dict.fromkeys(
            ("units", "gated_units", "plain_units", "rank_one_units", "exact_units"), units
        )
        return replace(self, layers=layers, **sizes)

    def values(self) -> dict[str, Any]:
        """All values, for a record. An unused `patience` is left out, as in records that predate it."""
        return {name: value for name, value in asdict(self).items() if (name, value) != ("patience", None)}


LABELS = {
    "canvas": "pixels along an edge of a video",
    "sequences": "sequences per epoch",
    "epochs": "epochs",
    "valid": "validation sequences",
    "test": "test sequences",
    "batch_size": "batch size",
    "decay": "last step size as a share of the first",
    "layers": "layers of the P-TNCN",
    "units": SIZE_CLASSES["layers"],
    "gated_units": SIZE_CLASSES["gated"],
    "plain_units": SIZE_CLASSES["plain"],
    "rank_one_units": SIZE_CLASSES["rank_one"],
    "exact_units": SIZE_CLASSES["exact"],
}
"""Labels of config values in tables; others keep their names."""

VIDEO = {
    "smoke": RunConfig(  # seconds: only shows that everything works
        embedded=True,
        canvas=32,  # the smallest power of two that a 28×28 object can move on
        sequences=60,
        epochs=2,  # two, so that selection by validation is exercised
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
    ),
    "laptop": RunConfig(
        sequences=2_000,  # a fifth of the paper's: half a minute to two minutes a learner
        epochs=1,  # new videos teach more than repeated ones
        valid=200,
        test=500,  # learners are compared sequence by sequence: a difference of 1 in SE is detected
        batch_size=20,
        decay=0.1,
        layers=3,
        units=500,  # a quarter of the paper's weights
        gated_units=500,
        plain_units=1_000,
        rank_one_units=50,  # 20 rows × 0.83 million weights: 66 MB of state, updated at each step
        exact_units=8,  # 20 rows of 16 units × 131 thousand weights: 168 MB
    ),
    "paper": RunConfig(
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
    ),
}

TEXT = {
    "smoke": RunConfig(
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
    ),
    "laptop": RunConfig(
        sequences=5_000,  # 0.6 million characters of Penn Treebank
        epochs=1,
        valid=500,
        test=500,
        batch_size=20,  # not 50: BPTT makes one update per batch, and 100 updates teach nothing
        decay=0.1,
        layers=2,
        units=300,
        gated_units=300,
        plain_units=600,
        rank_one_units=100,
        exact_units=16,
    ),
    "paper": RunConfig(
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
    ),
}

STREAM = {
    "smoke": TEXT["smoke"],
    "laptop": replace(TEXT["laptop"], sequences=6_000, valid=600, test=600),  # as many characters as in sentences
    "paper": replace(TEXT["paper"], sequences=60_000, valid=10_000, test=10_000),  # all of it
}
"""Continuous text: a sequence is a piece of 100 characters, and `batch_size` lanes are read in parallel."""


def find_config(data: str, scale: str) -> RunConfig:
    """
    >>> find_config("ptb", "paper").layers, find_config("mnist", "paper").layers
    (2, 3)
    """
    entry = describe_data(data)
    if entry.kind == "text":
        return (STREAM if entry.continuous else TEXT)[scale]
    return VIDEO[scale]
