"""Does a network get worse if it trains for a long time? Validation error and weight norms after each epoch.

    python benchmarks/unlearning.py run video-constant      # results/stability/video-constant.json
    python benchmarks/unlearning.py page                    # docs/stability.md and its figures, from these records

An interrupted run continues after its last complete epoch, from a checkpoint in `--work`.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import ptncn
from ptncn import PTNCN
from ptncn.data import bouncing, penn_treebank
from ptncn.data.sequences import SequenceDataset

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "results/stability"
LOG2 = 0.6931471805599453


@dataclass(frozen=True)
class Campaign:
    """A network, its data and its step sizes."""

    data: str
    epochs: int
    batch_size: int
    hidden_sizes: tuple[int, ...]
    falls_to: float = 1.0
    """The final step size as a share of the first; it falls linearly."""
    options: dict[str, Any] = field(default_factory=lambda: {"preset": "best"})


STEADY = {"preset": "best", "optimizer": "rmsprop", "lr": 0.0006, "schedule": None, "weight_std": 0.025}
COUPLED = {**STEADY, "teaching": "coupled", "biases": False, "output_bias": "zero"}
MEMORY = {"preset": "best", "memory": 128}
CONSTANT = {**MEMORY, "schedule": None, "lr": 0.0001}
MEAN = {"reduction": "mean"}
LARGE = {**CONSTANT, **MEAN, "lr": 0.0004}
UNBOUNDED = {"activation": "relu"}
CAMPAIGNS = {
    "video-constant": Campaign("video", 10, 20, (1000, 1000, 1000), options=STEADY),
    "video-falling": Campaign("video", 10, 20, (1000, 1000, 1000), falls_to=0.05, options=STEADY),
    "video-best": Campaign("video", 10, 20, (1000, 1000, 1000)),
    "video-coupled": Campaign("video", 10, 20, (1000, 1000, 1000), options=COUPLED),
    "text-constant": Campaign("text", 5, 50, (600,), options=CONSTANT),
    "text-constant-mean": Campaign("text", 5, 50, (600,), options=CONSTANT | MEAN),
    "text-constant-large": Campaign("text", 5, 50, (600,), options=LARGE),
    "text-constant-relu": Campaign("text", 5, 50, (600,), options=LARGE | UNBOUNDED),
    "text-falling": Campaign("text", 5, 50, (600,), options=MEMORY | MEAN),
    "text-falling-relu": Campaign("text", 5, 50, (600,), options=MEMORY | MEAN | UNBOUNDED),
}


def datasets(kind: str) -> tuple[SequenceDataset, SequenceDataset]:
    """The training and the validation data."""
    if kind == "video":
        return bouncing("mnist", "train"), bouncing("mnist", "valid", size=500)
    return penn_treebank("train"), penn_treebank("valid")


def build(campaign: Campaign, input_size: int) -> PTNCN:
    output = "bernoulli" if campaign.data == "video" else "categorical"
    return PTNCN(input_size, list(campaign.hidden_sizes), output=output, **campaign.options)


def errors(net: PTNCN, batches: Iterator[Any], *, learn: bool) -> dict[str, float]:
    """Nats (or bits) and squared error per scored observation."""
    nats = squares = count = 0.0
    for frames, mask in batches:
        state = net.begin(frames.shape[1])
        for t, x in enumerate(frames):
            seen = None if mask is None else mask[t]
            out = net.step(x, state, learn=learn, mask=seen)
            nats += net.output.nll(out.logits, x)[out.scored].sum().item()
            squares += (out.prediction - x).square().sum(-1)[out.scored].sum().item()
            count += int(out.scored.sum())
        net.end(state)
    if net.output.name == "categorical":
        return {"bpc": nats / count / LOG2}
    return {"ce": nats / count, "se": squares / count}


def falling(net: PTNCN, batches: Iterator[Any], start: float, done: int, total: int, final: float) -> Iterator[Any]:
    """The batches; sets the step size before each."""
    for number, batch in enumerate(batches, start=done):
        net.lr = start * (1 - (1 - final) * number / total)
        yield batch


def norms(net: PTNCN) -> dict[str, float]:
    """The largest singular value of each matrix."""
    return {name: _spectral(weight) for name, weight in net.synapses().items() if weight.dim() == 2}


def _spectral(weight: Tensor) -> float:
    vector = torch.randn(weight.shape[1], generator=torch.Generator().manual_seed(0))
    for _ in range(30):
        vector = weight.T @ (weight @ vector)
        vector /= vector.norm().clamp_min(1e-30)
    return float((weight @ vector).norm())


def run(name: str, work: Path, records: Path) -> None:
    campaign = CAMPAIGNS[name]
    train, valid = datasets(campaign.data)
    checkpoint = work / f"{name}.ckpt"
    net, rows = build(campaign, train.input_size), []
    if checkpoint.is_file():
        loaded = ptncn.load(checkpoint)
        net, rows = loaded.learner, loaded.extra
    batches, start = -(-len(train) // campaign.batch_size), net.config.lr
    while len(rows) < campaign.epochs:
        began = time.perf_counter()
        plan = train.batches(campaign.batch_size, shuffle_seed=0, epoch=len(rows))
        total, done = batches * campaign.epochs, batches * len(rows)
        training = errors(net, falling(net, plan, start, done, total, campaign.falls_to), learn=True)
        rows.append(
            {
                "epoch": len(rows) + 1,
                "train": training,
                "valid": errors(net, valid.batches(50), learn=False),
                "norms": norms(net),
                "seconds": round(time.perf_counter() - began, 1),
            }
        )
        print(name, json.dumps({key: rows[-1][key] for key in ("epoch", "train", "valid", "seconds")}), flush=True)
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        ptncn.save(checkpoint, net, extra=rows)
        write(name, campaign, net, rows, records)


def write(name: str, campaign: Campaign, net: PTNCN, rows: list[dict[str, Any]], records: Path) -> None:
    content = {
        "command": f"python benchmarks/unlearning.py run {name} --threads {torch.get_num_threads()}",
        "versions": {"ptncn": ptncn.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "data": campaign.data,
        "batch_size": campaign.batch_size,
        "falls_to": campaign.falls_to,
        "epochs": campaign.epochs,
        "options": net.options(),
        "rows": rows,
    }
    records.mkdir(parents=True, exist_ok=True)
    (records / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "page"])
    parser.add_argument("campaign", nargs="?", choices=CAMPAIGNS)
    parser.add_argument("--work", type=Path, default=ROOT / "runs/stability", help="where to keep checkpoints")
    parser.add_argument("--records", type=Path, default=RECORDS, help="where to write records")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run; other numbers round differently")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    if chosen.action == "run":
        run(chosen.campaign, chosen.work, chosen.records)
    else:
        from unlearning_page import write_page

        write_page(chosen.records)


if __name__ == "__main__":
    main()
