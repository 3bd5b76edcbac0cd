"""The gradient meter against rules whose gradient is known to be exact, cut short, or noisy."""

import json

import pytest
import torch

from ptncn.learners.bptt import BPTT, TBPTT
from ptncn.learners.rtrl import KFRTRL, RTRL, UORO
from ptncn.metrics.base import SE, Meter
from ptncn.metrics.cost import GradientMeter
from ptncn.training import evaluate

T, B, N, H = 12, 3, 2, 4
FIXED_WEIGHTS = {"optimizer": "sgd", "lr": 1e-15}
"""A step so small that the weights stay where they are."""


def build(kind, cell="lstm", **options):
    return kind(N, H, cell=cell, dtype="float64", **{**FIXED_WEIGHTS, **options})


def frames(seed=0):
    return torch.rand(T, B, N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def masks(seed=0):
    return torch.rand(T, B, generator=torch.Generator().manual_seed(seed)) < 0.7


def measured(learner, xs, rows=None):
    meter = GradientMeter(learner)
    state = meter.begin(xs.shape[1])
    for t, x in enumerate(xs):
        meter.step(x, state, mask=None if rows is None else rows[t])
    meter.end(state)
    return meter


def flat(learner):
    return torch.cat([weight.detach().flatten() for weight in learner.parameters()])


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "rhn"])
def test_rtrl_with_fixed_weights_is_exact_at_every_step(cell, masked):
    meter = measured(build(RTRL, cell), frames(), masks() if masked else None)
    assert len(meter.cosines) == T - 1
    assert meter.cosines == pytest.approx([1.0] * (T - 1), abs=1e-9)
    assert meter.norm_ratios == pytest.approx([1.0] * (T - 1), abs=1e-9)


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
def test_back_propagation_through_the_whole_sequence_is_exact_in_its_one_update(masked):
    meter = measured(build(BPTT, lr=0.1), frames(), masks() if masked else None)
    assert meter.compute() == pytest.approx({"cosine": 1.0, "norm_ratio": 1.0, "updates": 1}, abs=1e-9)


def test_a_window_over_everything_is_exact_and_a_short_one_is_not():
    whole = measured(build(TBPTT, window=T, stride=1), frames())
    assert whole.cosines == pytest.approx([1.0] * (T - 1), abs=1e-9)
    short = measured(build(TBPTT, window=2, stride=1), frames())
    assert short.cosines[0] == pytest.approx(1.0, abs=1e-9), "the second frame has a past of one"
    assert max(short.cosines[1:]) < 1 - 1e-6


def test_a_truncated_gradient_is_measured_against_the_same_losses_without_the_cut():
    learner, xs = build(TBPTT, "rnn", window=4, stride=4), frames()
    weights = list(learner.cell.parameters())

    def gradient(cuts):
        hidden, losses = learner.cell.begin(B), []
        for t, x in enumerate(xs[:8]):
            if t in cuts:
                hidden = tuple(part.detach() for part in hidden)
            losses.append(learner.output.nll(learner.readout(hidden[0]), x).sum() / B)
            hidden = learner.cell(x, hidden)
        return torch.cat([g.flatten() for g in torch.autograd.grad(sum(losses[4:]) / 4, weights)])

    cut, exact = gradient({4}), gradient(set())
    meter = measured(learner, xs)
    assert len(meter.cosines) == 3
    assert meter.cosines[1] == pytest.approx(float(cut @ exact / cut.norm() / exact.norm()), abs=1e-9)
    assert meter.norm_ratios[1] == pytest.approx(float(cut.norm() / exact.norm()), abs=1e-9)


@pytest.mark.parametrize("kind", [UORO, KFRTRL])
def test_an_estimate_is_compared_with_rtrls_gradient_at_the_same_weights(kind):
    noisy, exact, xs = build(kind), build(RTRL), frames()
    state, same = noisy.begin(B), exact.begin(B)
    cosines, ratios = [], []
    for x in xs:
        ours, theirs = (
            torch.cat([g.flatten() for name, g in gradient.items() if name.startswith("cell")])
            for gradient in (noisy.gradient(x, state), exact.gradient(x, same))
        )
        cosines.append(float(ours @ theirs / ours.norm() / theirs.norm()))
        ratios.append(float(ours.norm() / theirs.norm()))
        noisy.step(x, state)
        exact.step(x, same)
    meter = measured(build(kind), xs)
    assert meter.cosines == pytest.approx(cosines[1:], abs=1e-9)
    assert meter.norm_ratios == pytest.approx(ratios[1:], abs=1e-9)


def test_clipping_is_not_mistaken_for_a_short_gradient():
    assert measured(build(RTRL, clip=1e-6), frames()).norm_ratios == pytest.approx([1.0] * (T - 1), abs=1e-9)


def test_measuring_a_learner_does_not_change_what_it_learns():
    alone, watched, xs = build(UORO, lr=0.1), build(UORO, lr=0.1), frames()
    state = alone.begin(B)
    for x in xs:
        alone.step(x, state)
    before = flat(watched)
    measured(watched, xs)
    assert torch.equal(flat(alone), flat(watched))
    assert not torch.equal(before, flat(watched))
    assert "apply_gradient" not in vars(watched)


def test_it_follows_the_protocol_of_meters():
    meter = GradientMeter(build(KFRTRL))
    assert isinstance(meter, Meter)
    results = evaluate(meter, [frames(0), frames(1)], [SE(), meter], learn=True)
    assert results["se"] > 0
    assert results["gradient"]["updates"] == 2 * (T - 1)
    assert -1 <= results["gradient"]["cosine"] <= 1


def test_frozen_steps_are_not_measured():
    meter = GradientMeter(build(RTRL))
    evaluate(meter, [frames()], [meter], learn=False)
    assert meter.compute() == pytest.approx(
        {"cosine": float("nan"), "norm_ratio": float("nan"), "updates": 0}, nan_ok=True
    )


def test_what_it_measured_survives_json():
    meter = measured(build(UORO), frames())
    other = GradientMeter(build(UORO))
    other.load_tree(json.loads(json.dumps(meter.tree())))
    assert other.compute() == meter.compute()
    other.reset()
    assert other.compute()["updates"] == 0


def test_it_follows_one_batch_at_a_time():
    meter = GradientMeter(build(RTRL))
    first = meter.begin(B)
    meter.begin(B)
    with pytest.raises(ValueError, match="one batch at a time"):
        meter.step(frames()[0], first)


def test_a_gap_in_an_unrolled_update_is_refused():
    meter, xs = GradientMeter(build(BPTT)), frames()
    state = meter.begin(B)
    for x in xs[:3]:
        meter.step(x, state)
    with pytest.raises(ValueError, match="2 steps wait for the next update of 'lstm-bptt'"):
        meter.step(xs[3], state, learn=False)


def test_learners_without_an_exact_gradient_are_refused():
    from ptncn.learners.sab import SAB

    with pytest.raises(TypeError, match="'lstm-sab' cannot be measured"):
        GradientMeter(SAB(N, H))
    with pytest.raises(TypeError, match="the P-TNCN follows local rules"):
        GradientMeter(object())
    GradientMeter(SAB(N, H, attention=False))
