import pytest
import torch

from ptncn.updates import Activity, Factors, MaxNorm, Synapses, rescaling


def draw(batch: int, size: int, seed: int) -> Activity:
    return Activity(torch.randn(batch, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


@pytest.mark.parametrize("shape", [(1, 300, 200), (3, 7, 5), (20, 4096, 100), (50, 49, 1000), (4, 1, 30)])
def test_the_norm_of_the_factors_is_the_norm_of_the_dense_update(shape):
    batch, n_pre, n_post = shape
    factors = Factors([draw(batch, n_pre, 0)], draw(batch, n_post, 1))
    torch.testing.assert_close(factors.norms()[0], factors.dense().norm(), rtol=1e-12, atol=0)


def test_blocks_have_separate_norms_and_scales():
    blocks, post = [draw(3, 40, 0), draw(3, 50, 1)], draw(3, 60, 2)
    factors = Factors(blocks, post)
    dense = [block.value.T @ post.value for block in blocks]
    torch.testing.assert_close(factors.norms(), torch.stack([part.norm() for part in dense]), rtol=1e-12, atol=0)
    scaled = factors.scaled(torch.tensor([2.0, 3.0])).T @ post.value
    torch.testing.assert_close(scaled, torch.cat([2 * dense[0], 3 * dense[1]]))


def test_a_sum_of_updates_is_a_stack_of_factors():
    one, other = Factors([draw(3, 40, 0), draw(3, 20, 1)], draw(3, 50, 2)), draw(3, 50, 3)
    both = one.plus(other, torch.tensor([0.3, 0.5], dtype=torch.float64))
    extra = torch.cat([0.3 * one.pre[0].value.T @ other.value, 0.5 * one.pre[1].value.T @ other.value])
    torch.testing.assert_close(both.dense(), one.dense() + extra)


def test_unit_gives_every_update_the_same_norm_and_zero_stays_zero():
    factors = Factors([draw(4, 30, 0), draw(4, 20, 1)], draw(4, 20, 2))
    scaled = Factors([Activity(factors.scaled(rescaling(factors, "unit", 0.7)))], factors.post).dense()
    torch.testing.assert_close(scaled[:30].norm(), torch.tensor(0.7, dtype=torch.float64))
    torch.testing.assert_close(scaled[30:].norm(), torch.tensor(0.7, dtype=torch.float64))
    nothing = Factors([factors.pre[0]], Activity(torch.zeros(4, 20, dtype=torch.float64)))
    assert float((nothing.scaled(rescaling(nothing, "unit", 1.0)).T @ nothing.post.value).abs().max()) == 0.0


def test_clip_shortens_long_updates_and_leaves_short_ones():
    factors = Factors([draw(4, 30, 0)], draw(4, 20, 1))
    norm = float(factors.norms())
    assert float(rescaling(factors, "clip", norm / 2)) == pytest.approx(0.5, rel=1e-12)
    assert float(rescaling(factors, "clip", norm * 2)) == pytest.approx(1.0, rel=1e-12)
    assert rescaling(factors, "none", norm / 2) is None


def test_the_deferred_norm_check_equals_a_check_at_every_step(monkeypatch):
    """A thousand random steps with bounds on the growth; most of them need no check."""
    rng = torch.Generator().manual_seed(0)
    postponed = torch.randn(6, 5, generator=rng, dtype=torch.float64)
    always = postponed.clone()
    checks = []
    norm = torch.linalg.vector_norm
    monkeypatch.setattr(torch.linalg, "vector_norm", lambda *a, **k: checks.append(1) or norm(*a, **k))
    ball, clipped = MaxNorm(4.0), 0
    for t in range(1000):
        step = torch.randn(6, 5, generator=rng, dtype=torch.float64) * 0.1
        step -= 0.02 * postponed if t % 300 < 150 else 0  # comes and goes
        postponed += step
        always += step
        ball.project(Synapses(postponed), growth=float(norm(step, dim=1).max()))
        clipped += bool((norm(always, dim=1) > 4.0).any())
        always *= (4.0 / norm(always, dim=1, keepdim=True)).clamp_max(1.0)
        torch.testing.assert_close(postponed, always, rtol=0, atol=1e-12)
    assert clipped > 20
    assert len(checks) < 900


def test_a_dropped_bound_makes_the_next_step_check_the_norms():
    ball = MaxNorm(1.0)
    weight = torch.full((2, 2), 0.1)
    ball.project(Synapses(weight), growth=0.0)
    weight.fill_(100.0)
    ball.forget()
    ball.project(Synapses(weight), growth=0.0)
    torch.testing.assert_close(weight.norm(dim=1), torch.ones(2))
