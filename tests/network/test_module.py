"""The network as a PyTorch module and as a learner with an explicit state."""

import copy
import pickle

import pytest
import torch

import ptncn
from ptncn import PTNCN, Learner


def frames(steps: int, rows: int, size: int, dtype=torch.float32) -> torch.Tensor:
    return torch.rand(steps, rows, size, generator=torch.Generator().manual_seed(4)).to(dtype)


def weights(net: PTNCN) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in net.state_dict().items()}


def same(one, other) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_it_is_a_learner():
    assert isinstance(PTNCN(3, [2]), Learner)


def test_the_synapses_have_the_papers_names_and_orientation():
    n0, n1, n2, n3 = 7, 5, 4, 3
    shapes = {name: tuple(value.shape) for name, value in PTNCN(n0, [n1, n2, n3]).synapses().items()}
    assert shapes == {
        "W1": (n0, n1), "M1": (n1, n0), "V1": (n1, n1), "U1": (n1, n2), "E1": (n1, n0), "b1": (n1,), "c1": (n0,),
        "W2": (n1, n2), "M2": (n2, n1), "V2": (n2, n2), "U2": (n2, n3), "E2": (n2, n1), "b2": (n2,), "c2": (n1,),
        "W3": (n2, n3), "M3": (n3, n2), "V3": (n3, n3), "E3": (n3, n2), "b3": (n3,), "c3": (n2,),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["W1", "M1", "V1", "U1", "E1", "b1", "c1", "M2", "b2"])
def test_writing_into_a_view_changes_the_network(name):
    net = PTNCN(7, [5, 4], weight_std=0.3, error_weight_std=0.3)
    xs = frames(4, 2, 7)
    before, _ = net(xs)
    net.synapses()[name].mul_(3).add_(0.1)
    after, _ = net(xs)
    assert not torch.equal(before, after)


def test_a_view_written_beyond_max_norm_is_projected_at_the_next_update():
    net = PTNCN(7, [5, 4], max_norm=2.0)
    state = net.begin(2)
    for x in frames(3, 2, 7):
        net.step(x, state)
    net.synapses()["V1"].fill_(10.0)
    net.step(frames(1, 2, 7)[0], state)
    columns = net.synapses()["V1"].norm(dim=0)
    torch.testing.assert_close(columns, torch.full((5,), 2.0))


def test_no_autograd_graph_is_built_even_if_the_input_requires_gradients():
    net = PTNCN(7, [5, 4])
    x = torch.rand(2, 7, requires_grad=True)
    out = net.step(x, net.begin(2))
    assert not out.prediction.requires_grad
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_forward_has_the_shapes_of_torch_and_agrees_with_steps():
    xs = frames(6, 3, 7)
    time_major, state = PTNCN(7, [5, 4])(xs)
    batch_major, _ = PTNCN(7, [5, 4], batch_first=True)(xs.transpose(0, 1))
    alone, _ = PTNCN(7, [5, 4])(xs[:, 0])
    assert time_major.shape == (6, 3, 7)
    assert torch.equal(batch_major.transpose(0, 1), time_major)
    torch.testing.assert_close(alone, time_major[:, 0])
    net = PTNCN(7, [5, 4])
    by_hand = net.begin(3)
    for t, x in enumerate(xs):
        assert torch.equal(net.step(x, by_hand, learn=False).prediction, time_major[t])
    assert torch.equal(by_hand.corrected, state.corrected)
    first, half = net(xs[:3])
    rest, _ = net(xs[3:], half)
    assert torch.equal(torch.cat([first, rest]), time_major)


def test_forward_takes_masks_and_learns_only_on_request():
    net = PTNCN(7, [5], batch_first=True)
    before = weights(net)
    mask = torch.ones(3, 6, dtype=torch.bool)
    mask[1, 4:] = False
    net(frames(3, 6, 7), mask=mask)
    assert same(before, weights(net))
    net(frames(3, 6, 7), mask=mask, learn=True)
    assert not same(before, weights(net))


def test_frozen_weights_stay_and_states_still_adapt():
    net = PTNCN(7, [5, 4])
    state, before = net.begin(2), weights(net)
    for x in frames(3, 2, 7):
        out = net.step(x, state, learn=False)
    assert same(before, weights(net))
    assert any(not torch.equal(z, y) for z, y in zip(out.states, out.corrected, strict=True))


