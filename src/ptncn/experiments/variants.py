"""Rows that several tables share: the P-TNCN beyond the paper's settings. The row `ptncn` is the paper's network."""

from __future__ import annotations

from ptncn.experiments.experiment import Row

BEST = Row("ptncn", {"preset": "best"}, "P-TNCN (best)", inherit=False)
"""The settings that this package found best on validation videos."""

MEMORY = Row(
    "ptncn",
    {"preset": "best", "memory": 256, "optimizer": "adam", "lr": 0.0015},
    "P-TNCN with memory",
    inherit=False,
)
"""For text: layers with a trace memory, which assigns credit through time without unrolling."""

VARIANTS = {"ptncn-best": BEST, "ptncn-memory": MEMORY}
