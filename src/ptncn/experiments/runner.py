"""The one training loop: passes over data with checkpoints on the way.

Everything needed to go on is in one checkpoint, written between two batches: a run that was killed and started
again ends with the same numbers, bit for bit on the same machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ptncn import checkpoint
from ptncn.experiments.meters import Film, SequenceErrors
from ptncn.experiments.plan import Pass, Plan
from ptncn.experiments.workshop import Interrupted, Workshop
from ptncn.learner import Learner
from ptncn.metrics import Meter, Prequential, make_metric
from ptncn.records import pack
from ptncn.system import peak_memory, reset_peak_memory
from ptncn.training.loop import run

PROGRESS, BEST, LAST = "progress.safetensors", "best.safetensors", "finished.safetensors"


@dataclass
class Outcome:
    """What a plan came to."""

    learner: Learner
    results: dict[str, Any]
    """By pass: {"metrics": {…}, "errors": {…}, "film": {…}}."""
    curve: dict[str, Any]
    seconds: float
    peak_memory: int

    def metric(self, of: str, metric: str) -> float:
        return float(self.results[of]["metrics"][metric])


@dataclass
class _Course:
    """Where a run is. All of it but the learner and its state is plain, and goes into a checkpoint's `extra`."""

    learner: Learner
    curve: Prequential
    state: Any = None
    index: int = 0
    """The pass under way."""
    batch: int = 0
    """Batches of it that are done."""
    learnt: int = 0
    """Batches learnt from in all passes."""
    meters: list[SequenceErrors] = field(default_factory=list)
    film: dict[str, Any] | None = None
    results: dict[str, Any] = field(default_factory=dict)
    changes: list[list[Any]] = field(default_factory=list)
    best: float | None = None
    seconds: float = 0.0
    peak: int = 0

    PLAIN = ("index", "batch", "learnt", "film", "results", "changes", "best", "seconds", "peak")

    def tree(self, key: str) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.PLAIN}
        return {"key": key, **plain, "curve": self.curve.tree(), "meters": [meter.tree() for meter in self.meters]}


def execute(plan: Plan, workshop: Workshop) -> Outcome:
    """Do what the plan says, or the rest of it."""
    folder = workshop.runs / plan.folder
    if plan.keep and (folder / LAST).is_file() and not workshop.fresh:
        return _outcome(_load(folder / LAST, plan))
    folder.mkdir(parents=True, exist_ok=True)
    course = _begin_or_resume(plan, workshop, folder)
    done = sum(len(each) for each in plan.passes[: course.index]) + course.batch
    workshop.reporter.begin(plan.name, sum(map(len, plan.passes)), done)
    try:
        _go_on(plan, course, workshop, folder)
    finally:
        workshop.reporter.end()
    if plan.keep:
        if course.best is not None:
            course.learner = checkpoint.load(folder / BEST).learner
        checkpoint.save(folder / LAST, course.learner, None, course.tree(plan.key))
        (folder / PROGRESS).unlink(missing_ok=True)
        (folder / BEST).unlink(missing_ok=True)
    return _outcome(course)


def tidy(plan: Plan, workshop: Workshop) -> None:
    """Remove the checkpoints of a plan whose record is written."""
    folder = workshop.runs / plan.folder
    for name in (PROGRESS, BEST):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _begin_or_resume(plan: Plan, workshop: Workshop, folder: Path) -> _Course:
    if workshop.resume and (folder / PROGRESS).is_file():
        return _load(folder / PROGRESS, plan)
    return _Course(plan.start(), _new_curve(plan))


def _new_curve(plan: Plan) -> Prequential:
    return Prequential(make_metric(plan.curve_metric), fading=0.999, points=500)