def test_scoring_and_learning_start_with_the_second_frame():
    net = PTNCN(7, [5])
    state, before = net.begin(2), weights(net)
    xs = frames(2, 2, 7)
    assert net.step(xs[0], state).scored.tolist() == [False, False]
    assert same(before, weights(net))
    assert net.step(xs[1], state).scored.tolist() == [True, True]
    assert not same(before, weights(net))


def test_a_row_that_starts_late_is_scored_from_its_own_second_frame():
    net = PTNCN(7, [5])
    state = net.begin(2)
    xs = frames(3, 2, 7)
    scored = [
        net.step(x, state, mask=torch.tensor(m)).scored.tolist()
        for x, m in zip(xs, ([True, False], [True, True], [True, True]), strict=True)
    ]
    assert scored == [[False, False], [True, False], [True, True]]


def test_masked_rows_keep_their_state_and_their_values_have_no_effect():
    one, other = PTNCN(7, [5, 4]), PTNCN(7, [5, 4])
    state, twin = one.begin(2), other.begin(2)
    for t, x in enumerate(frames(6, 2, 7)):
        mask = torch.tensor([True, t < 2])
        noisy = x.clone()
        noisy[~mask] = float("nan")
        kept = twin.corrected[1].clone()
        one.step(x, state, mask=mask)
        out = other.step(noisy, twin, mask=mask)
        if t >= 2:
            assert torch.equal(twin.corrected[1], kept)
            assert all(float(e[1].abs().sum()) == 0 for e in out.errors)
    assert same(weights(one), weights(other))
    assert torch.equal(state.corrected, twin.corrected)


@pytest.mark.parametrize("optimizer", ["sgd", "nesterov", "adam"])
def test_a_step_with_all_rows_masked_changes_nothing(optimizer):
    net = PTNCN(7, [5], optimizer=optimizer)
    state = net.begin(2)
    for x in frames(3, 2, 7):
        net.step(x, state)
    before, kept = weights(net), state.corrected.clone()
    net.step(frames(1, 2, 7)[0], state, mask=torch.zeros(2, dtype=torch.bool))
    assert same(before, weights(net))
    assert torch.equal(state.corrected, kept)


def test_predict_equals_the_prediction_of_the_next_step_and_changes_nothing():
    net = PTNCN(7, [5, 4], activation="bernoulli", hidden_prediction="sigmoid", weight_std=0.5)
    state = net.begin(2)
    xs = frames(5, 2, 7)
    for x in xs[:4]:
        net.step(x, state)
    kept, rng_state = state.corrected.clone(), net.generator.get_state()
    expected = net.predict(state)
    assert torch.equal(state.corrected, kept)
    assert torch.equal(net.generator.get_state(), rng_state)
    assert torch.equal(net.step(xs[4], state).prediction, expected)


def test_a_dream_feeds_each_prediction_back_as_an_observation():
    net = PTNCN(7, [5, 4], weight_std=0.5)
    state = net.begin(2)
    for x in frames(4, 2, 7):
        net.step(x, state)
    kept, before = state.clone(), weights(net)
    dreamt = net.dream(state, 3)
    assert torch.equal(state.corrected, kept.corrected)
    assert same(before, weights(net))
    for frame in dreamt:
        assert torch.equal(frame, net.predict(kept))
        net.step(frame, kept, learn=False)
    assert net.dream(state, 0).shape == (0, 2, 7)


@pytest.mark.parametrize("output", ["bernoulli", "categorical"])
def test_a_sampled_dream_follows_the_prediction(output):
    net = PTNCN(3, [4], output=output, weight_std=0.0)
    net.synapses()["c1"].copy_(torch.tensor([2.0, 0.0, -1.0]))
    state = net.begin(4000)
    drawn = net.dream(state, 1, sample=True)[0]
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    if output == "categorical":
        assert torch.equal(drawn.sum(-1), torch.ones(4000))
    torch.testing.assert_close(drawn.mean(0), net.predict(state)[0], rtol=0, atol=0.03)


