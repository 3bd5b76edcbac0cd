"""Run a learner over whole sequences, with masks and meters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ptncn.learner import Learner
from ptncn.metrics.base import Meter

Batch = Tensor | tuple[Tensor, Tensor | None]
"""A batch of sequences, with or without a mask."""


class Run(NamedTuple):
    """The predictions and the final state of a run."""

    predictions: Tensor | None
    """The prediction of each frame, in the layout of the sequences; None if not kept."""
    state: Any
    """The state after the last frame."""


def run(
    learner: Learner,
    sequence: Tensor,
    *,
    state: Any = None,
    learn: bool = False,
    mask: Tensor | None = None,
    batch_first: bool = False,
    meters: Sequence[Meter] = (),
    end: bool = True,
    keep_predictions: bool = True,
) -> Run:
    """Run `learner` over a batch of sequences (T, B, n), or (B, T, n) with `batch_first`.

    Arguments:
        learner: any learner.
        sequence: the observations.
        state: the state to continue from; None starts new sequences.
        learn: whether to update the weights; states change in any case.
        mask: (T, B), or (B, T), True where a row is observed.
        batch_first: whether the batch is the first axis.
        meters: metrics that observe each step.
        end: whether the sequences end here; with False, continue with the returned state.
        keep_predictions: whether to return the predictions.

    >>> from ptncn.learners.esn import ESN
    >>> from ptncn.metrics import SE
    >>> error = SE()
    >>> predictions, state = run(ESN(3, 5), torch.rand(7, 2, 3), learn=True, meters=[error])
    >>> predictions.shape, state.steps, error.compute() > 0
    (torch.Size([7, 2, 3]), 7, True)
    """
    frames, masks = _time_major(learner, sequence, mask, batch_first)
    batch_size = frames.shape[1]
    if state is None:
        state = learner.begin(batch_size)
    elif state.batch_size != batch_size:
        raise ValueError(f"state: expected one of {batch_size} sequences, got {state.batch_size}")
    predictions = []
    for time, x in enumerate(frames):
        out = learner.step(x, state, learn=learn, mask=None if masks is None else masks[time])
        for meter in meters:
            meter.update(out, x.to(out.prediction.device))
        if keep_predictions:
            predictions.append(out.prediction)
    if end:
        learner.end(state)
    return Run(torch.stack(predictions, int(batch_first)) if keep_predictions else None, state)


def evaluate(
    learner: Learner,
    batches: Iterable[Batch],
    meters: Sequence[Meter],
    *,
    learn: bool = False,
    batch_first: bool = False,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Any]:
    """Run `learner` over batches of new sequences, and return the value of each meter by name.

    A batch is a tensor of sequences, or a pair of sequences and mask. With `learn=True` this is one epoch of training,
    with each frame scored before it is learnt. `progress` is called with the number of sequences done so far.

    >>> from ptncn import make
    >>> from ptncn.data import bouncing
    >>> from ptncn.metrics import SE
    >>> videos = bouncing("digits", size=8, canvas=32)
    >>> evaluate(make("copy", input_size=videos.input_size), videos.batches(4), [SE()]).keys()
    dict_keys(['se'])
    """
    done = 0
    for batch in batches:
        sequence, mask = (batch, None) if isinstance(batch, Tensor) else batch
        outcome = run(
            learner,
            sequence,
            learn=learn,
            mask=mask,
            batch_first=batch_first,
            meters=meters,
            keep_predictions=False,
        )
        done += outcome.state.batch_size
        if progress is not None:
            progress(done)
    return {meter.name: meter.compute() for meter in meters}


def _time_major(
    learner: Learner, sequence: Tensor, mask: Tensor | None, batch_first: bool
) -> tuple[Tensor, Tensor | None]:
    """Check shapes, and put time first."""
    layout = "(B, T, n)" if batch_first else "(T, B, n)"
    if sequence.dim() != 3 or sequence.shape[-1] != learner.input_size or 0 in sequence.shape:
        raise ValueError(
            f"sequences: expected {layout} with n = {learner.input_size} and at least one step and one row, got shape "
            f"{tuple(sequence.shape)}"
        )
    if mask is not None and mask.shape != sequence.shape[:2]:
        raise ValueError(
            f"mask: expected one entry per frame, shape {tuple(sequence.shape[:2])}, got {tuple(mask.shape)}"
        )
    if not batch_first:
        return sequence, mask
    return sequence.transpose(0, 1), None if mask is None else mask.transpose(0, 1)
