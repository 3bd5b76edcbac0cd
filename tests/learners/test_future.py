"""LSTM-FP and LSTM-CFP against a plain PyTorch implementation, and their dreams."""

import pytest
import torch
from torch import nn

from ptncn.learners import make
from ptncn.metrics.cost import GradientMeter

T, B, N, H = 10, 3, 4, 5


def frames(steps=T, seed=0):
    return torch.rand(steps, B, N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def build(name, **options):
    sizes = {"input_size": N, "hidden_size": H, "context": 5, "horizon": 5, "dtype": "float64"}
    return make(name, **sizes, **options)


def twin_loss(learner, xs, conditional):
    """The loss of one window in plain PyTorch."""

    def lstm(cell):
        module = nn.LSTM(N, H, dtype=torch.float64)
        module.load_state_dict(cell.state_dict())
        return module

    past, future = xs[:5], xs[5:]
    _, state = lstm(learner.cell)(past)
    inputs = xs[4:-1] if conditional else torch.zeros_like(future)
    decoded, _ = lstm(learner.decoder)(inputs, state)
    bce = nn.BCEWithLogitsLoss(reduction="sum")
    loss = bce(learner.readout(decoded), future) / 5 / B
    if learner.registry_name == "lstm-cfp":
        backwards = past.flip(0)
        inputs = torch.cat([torch.zeros(1, B, N, dtype=torch.float64), backwards[:-1]])
        decoded_past, _ = lstm(learner.reconstructor)(inputs if conditional else torch.zeros_like(inputs), state)
        loss = loss + bce(learner.reconstruction(decoded_past), backwards) / 5 / B
    return loss.item()


@pytest.mark.parametrize("conditional", [True, False], ids=["conditional", "free"])
@pytest.mark.parametrize("name", ["lstm-fp", "lstm-cfp"])
def test_its_loss_is_that_of_a_plain_implementation(name, conditional):
    learner, xs = build(name, conditional=conditional), frames()
    state = learner.begin(B)
    for x in xs[:-1]:
        learner.step(x, state)
    learner.horizon = 6  # the last frame must not close the window
    learner.step(xs[-1], state)
    assert learner.loss(state).item() == pytest.approx(twin_loss(learner, xs, conditional), rel=1e-12)


def test_dreams_feed_each_frame_to_the_decoder_which_takes_over_from_the_encoder():
    learner = build("lstm-fp")
    state = learner.begin(B)
    for x in frames(5):
        learner.step(x, state, learn=False)
    dreamt = learner.dream(state, 3)
    hidden, frame = state.hidden, frames(5)[-1]
    for expected in dreamt:
        hidden = learner.decoder(frame, hidden)
        frame = torch.sigmoid(learner.readout(hidden[0]))
        torch.testing.assert_close(expected, frame.detach())
    assert torch.equal(dreamt[0], learner.predict(state))
    assert state.steps == 5


def test_a_window_of_frames_makes_one_update_and_is_forgotten():
    learner = build("lstm-cfp")
    before, state = learner.cell.weight_ih_l0.detach().clone(), learner.begin(B)
    for t, x in enumerate(frames()):
        learner.step(x, state)
        assert torch.equal(learner.cell.weight_ih_l0, before) == (t < T - 1)
    assert state.xs == []
    after = learner.cell.weight_ih_l0.detach().clone()
    learner.end(state)
    assert torch.equal(learner.cell.weight_ih_l0, after)


def test_ten_frames_ahead_are_learnt():
    """Waves that travel: copying the last frame is far off after five steps."""

    def waves(count, seed):
        phase = 6.28 * torch.rand(count, 1, 32, 1, generator=torch.Generator().manual_seed(seed))
        place, time = torch.arange(N).double(), torch.arange(20)[:, None, None]
        return 0.5 + 0.45 * torch.sin(0.5 * time + 1.5 * place + phase.double())

    learner = make("lstm-fp", input_size=N, hidden_size=24, lr=0.01, dtype="float64")
    for xs in waves(60, 0):
        state = learner.begin(32)
        for x in xs:
            learner.step(x, state)
        learner.end(state)
    (xs,) = waves(1, 1)
    state = learner.begin(32)
    for x in xs[:10]:
        learner.step(x, state, learn=False)
    error = (learner.dream(state, 10) - xs[10:]).square().sum(-1).mean()
    assert error < 0.25 * (xs[9] - xs[10:]).square().sum(-1).mean()


@pytest.mark.parametrize("name", ["lstm-fp", "lstm-cfp"])
def test_the_gradient_meter_rejects_decoders(name):
    with pytest.raises(TypeError, match="attention and decoders are not covered"):
        GradientMeter(build(name))
