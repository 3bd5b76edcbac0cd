"""The options of each learner on each kind of data: its defaults, and in `configs/` what tuning found better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ptncn.experiments.setting import Setting
from ptncn.learners.registry import describe

TUNED_ON = {"video": "mnist", "text": "ptb"}
"""Whose tuned values serve data that has none of its own."""
ONLINE_NAME = "continual"
"""Under which values are kept that were tuned one sequence at a time; no others serve there."""


def options_for(
    model: str, kind: str, data: str, setting: Setting, seed: int, configs: Path | None = None
) -> tuple[dict[str, Any], str | None]:
    """All options of a learner, and the file of tuned values that they come from, if any."""
    defaults = default_options(model, kind, online=setting.batch_size == 1)
    options = {**defaults, "hidden_size": setting.hidden_size(model), "seed": seed}
    tuned = find_tuned(model, kind, ONLINE_NAME if setting.batch_size == 1 else data, configs)
    if tuned is None:
        return options, None
    return {**options, **json.loads(tuned.read_text())["options"]}, str(tuned)


def default_options(model: str, kind: str, *, online: bool = False) -> dict[str, Any]:
    """
    >>> default_options("lstm-uoro", "video")["lr"]
    0.0003
    """
    return describe(model).default_options(kind, online=online)


def find_tuned(model: str, kind: str, data: str, configs: Path | None) -> Path | None:
    """The file of tuned values for this learner and data, or for those whose values serve them."""
    if configs is None:
        return None
    for whose in (model, describe(model).tuned_like or model):
        for name in (data,) if data == ONLINE_NAME else (data, TUNED_ON.get(kind, data)):
            path = configs / f"{whose}-{name}.json"
            if path.is_file():
                return path
    return None
