"""The training loop: phases over data, with checkpoints.

Checkpoints are written between batches and hold everything needed to continue: a run that is killed and resumed ends
with the same numbers, bit for bit on the same machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ptncn import checkpoint
from ptncn.experiments.phases import Film, Phase, PhasedRun, SequenceErrors, final_phase, training_run
from ptncn.experiments.run import Interrupted, RunContext, RunSpec
from ptncn.learner import Learner, has_step_size
from ptncn.metrics import Meter, Prequential, make_metric
from ptncn.records import pack
from ptncn.system import peak_memory, reset_peak_memory
from ptncn.training import run

PROGRESS, BEST, LAST = "progress.safetensors", "best.safetensors", "finished.safetensors"


@dataclass
class Result:
    """The results of a run, as stored in its record."""

    metrics: dict[str, Any] = field(default_factory=dict)
    learner: Learner | None = None
    phases: dict[str, Any] = field(default_factory=dict)
    """{phase: {"metrics": {…}, "errors": {…}, "film": {…}}}."""
    datasets: dict[str, Any] = field(default_factory=dict)
    observation_shape: tuple[int, ...] = ()
    curve: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    peak_memory: int = 0
    notes: list[str] = field(default_factory=list)
    stand_ins: dict[str, str] = field(default_factory=dict)

    def metric(self, phase: str, metric: str) -> float:
        return float(self.phases[phase]["metrics"][metric])

    def describe(self, *specs: RunSpec) -> None:
        """Add the notes and stand-ins of these specs."""
        self.notes = list(dict.fromkeys([*self.notes, *(line for spec in specs for line in spec.notes())]))
        for spec in specs:
            self.stand_ins |= spec.stand_ins

    def fields(self) -> dict[str, Any]:
        """The fields of the record."""
        shape = list(self.observation_shape)
        films = {name: {**phase["film"], "observation_shape": shape} for name, phase in self._phases_with("film")}
        return {
            "metrics": self.metrics,
            "learner": self.learner.options() if self.learner is not None else {},
            "datasets": self.datasets,
            "errors": {name: phase["errors"] for name, phase in self._phases_with("errors")},
            "films": films,
            "curve": self.curve if self.curve.get("steps") else {},
            "seconds": self.seconds,
            "peak_memory": self.peak_memory or None,
            "notes": self.notes,
            "stand_ins": self.stand_ins,
        }

    def _phases_with(self, what: str) -> list[tuple[str, Any]]:
        return [(name, phase) for name, phase in self.phases.items() if what in phase]


def train(spec: RunSpec, context: RunContext) -> Result:
    """Train the learner of a spec, or load it if it has been trained before."""
    return execute(training_run(spec), context)


def trained_learner(spec: RunSpec, context: RunContext) -> Learner:
    learner = train(spec, context).learner
    assert learner is not None
    return learner


def execute_once(phased: PhasedRun, context: RunContext) -> Result:
    """Execute a run and remove its checkpoints, because its result is recorded immediately."""
    result = execute(phased, context)
    tidy(phased, context)
    return result


def train_and_test(spec: RunSpec, context: RunContext) -> Result:
    """Train the learner of a spec, then test it."""
    trained = train(spec, context)
    assert trained.learner is not None
    learner = trained.learner
    test = PhasedRun(
        name=spec.name,
        config=spec.values(),
        start=lambda: learner,
        phases=(final_phase(spec, film=2 if spec.splits.kind == "video" else 0),),
        curve_metric=spec.splits.metrics[0],
    )
    result = execute_once(test, context)
    valid = [phase["metrics"] for name, phase in trained.phases.items() if name.startswith("valid/")]
    result.metrics = {
        "test": result.phases["test"]["metrics"],
        "valid": min(valid, key=lambda metrics: metrics[spec.splits.metrics[0]]),
        "valid_by_epoch": valid,
        "train_by_epoch": [phase["metrics"] for name, phase in trained.phases.items() if name.startswith("train/")],
    }
    result.datasets = {**training_run(spec).datasets, **test.datasets}
    result.observation_shape = spec.splits.test.observation_shape
    result.curve = trained.curve
    result.seconds += trained.seconds
    result.peak_memory = max(result.peak_memory, trained.peak_memory)
    result.describe(spec)
    return result


@dataclass
class _Progress:
    """The progress of a run. Everything but the learner and its state is stored in the `extra` of a checkpoint."""

    learner: Learner
    curve: Prequential
    state: Any = None
    index: int = 0
    """The current phase."""
    batch: int = 0
    """Number of finished batches in it."""
    learnt: int = 0
    """Number of batches learnt from in all phases."""
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


def execute(phased: PhasedRun, context: RunContext) -> Result:
    """Carry out the phases of a run, or the remaining ones."""
    folder = context.runs / phased.folder
    if phased.keep and (folder / LAST).is_file() and not context.fresh:
        return _result(_load(folder / LAST, phased), phased)
    folder.mkdir(parents=True, exist_ok=True)
    progress = _begin_or_resume(phased, context, folder)
    done = sum(len(each) for each in phased.phases[: progress.index]) + progress.batch
    context.reporter.begin(phased.name, sum(map(len, phased.phases)), done)
    try:
        _run_phases(phased, progress, context, folder)
    finally:
        context.reporter.end()
    if phased.keep:
        if progress.best is not None:
            progress.learner = checkpoint.load(folder / BEST).learner
        context.group.save(folder / LAST, progress.learner, None, progress.tree(phased.key))
        (folder / PROGRESS).unlink(missing_ok=True)
        (folder / BEST).unlink(missing_ok=True)
    return _result(progress, phased)


def tidy(phased: PhasedRun, context: RunContext) -> None:
    """Remove the checkpoints of a run after its record is written."""
    folder = context.runs / phased.folder
    for name in (PROGRESS, BEST):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _begin_or_resume(phased: PhasedRun, context: RunContext, folder: Path) -> _Progress:
    resumed = context.resume and (folder / PROGRESS).is_file()
    progress = _load(folder / PROGRESS, phased) if resumed else _Progress(phased.start(), _new_curve(phased))
    progress.learner = context.group.share(progress.learner, phased.key)
    return progress


def _new_curve(phased: PhasedRun) -> Prequential:
    return Prequential(make_metric(phased.curve_metric), fading=0.999, points=500)


def _run_phases(phased: PhasedRun, progress: _Progress, context: RunContext, folder: Path) -> None:
    reset_peak_memory()
    clock = saved = time.monotonic()
    while progress.index < len(phased.phases):
        phase = phased.phases[progress.index]
        if progress.batch == 0:
            _begin_phase(phase, progress)
        for x, mask in phase.batches(progress.batch):
            _run_batch(phased, phase, progress, x, mask)
            progress.batch += 1
            loss = progress.curve.compute()["faded"] if phase.learn else progress.meters[0].compute()
            context.reporter.advance(x.shape[0] * x.shape[1], phased.curve_metric, loss)
            now = time.monotonic()
            due, stopping = context.group.agree(now - saved >= context.every, context.stop.requested)
            if due or stopping:
                progress.seconds, clock = progress.seconds + now - clock, now
                _save(phased, progress, context, folder)
                saved = time.monotonic()
                if stopping:
                    raise Interrupted(phased.name)
        _end_phase(phase, progress, context, folder)
        if phased.after_phase is not None:
            phased.after_phase(phase.name, progress.results[phase.name]["metrics"])
        progress.index, progress.batch, progress.state, progress.film = progress.index + 1, 0, None, None
        if phase.select and _out_of_patience(phased, progress):
            break
    progress.seconds += time.monotonic() - clock
    progress.peak = max(progress.peak, peak_memory())


def _out_of_patience(phased: PhasedRun, progress: _Progress) -> bool:
    if phased.patience is None:
        return False
    selecting = [phase for phase in phased.phases if phase.select and phase.name in progress.results]
    errors = [progress.results[phase.name]["metrics"][phase.metrics[0]] for phase in selecting]
    best = min(range(len(errors)), key=errors.__getitem__)
    return len(errors) - 1 - best >= phased.patience


def _begin_phase(phase: Phase, progress: _Progress) -> None:
    progress.meters = [SequenceErrors(metric) for metric in phase.metrics]
    if phase.learn:
        progress.changes.append([progress.curve.tree()["steps"], phase.data.name])


def _run_batch(phased: PhasedRun, phase: Phase, progress: _Progress, x: Tensor, mask: Tensor | None) -> None:
    meters: list[Meter] = list(progress.meters)
    film = Film(phase.film) if phase.film and progress.batch == 0 else None
    if film is not None:
        meters.append(film)
    if phase.learn:
        _set_step_size(phased, progress)
        meters.append(progress.curve)
        progress.learnt += 1
    last = not phase.data.continuous or progress.batch + 1 == len(phase)
    done = run(
        progress.learner,
        x,
        state=progress.state,
        learn=phase.learn,
        mask=mask,
        meters=meters,
        end=last,
        keep_predictions=False,
    )
    progress.state = None if last else done.state
    for meter in progress.meters:
        meter.close()
    if film is not None:
        progress.film = {name: pack(array) for name, array in film.arrays().items()}


def _set_step_size(phased: PhasedRun, progress: _Progress) -> None:
    """Decay the step size linearly to the share `decay`, if the learner has one."""
    learner = progress.learner
    if phased.decay != 1.0 and has_step_size(learner):
        total = sum(len(each) for each in phased.phases if each.learn)
        share = 1 - (1 - phased.decay) * progress.learnt / max(total, 1)
        learner.lr = learner.options()["lr"] * share


def _end_phase(phase: Phase, progress: _Progress, context: RunContext, folder: Path) -> None:
    metrics = {meter.name: meter.compute() for meter in progress.meters}
    result: dict[str, Any] = {"metrics": metrics}
    if phase.keep_errors:
        result["errors"] = {meter.name: pack(meter.by_sequence()) for meter in progress.meters}
    if progress.film is not None:
        result["film"] = progress.film
    progress.results[phase.name] = result
    value = metrics[phase.metrics[0]]
    if phase.select and (progress.best is None or value < progress.best):
        progress.best = value
        context.group.save(folder / BEST, progress.learner)


def _save(phased: PhasedRun, progress: _Progress, context: RunContext, folder: Path) -> None:
    progress.peak = max(progress.peak, peak_memory())
    context.group.save(folder / PROGRESS, progress.learner, progress.state, progress.tree(phased.key))


def _load(path: Path, phased: PhasedRun) -> _Progress:
    learner, state, tree = checkpoint.load(path)
    if tree.get("key") != phased.key:
        raise checkpoint.CheckpointError(f"{path}: belongs to another run; remove it, or leave out --resume")
    progress = _Progress(learner, _new_curve(phased), state, **{name: tree[name] for name in _Progress.PLAIN})
    progress.curve.load_tree(tree["curve"])
    if progress.index < len(phased.phases):
        for metric, meter in zip(phased.phases[progress.index].metrics, tree["meters"], strict=True):
            progress.meters.append(SequenceErrors(metric))
            progress.meters[-1].load_tree(meter)
    return progress


def _result(progress: _Progress, phased: PhasedRun) -> Result:
    points = progress.curve.curve()
    curve = {
        "metric": progress.curve.name,
        "steps": [point.step for point in points],
        "mean": [point.mean for point in points],
        "faded": [point.faded for point in points],
        "changes": progress.changes,
        "prequential": progress.curve.compute()["mean"],
    }
    return Result(
        learner=progress.learner,
        phases=progress.results,
        datasets=phased.datasets,
        curve=curve,
        seconds=progress.seconds,
        peak_memory=progress.peak,
    )
