"""A learner on an endless stream: for each observation a prediction made beforehand, forecasts and surprise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ptncn import checkpoint
from ptncn.learner import Learner
from ptncn.streaming.calibration import Calibrator
from ptncn.streaming.columns import MISSING, Columns, Value, Vector
from ptncn.streaming.defaults import TARGET
from ptncn.streaming.drift import Detector, DriftListener
from ptncn.streaming.errors import RowError, StreamError
from ptncn.streaming.history import History
from ptncn.streaming.observation import Observation
from ptncn.streaming.predictor import TARGETS, Guess, Predictor
from ptncn.streaming.source import Row, Rows, Source
from ptncn.streaming.surprise import Surprise
from ptncn.streaming.tally import Tally


class Stream:
    """Iterates over what a learner makes of a source, in constant memory.

    Arguments:
        learner: any learner, or what makes one from the number of its inputs, such as `default_learner`.
        source: any iterable of arrays or dicts, or a reader from `open_source`.
        columns, categorical, timestamp, slots, missing, columns_change: see `Columns`.
        target: what the learner sees: the "level" of each column, its "change" since the last row, or "both", with
            two inputs a column; None takes "both" for a learner that is yet to be made, "change" for one that is.
        horizon: steps to forecast after each observation.
        alarm_rate: the share of ordinary observations that may give an alarm.
        layer_errors: tell the errors of each layer, too.
        learn: False freezes the weights; states are still corrected.
        on_error: what a bad row does: "stop", "skip" it, or "mask": what cannot be understood is not observed.
        drift: a detector that listens to the surprise, or a `DriftListener` with an action.
        report: is told, in one line, of what was skipped, masked or left out.

    What is missing in a row is filled in with the prediction, so that its error is zero and teaches nothing; and from
    a row that is missing as a whole nothing is learnt at all: the learner only goes on in its imagination.

    >>> from ptncn.learners import make
    >>> learner = make("copy", input_size=1, output="gaussian")
    >>> for out in Stream(learner, [[1.0], [2.0], [3.0], [None], [5.0]], target="change"):
    ...     print(out.observed, out.prediction)  # the last change again
    {'x0': 1.0} None
    {'x0': 2.0} None
    {'x0': 3.0} {'x0': 3.0}
    {'x0': None} {'x0': 4.0}
    {'x0': 5.0} {'x0': 5.0}
    """

    def __init__(
        self,
        learner: Learner | Callable[[int], Learner],
        source: Source | Iterable[Any],
        *,
        columns: Iterable[str] = (),
        categorical: Iterable[str] = (),
        timestamp: str | None = None,
        slots: int = 16,
        missing: Iterable[str] = MISSING,
        columns_change: str = "refuse",
        target: str | None = None,
        horizon: int = 0,
        alarm_rate: float = 0.01,
        layer_errors: bool = False,
        learn: bool = True,
        on_error: str = "stop",
        drift: DriftListener | Detector | None = None,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        if horizon < 0:
            raise ValueError(f"horizon={horizon}: a number of at least 0 would be right")
        target = target or ("change" if isinstance(learner, Learner) else TARGET)
        if target not in TARGETS:
            raise ValueError(f"target={target!r}: choose one of: {', '.join(TARGETS)}")
        if on_error not in ("stop", "skip", "mask"):
            raise ValueError(f"on_error={on_error!r}: choose one of: stop, skip, mask")
        self.source: Source = source if hasattr(source, "position") else Rows(source)  # type: ignore[assignment]
        self.columns = Columns(
            columns, categorical=categorical, timestamp=timestamp, slots=slots, missing=missing, change=columns_change
        )
        self.target, self.horizon, self.layer_errors, self.learn = target, horizon, layer_errors, learn
        self.on_error, self.report = on_error, report
        self.calibrator = Calibrator(alarm_rate)
        self.tally = Tally()
        self.drift = drift if drift is None or isinstance(drift, DriftListener) else DriftListener(drift)
        self.healthy = True
        """False once learning has diverged: what there is now is not worth saving."""
        self._learner_or_maker = learner
        self._predictor: Predictor | None = None

    def __iter__(self) -> Iterator[Observation]:
        return self

    def __next__(self) -> Observation:
        """The next observation. After an error the position is still that before the row that caused it."""
        while True:
            try:
                row = self._next_row()
                if self._predictor is None:
                    self._begin(row)
                values = self._encode(row)
            except RowError as error:
                self._bad(error)
                if self.on_error == "skip" or self._predictor is None:
                    continue
                row, values = Row(error.line, {}), np.full(self.columns.width, np.nan)
            return self._observe(row, values)

    @property
    def predictor(self) -> Predictor:
        """The learner with its state and its scaling; there is none before the first row was read."""
        if self._predictor is None:
            raise StreamError("nothing was observed yet")
        return self._predictor

    def forecast(self, horizon: int) -> list[dict[str, Value]]:
        """The next `horizon` observations as the learner imagines them."""
        return [self.columns.decode(row.tolist()) for row in self.predictor.forecast(horizon)]

    def save(self, path: str | os.PathLike[str], extra: Any = None) -> None:
        """Write everything needed to go on; `extra` is given back by `load`."""
        checkpoint.save(path, self.predictor.learner, self.predictor.state, {"stream": self._tree(), "extra": extra})

    def load(self, path: str | os.PathLike[str], *, live: bool = False) -> Any:
        """Go on from a file that `save` wrote, with the very next observation of the source. The learner is the one in
        the file. `live`: the source is a pipe that itself goes on from there. The `extra` that was saved."""
        saved = checkpoint.load(path)
        try:
            tree = saved.extra["stream"]
            self._load_tree(tree, saved.learner, saved.state)
            position, extra = tree["position"], saved.extra["extra"]
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise checkpoint.CheckpointError(
                f"{path}: not a checkpoint of a stream like this one: {error!r}"
            ) from error
        if live and hasattr(self.source, "continue_at"):
            self.source.continue_at(position)
        else:
            self.source.seek(position)
        return extra

    def _tree(self) -> dict[str, Any]:
        return {
            "position": self.source.position(),
            "target": self.target,
            "columns": self.columns.tree(),
            "predictor": self.predictor.tree(),
            "surprise": self.surprise.tree(),
            "calibrator": self.calibrator.tree(),
            "tally": self.tally.tree(),
            "history": self.history.tree(),
            "drift": None if self.drift is None else self.drift.tree(),
        }

    def _load_tree(self, tree: Mapping[str, Any], learner: Learner, state: Any) -> None:
        self.target = tree["target"]
        self.columns.load_tree(tree["columns"])
        self._make_parts(learner)
        self.predictor.load_tree(tree["predictor"], state)
        self.surprise.load_tree(tree["surprise"])
        self.calibrator.load_tree(tree["calibrator"])
        self.tally.load_tree(tree["tally"])
        self.history.load_tree(tree["history"])
        if self.drift is not None:
            self.drift.load_tree(tree["drift"], learner)

    def _next_row(self) -> Row:
        try:
            return next(self.source)
        except StopIteration:
            if not self.tally.observations:
                raise StreamError(f"{self.source.name}: there is not one observation in it") from None
            raise

    def _encode(self, row: Row) -> Vector:
        try:
            return self.columns.encode(row, self.source.name, self._bad_entry, self.source.nan_is_missing)
        except RowError:
            self.source.reject()
            raise

    def _begin(self, row: Row) -> None:
        """Choose columns by the first row, and make everything whose size depends on them."""
        left_out = self.columns.begin(row, self.source.name)
        if left_out:
            self.report(f"left out, because they hold text: {', '.join(left_out)}; --categorical would take them in")
        given, inputs = self._learner_or_maker, Predictor.input_size(self.target, self.columns.unscaled)
        learner = given if isinstance(given, Learner) else given(inputs)
        if learner.input_size != inputs:
            raise StreamError(
                f"the learner has {learner.input_size} inputs; the columns {', '.join(self.columns.names)} "
                f"with target={self.target!r} want {inputs}"
            )
        if self.drift is not None:
            self.drift.check(learner)
        self._make_parts(learner)

    def _make_parts(self, learner: Learner) -> None:
        self._predictor = Predictor(learner, self.target, self.columns.unscaled)
        self.surprise = Surprise(self.columns.width)
        self.history = History(self.columns.width)

    def _bad(self, error: RowError) -> None:
        """Follow `on_error`: raise, or tell."""
        if self.on_error == "stop":
            raise error
        self.tally.bad_rows += 1
        self.report(f"{error} ({'skipped' if self.on_error == 'skip' else 'masked'})")

    def _bad_entry(self, error: RowError) -> None:
        if self.on_error != "mask":
            raise error
        self._bad(error)

    def _observe(self, row: Row, values: Vector) -> Observation:
        guess = self.predictor.observe(values, learn=self.learn)
        surprise = self._surprise(guess, row)
        score, drift = None, False
        if surprise is not None and self.surprise.settled:
            score = self.calibrator.update(surprise)
            drift = self.drift is not None and self.drift.listen(surprise, self.predictor.learner)
        alarm = score is not None and self.calibrator.is_alarm(score)
        tally, columns = self.tally, self.columns
        tally.observations += 1
        tally.alarms += alarm
        tally.drifts += drift
        prediction = guess.prediction if guess.scored else None
        self.history.add(values, prediction)
        return Observation(
            index=tally.observations - 1,
            line=row.line,
            timestamp=None if columns.timestamp is None else _as_time(row.values.get(columns.timestamp)),
            observed=columns.decode(values.tolist()),
            prediction=None if prediction is None else columns.decode(prediction.tolist()),
            forecast=self.forecast(self.horizon) if self.horizon else [],
            surprise=surprise,
            score=score,
            alarm=alarm,
            drift=drift,
            errors=self._layer_errors(guess) if self.layer_errors else (),
        )

    def _layer_errors(self, guess: Guess) -> tuple[float | None, ...]:
        if guess.step is None:
            return (None,) * self.predictor.count_layers()
        return tuple(0.5 * float(e.square().sum()) for e in guess.step.errors)

    def _surprise(self, guess: Guess, row: Row) -> float | None:
        """How surprising the observation was, if anything was expected and observed."""
        if not guess.scored or guess.step is None:
            return None
        surprise = self.surprise.update(guess.error)
        if surprise == surprise:
            if self.surprise.settled:
                self.tally.score(_mean_square(guess.error), _mean_square(guess.copied))
            return surprise
        if not np.isfinite(guess.step.prediction.numpy()).all():
            self.healthy = False
            raise StreamError(
                f"{self.source.name}: line {row.line}: the prediction is not finite any more: learning has diverged; "
                f"a smaller --lr would help"
            )
        return None


def _mean_square(values: Vector) -> float:
    """Over what is not NaN."""
    total = float(values.dot(values))
    return total / len(values) if total == total else float(np.nanmean(values * values))


def _as_time(value: Any) -> str | float | None:
    """A timestamp as it came, as far as a line of text can hold it."""
    return value if value is None or isinstance(value, str | int | float) else str(value)
