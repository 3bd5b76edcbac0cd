"""The stream in the appendix: networks with sign and tanh units learn a noisy cosine online."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ptncn.data import CosineStream
from ptncn.data.registry import describe_used
from ptncn.experiments.experiment import NETWORK, Cells, Experiment, FigureSpec, PageSpec, Row
from ptncn.experiments.phases import Phase, PhasedRun
from ptncn.experiments.run import RunContext, RunSpec
from ptncn.experiments.runner import Result, execute_once
from ptncn.learners import make
from ptncn.records import Record


@dataclass(frozen=True)
class StreamConfig:
    steps: int = 100_000
    """The paper's."""
    layers: int = 2
    """The paper's."""
    units: int = 20
    """The paper's."""
    chunk: int = 1_000
    """Steps between two checks for checkpoints; does not affect the results."""
    hidden_prediction: str = "identity"
    """Layer 2's predictions of layer 1 are not reduced to signs: errors of −2, 0 or 2 carry too little information."""


SCALES = {"smoke": StreamConfig(steps=3_000), "laptop": StreamConfig(), "paper": StreamConfig()}
"""The full experiment takes half a minute, so only the smoke test is shorter."""

VARIANTS = {
    "sign": Row("ptncn", {"activation": "sign"}, "P-TNCN (sign)"),
    # With weights of 0.025, tanh stays in its linear range and the errors that E feeds back are tiny, so the network
    # adapts ten times as slowly. Signs do not depend on the size of the weights.
    "tanh": Row(
        "ptncn",
        {"activation": "tanh", "weight_std": 0.3, "error_weight_std": 0.3, "error_rule": "transpose"},
        "P-TNCN (tanh)",
    ),
    "cosine": Row("ptncn", {}, "the cosine without noise"),
    "untrained": Row("ptncn", {"activation": "sign"}, "not trained"),
}
"""Options in addition to the preset "paper"."""


def values(spec: RunSpec) -> dict[str, Any]:
    return {**asdict(spec.config), "seed": spec.seed, "options": options(spec)}


def options(spec: RunSpec) -> dict[str, Any]:
    if spec.row == "cosine":
        return {}
    return {
        "hidden_sizes": [spec.config.units] * spec.config.layers,
        "output": "gaussian",
        "preset": "paper",
        "seed": spec.seed,
        "hidden_prediction": spec.config.hidden_prediction,
        **spec.options,
    }


def run(spec: RunSpec, context: RunContext) -> Result:
    steps = spec.config.steps
    data = CosineStream(steps, chunk=spec.config.chunk, seed=spec.seed)
    if spec.row == "cosine":
        noise = data.cosine.values(1, steps - 1) - np.cos(data.cosine.step * np.arange(1, steps))
        return Result({"prequential_se": float(np.mean(noise**2))}, datasets={"stream": describe_used(data)})
    phased = PhasedRun(
        name=f"discrete/{spec.row}/{spec.seed}",
        config=values(spec),
        start=lambda: make(spec.learner, input_size=1, **options(spec)),
        phases=(Phase(name="stream", data=data, metrics=("se",), batch_size=1, learn=spec.row != "untrained"),),
        curve_metric="se",
    )
    result = execute_once(phased, context)
    result.metrics = {"prequential_se": result.metric("stream", "se")}
    return result


def cells(record: Record) -> Cells:
    return {"prequential_se": {"": record.metrics["prequential_se"]}}


PAGE = PageSpec(
    title="Appendix: sign units",
    question="Can the network learn online with sign units, which have no derivative? It predicts a noisy cosine and "
    "is compared with tanh units, with the cosine without noise, and with an untrained network.",
    metrics=("**prequential SE**: mean squared error over the stream; each step is tested before it is learnt.",),
    metric_labels={"prequential_se": "prequential SE"},
    choices=NETWORK,
    unstated=(
        "Layer 2's predictions of layer 1 are not reduced to signs (choice 9): errors of -2, 0 or 2 would carry too "
        "little information.",
        "The tanh network starts with larger weights (0.3): with 0.025 its units stay in the linear range of tanh.",
        "Curves are prequential: exponentially fading means over about 1,000 steps.",
    ),
    references=("cosine", "untrained"),
    paper_config=lambda record: asdict(SCALES["paper"]),
    figures=(FigureSpec("curves", {"what": "prequential", "logarithmic": True}),),
)

EXPERIMENT = Experiment(
    name="discrete",
    about="appendix: a noisy cosine, with sign and with tanh units",
    rows={"noisy-cosine": tuple(VARIANTS)},
    variants=VARIANTS,
    any_learner=False,
    reference="sign",
    config=lambda data, scale: SCALES[scale],
    seeds={"smoke": 1, "laptop": 1, "paper": 5},
    single_thread=True,
    values=values,
    run=run,
    cells=cells,
    page=PAGE,
    paper={
        "prequential_se": {
            "sign": {"": 0.0163},
            "tanh": {"": 0.0169},
            "cosine": {"": 0.0006},
            "untrained": {"": 1.1057},
        }
    },
)