def test_a_clone_branches():
    net = PTNCN(7, [5, 4])
    state = net.begin(2)
    xs = frames(3, 2, 7)
    net.step(xs[0], state, learn=False)
    branch = state.clone()
    net.step(xs[1], state, learn=False)
    net.step(xs[2], branch, learn=False)
    assert not torch.equal(state.corrected, branch.corrected)
    assert state.steps == branch.steps == 2


def test_precision_and_moments_follow_the_network():
    net = PTNCN(7, [5, 4], optimizer="adam").to(torch.float64)
    state = net.begin(2)
    for x in frames(3, 2, 7, torch.float64):
        out = net.step(x, state)
    assert out.prediction.dtype == torch.float64
    assert net.learning.optimizer.held("W1")[0].dtype == torch.float64
    wide = PTNCN(7, [5, 4], optimizer="adam", dtype="float64")
    torch.testing.assert_close(wide.synapses()["W1"].float(), PTNCN(7, [5, 4]).synapses()["W1"])


def test_copies_and_pickles_continue_identically_and_independently():
    net = PTNCN(7, [5, 4], optimizer="momentum", activation="bernoulli", hidden_prediction="sigmoid")
    state = net.begin(2)
    xs = frames(8, 2, 7)
    for x in xs[:4]:
        net.step(x, state)
    copies = [copy.deepcopy((net, state)), pickle.loads(pickle.dumps((net, state)))]
    for x in xs[4:]:
        net.step(x, state)
    for other, other_state in copies:
        assert not same(weights(net), weights(other))
        for x in xs[4:]:
            other.step(x, other_state)
        assert same(weights(net), weights(other))
        assert torch.equal(state.corrected, other_state.corrected)


def test_a_seed_determines_everything_and_the_global_generator_is_not_used():
    before = torch.get_rng_state()
    one, other, third = PTNCN(7, [5], seed=1), PTNCN(7, [5], seed=1), PTNCN(7, [5], seed=2)
    one.step(torch.rand(2, 7, generator=torch.Generator().manual_seed(0)), one.begin(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(other.synapses()["W1"], PTNCN(7, [5], seed=1).synapses()["W1"])
    assert not torch.equal(other.synapses()["W1"], third.synapses()["W1"])


def test_the_state_does_not_grow_with_the_sequence():
    net = PTNCN(7, [5, 4])
    state = net.begin(2)
    size = lambda: sum(value.numel() for value in vars(state).values() if isinstance(value, torch.Tensor))  # noqa: E731
    start = size()
    for x in frames(50, 2, 7):
        net.step(x, state)
    assert size() == start


def test_the_step_size_can_be_changed_and_is_saved(tmp_path):
    net, twin = PTNCN(7, [5]), PTNCN(7, [5])
    net.lr = 0.5
    xs = frames(3, 2, 7)
    for each in (net, twin):
        each(xs, learn=True)
    assert not same(weights(net), weights(twin))
    ptncn.save(tmp_path / "run.ckpt", net)
    assert ptncn.load(tmp_path / "run.ckpt").learner.lr == 0.5
    with pytest.raises(ValueError, match="lr: expected a finite number of at least 0, got -1"):
        net.lr = -1


@pytest.mark.parametrize(
    "options",
    [
        {"output": "categorical", "preset": "best", "memory": [4, 2]},
        {"optimizer": "rmsprop", "teaching": "small", "output_bias": "mean", "dtype": torch.float64},
    ],
    ids=["memory", "running statistics"],
)
def test_a_checkpoint_resumes_bit_for_bit(options, tmp_path):
    net = PTNCN(7, [6, 5], weight_std=0.3, **options)
    drawn = frames(9, 3, 7).argmax(-1)
    xs = torch.eye(7)[drawn] if net.output.name == "categorical" else frames(9, 3, 7, torch.float64)
    state = net.begin(3)
    for x in xs[:5]:
        net.step(x, state)
    ptncn.save(tmp_path / "net", net, state)
    twin, twin_state, _ = ptncn.load(tmp_path / "net")
    for x in xs[5:]:
        assert torch.equal(net.step(x, state).prediction, twin.step(x, twin_state).prediction)
    assert same(net.synapses(), twin.synapses())