def _go_on(plan: Plan, course: _Course, workshop: Workshop, folder: Path) -> None:
    reset_peak_memory()
    clock = saved = time.monotonic()
    while course.index < len(plan.passes):
        now = plan.passes[course.index]
        if course.batch == 0:
            _open(now, course, folder)
        for x, mask in now.batches(course.batch):
            _one_batch(plan, now, course, x, mask)
            course.batch += 1
            loss = course.curve.compute()["faded"] if now.learn else course.meters[0].compute()
            workshop.reporter.advance(x.shape[0] * x.shape[1], plan.curve_metric, loss)
            moment = time.monotonic()
            if workshop.stop.requested or moment - saved >= workshop.every:
                course.seconds, clock = course.seconds + moment - clock, moment
                _save(plan, course, folder)
                saved = time.monotonic()
                if workshop.stop.requested:
                    raise Interrupted(plan.name)
        _close(now, course, folder)
        if plan.told is not None:
            plan.told(now.name, course.results[now.name]["metrics"])
        course.index, course.batch, course.state, course.film = course.index + 1, 0, None, None
    course.seconds += time.monotonic() - clock
    course.peak = max(course.peak, peak_memory())


def _open(now: Pass, course: _Course, folder: Path) -> None:
    course.meters = [SequenceErrors(metric) for metric in now.metrics]
    if now.from_best and course.best is not None:
        course.learner = checkpoint.load(folder / BEST).learner
    if now.learn:
        course.changes.append([course.curve.tree()["steps"], now.data.name])


def _one_batch(plan: Plan, now: Pass, course: _Course, x: Tensor, mask: Tensor | None) -> None:
    meters: list[Meter] = list(course.meters)
    film = Film(now.film) if now.film and course.batch == 0 else None
    if film is not None:
        meters.append(film)
    if now.learn:
        _set_step_size(plan, course)
        meters.append(course.curve)
        course.learnt += 1
    last = not now.carry or course.batch + 1 == len(now)
    outcome = run(
        course.learner,
        x,
        state=course.state,
        learn=now.learn,
        mask=mask,
        meters=meters,
        end=last,
        keep_predictions=False,
    )
    course.state = None if last else outcome.state
    for meter in course.meters:
        meter.close()
    if film is not None:
        course.film = {name: pack(array) for name, array in film.arrays().items()}


def _set_step_size(plan: Plan, course: _Course) -> None:
    """Linear from 1 to `decay`; a learner without a step size needs none."""
    if plan.decay != 1.0 and hasattr(course.learner, "lr"):
        total = sum(len(each) for each in plan.passes if each.learn)
        share = 1 - (1 - plan.decay) * course.learnt / max(total, 1)
        course.learner.lr = course.learner.options()["lr"] * share


def _close(now: Pass, course: _Course, folder: Path) -> None:
    metrics = {meter.name: meter.compute() for meter in course.meters}
    result: dict[str, Any] = {"metrics": metrics}
    if now.keep_errors:
        result["errors"] = {meter.name: pack(meter.by_sequence()) for meter in course.meters}
    if course.film is not None:
        result["film"] = course.film
    course.results[now.name] = result
    value = metrics[now.metrics[0]]
    if now.select and (course.best is None or value < course.best):
        course.best = value
        checkpoint.save(folder / BEST, course.learner)


def _save(plan: Plan, course: _Course, folder: Path) -> None:
    course.peak = max(course.peak, peak_memory())
    checkpoint.save(folder / PROGRESS, course.learner, course.state, course.tree(plan.key))


def _load(path: Path, plan: Plan) -> _Course:
    learner, state, tree = checkpoint.load(path)
    if tree.get("key") != plan.key:
        raise checkpoint.CheckpointError(f"{path}: belongs to another run; remove it, or leave out --resume")
    course = _Course(learner, _new_curve(plan), state, **{name: tree[name] for name in _Course.PLAIN})
    course.curve.load_tree(tree["curve"])
    if course.index < len(plan.passes):
        for metric, meter in zip(plan.passes[course.index].metrics, tree["meters"], strict=True):
            course.meters.append(SequenceErrors(metric))
            course.meters[-1].load_tree(meter)
    return course


def _outcome(course: _Course) -> Outcome:
    points = course.curve.curve()
    curve = {
        "metric": course.curve.name,
        "steps": [point.step for point in points],
        "mean": [point.mean for point in points],
        "faded": [point.faded for point in points],
        "changes": course.changes,
        "prequential": course.curve.compute()["mean"],
    }
    return Outcome(course.learner, course.results, curve, course.seconds, course.peak)
