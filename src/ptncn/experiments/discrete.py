"""The appendix's stream: a network of signs learns a noisy cosine, though a sign has no derivative."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ptncn.experiments.base import Cells, Experiment, Findings, Job, collect, evaluate
from ptncn.experiments.plan import Pass, Plan
from ptncn.experiments.tasks import Cosine, describe
from ptncn.experiments.workshop import Workshop
from ptncn.learners import make
from ptncn.records import Record


@dataclass(frozen=True)
class Config:
    steps: int = 100_000
    """The paper's."""
    layers: int = 2
    """The paper's."""
    units: int = 20
    """The paper's."""
    chunk: int = 1_000
    """Steps between two looks at the clock; changes no number."""
    hidden_prediction: str = "identity"
    """What layer 2 expects of layer 1 is not squashed to signs: an error of −2, 0 or 2 tells too little."""


SCALES = {"smoke": Config(steps=3_000), "laptop": Config(), "paper": Config()}
"""The whole experiment takes half a minute: only a smoke test is shorter."""

VARIANTS: dict[str, dict[str, Any]] = {
    "sign": {"activation": "sign"},
    # With weights of 0.025 tanh stays in its linear range and the errors that return through E are tiny: the
    # network adapts ten times as slowly. Signs have one size whatever the weights are.
    "tanh": {"activation": "tanh", "weight_std": 0.3, "error_weight_std": 0.3, "error_rule": "transpose"},
    "cosine": {},
    "untrained": {"activation": "sign"},
}
"""Options beside the preset "paper"."""


def config(job: Job) -> dict[str, Any]:
    return {**asdict(SCALES[job.scale]), "seed": job.seed, "options": options(job)}


def options(job: Job) -> dict[str, Any]:
    if job.model == "cosine":
        return {}
    size = SCALES[job.scale]
    return {
        "hidden_sizes": [size.units] * size.layers,
        "output": "gaussian",
        "preset": "paper",
        "seed": job.seed,
        "hidden_prediction": size.hidden_prediction,
        **VARIANTS[job.model],
    }


def run(job: Job, workshop: Workshop) -> Findings:
    size = SCALES[job.scale]
    data = Cosine(size.steps, chunk=size.chunk, seed=job.seed)
    if job.model == "cosine":
        noise = data.cosine.values(1, size.steps - 1) - np.cos(data.cosine.step * np.arange(1, size.steps))
        return Findings({"prequential_se": float(np.mean(noise**2))}, datasets={"stream": describe(data)})
    learns = job.model != "untrained"
    plan = Plan(
        name=f"discrete/{job.model}/{job.seed}",
        config=config(job),
        start=lambda: make("ptncn", input_size=1, **options(job)),
        passes=(Pass(name="stream", data=data, metrics=("se",), batch_size=1, learn=learns, carry=True),),
        curve_metric="se",
    )
    outcome = evaluate(plan, workshop)
    return collect(outcome, plan, metrics={"prequential_se": outcome.metric("stream", "se")})


def cells(record: Record) -> Cells:
    return {"prequential_se": {"": record.metrics["prequential_se"]}}


EXPERIMENT = Experiment(
    name="discrete",
    about="appendix: a noisy cosine, 100,000 steps, with signs and with tanh",
    models={"noisy-cosine": tuple(VARIANTS)},
    any_model=False,
    small=True,
    seeds={"smoke": 1, "laptop": 1, "paper": 5},
    config=config,
    run=run,
    cells=cells,
    paper={
        "prequential_se": {
            "sign": {"": 0.0163},
            "tanh": {"": 0.0169},
            "cosine": {"": 0.0006},
            "untrained": {"": 1.1057},
        }
    },
)
