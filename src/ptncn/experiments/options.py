"""The options of a learner: its defaults for a kind of data, then the values that tuning found.

Tuned values ship with the package (`experiments/tuned/`); a folder of your own replaces them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptncn.learners.registry import describe

if TYPE_CHECKING:
    from ptncn.experiments.spec import RunSpec

TUNED = Path(__file__).parent / "tuned"
"""The tuned values of the package: NAME-DATA.json."""
TUNED_ON = {"video": "mnist", "text": "ptb"}
"""The dataset whose tuned values serve others of the same kind."""
ONLINE_NAME = "continual"
"""The name under which values tuned one sequence at a time are kept; no others serve there."""


def options_for(spec: RunSpec) -> tuple[dict[str, Any], str | None]:
    """All options of the learner of a spec, and the name of the file of tuned values that they come from, if any."""
    kind, online = spec.splits.kind, spec.config.batch_size == 1
    entry = describe(spec.learner)
    defaults = entry.default_options(kind, online=online) if spec.inherit else {}
    size = {} if entry.size_class == "none" else {"hidden_size": spec.config.hidden_size(spec.learner)}
    options = {**defaults, **size, "seed": spec.seed}
    owners = (spec.row, spec.learner, entry.tuned_like or spec.learner) if spec.inherit else (spec.row,)
    file = find_tuned(owners, kind, ONLINE_NAME if online else spec.data, spec.tuned)
    if file is None:
        return options, None
    return {**options, **json.loads(file.read_text())["options"]}, f"{file.parent.name}/{file.name}"


def find_tuned(owners: tuple[str, ...], kind: str, data: str, folder: Path | None) -> Path | None:
    """The first file of tuned values among those of some rows or learners, for this data or for its kind."""
    if folder is None:
        return None
    for owner in dict.fromkeys(owners):
        for name in (data,) if data == ONLINE_NAME else (data, TUNED_ON.get(kind, data)):
            path = folder / f"{owner}-{name}.json"
            if path.is_file():
                return path
    return None
