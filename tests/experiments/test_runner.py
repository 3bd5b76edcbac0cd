"""The one training loop: what it learns, and that it can be stopped anywhere."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from ptncn.data import ArraySequences
from ptncn.experiments import runner
from ptncn.experiments.runner import execute
from ptncn.experiments.setting import SMOKE_TEXT, SMOKE_VIDEO
from ptncn.experiments.tasks import Cosine
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Interrupted, Workshop
from ptncn.metrics import CE
from ptncn.records import unpack
from ptncn.training.loop import evaluate

TINY = replace(SMOKE_VIDEO, sequences=60, valid=20, units=8, gated_units=8)


def workshop(folder, **others):
    return Workshop(folder, **{"every": 1e9, **others})


def weights(learner):
    return {name: value.clone() for name, value in learner.state_dict().items()}


def same(one, other):
    assert one.results == other.results
    assert one.curve == other.curve
    ours, theirs = weights(one.learner), weights(other.learner)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_an_lstm_does_as_well_as_twenty_lines_of_plain_pytorch(tmp_path):
    """The same data in the same order from the same weights: the same losses, to rounding."""
    wanted = Training("lstm-bptt", "digits", 0, replace(TINY, epochs=1, decay=1.0))
    ours = execute(wanted.plan(), workshop(tmp_path))

    start = wanted.plan().start()
    lstm, readout = nn.LSTM(1024, 8), nn.Linear(8, 1024)
    lstm.load_state_dict(start.cell.state_dict())
    readout.load_state_dict(start.readout.state_dict())
    parameters = [*lstm.parameters(), *readout.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=1e-2)
    losses = []
    for x, _ in wanted.task.train.batches(20, shuffle_seed=0, epoch=0):
        logits = readout(lstm(x[:-1])[0])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, x[1:], reduction="none").sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())

    assert ours.metric("train/0", "ce") == pytest.approx(np.mean(losses), rel=1e-5)
    for name, value in lstm.state_dict().items():
        torch.testing.assert_close(ours.learner.cell.state_dict()[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model", ["ptncn", "lstm-bptt", "lstm-uoro", "esn-ridge"])
def test_a_run_that_broke_in_the_middle_ends_with_the_same_numbers(tmp_path, monkeypatch, model):
    wanted = Training(model, "digits", 0, TINY)
    whole = execute(wanted.plan(), workshop(tmp_path / "whole"))
    calls, real = [], runner._one_batch

    def breaks(*arguments):
        calls.append(1)
        if len(calls) in (2, 5, 7):
            raise RuntimeError("power cut")
        real(*arguments)

    monkeypatch.setattr(runner, "_one_batch", breaks)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="power cut"):
            execute(wanted.plan(), workshop(tmp_path / "broken", every=0, resume=True))
    same(execute(wanted.plan(), workshop(tmp_path / "broken", every=0, resume=True)), whole)


def test_text_and_the_choice_by_validation_resume_too(tmp_path, monkeypatch):
    wanted = Training("gru-bptt", "python-reference", 1, replace(SMOKE_TEXT, sequences=40))
    whole = execute(wanted.plan(), workshop(tmp_path / "whole"))
    stopping = workshop(tmp_path / "stopped", resume=True)
    seen, real = [], runner._one_batch

    def one_batch(*arguments):
        real(*arguments)
        seen.append(1)
        stopping.stop.requested = len(seen) == 4

    monkeypatch.setattr(runner, "_one_batch", one_batch)
    with pytest.raises(Interrupted):
        execute(wanted.plan(), stopping)
    stopping.stop.requested = False
    same(execute(wanted.plan(), stopping), whole)


def test_ctrl_c_is_heard_at_the_end_of_a_batch_and_leaves_a_checkpoint(tmp_path, monkeypatch):
    wanted = Training("ptncn", "digits", 0, TINY)
    shop, real = workshop(tmp_path), runner._one_batch

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        real(*arguments)

    monkeypatch.setattr(runner, "_one_batch", interrupted)
    with shop.stop.listen(), pytest.raises(Interrupted):
        execute(wanted.plan(), shop)
    assert (tmp_path / wanted.plan().folder / "progress.safetensors").is_file()


def test_a_network_is_trained_once_and_kept(tmp_path, monkeypatch):
    wanted = Training("ptncn", "digits", 0, TINY)
    first = wanted.make(workshop(tmp_path))
    monkeypatch.setattr(runner, "_one_batch", lambda *arguments: pytest.fail("it was trained again"))
    same(Training("ptncn", "digits", 0, TINY).make(workshop(tmp_path)), first)


def test_another_value_is_another_network(tmp_path):
    plans = [
        Training("ptncn", "digits", 0, TINY).plan(),
        Training("ptncn", "digits", 1, TINY).plan(),
        Training("ptncn", "letters", 0, TINY).plan(),
        Training("ptncn", "digits", 0, replace(TINY, units=9)).plan(),
        Training("ptncn", "digits", 0, TINY, options={"beta": 0.3}).plan(),
    ]
    assert len({plan.key for plan in plans}) == len(plans)


def test_the_best_network_is_the_one_that_is_kept(tmp_path):
    """White frames make it worse at digits, so that the network before them is the one."""
    digits = Training("ptncn", "digits", 0, replace(TINY, decay=1.0))
    white = ArraySequences("white", np.ones((20, 20, 1024), np.float32))
    passes = (*digits.epoch(0), replace(digits.epoch(1)[0], data=white), digits.epoch(1)[1])
    outcome = execute(replace(digits.plan(), passes=passes), workshop(tmp_path))
    errors = [outcome.metric(f"valid/{epoch}", "ce") for epoch in range(2)]
    assert errors[0] < errors[1]
    meter = CE()
    evaluate(outcome.learner, [digits.task.valid.batch(range(20)).x], [meter])
    assert meter.compute() == pytest.approx(errors[0])


@pytest.mark.parametrize("model", ["lstm-bptt", "ptncn"])
def test_the_step_size_falls_with_the_batches(tmp_path, model):
    wanted = Training(model, "digits", 0, replace(TINY, epochs=1, decay=0.1))
    outcome = execute(replace(wanted.plan(), keep=False), workshop(tmp_path))
    assert outcome.learner.lr == pytest.approx(wanted.learner_options["lr"] * (1 - 0.9 * 2 / 3))
    assert outcome.learner.options().get("schedule") is None  # the step size falls once, not twice


def test_a_stream_in_pieces_is_the_stream():
    whole = torch.cat([batch.x for batch in Cosine(2_500, chunk=2_500).batches()])
    pieces = torch.cat([batch.x for batch in Cosine(2_500, chunk=1_000).batches()])
    assert torch.equal(whole, pieces)
    assert torch.equal(whole[1_000:], torch.cat([batch.x for batch in Cosine(2_500, chunk=1_000).batches(start=1)]))


def test_errors_by_sequence_have_the_mean_of_the_whole(tmp_path):
    plan = Training("copy", "digits", 0, replace(TINY, epochs=1)).plan()
    passes = (replace(plan.passes[1], keep_errors=True, film=2, select=False),)
    outcome = execute(replace(plan, passes=passes, keep=False), workshop(tmp_path))
    result = outcome.results["valid/0"]
    x = passes[0].data.batch(range(20)).x.double()
    by_hand = (x[1:] - x[:-1].clamp(1e-3, 1 - 1e-3)).square().sum(-1).mean(0)  # it never bets all
    np.testing.assert_allclose(unpack(result["errors"]["se"]), by_hand, rtol=1e-5)
    assert outcome.metric("valid/0", "se") == pytest.approx(by_hand.mean().item())
    assert result["film"]["truth"]["shape"] == [20, 2, 1024]
