import pytest
import torch

from ptncn.updates import Activity, Factors, MaxNorm, longest, rescaling


def pair(batch: int, n_pre: int, n_post: int) -> Factors:
    chance = torch.Generator().manual_seed(batch + n_pre)
    draw = lambda n: Activity(torch.randn(batch, n, generator=chance, dtype=torch.float64))  # noqa: E731
    return Factors(draw(n_pre), draw(n_post))


@pytest.mark.parametrize("shape", [(1, 300, 200), (3, 7, 5), (20, 4096, 100), (50, 49, 1000), (4, 1, 30)])
def test_the_norm_of_the_factors_is_the_norm_of_the_dense_update(shape):
    factors = pair(*shape)
    torch.testing.assert_close(factors.norm(), factors.dense().norm(), rtol=1e-12, atol=0)


def test_a_sum_of_updates_is_a_stack_of_factors():
    one, other = pair(3, 40, 50), pair(2, 40, 50)
    both = one.plus(other, 0.3)
    torch.testing.assert_close(both.dense(), one.dense() + 0.3 * other.dense())
    torch.testing.assert_close(both.norm(), both.dense().norm(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("reduction", ["sum", "mean", "sum_then_mean"])
def test_unit_gives_every_update_the_same_norm_and_zero_stays_zero(reduction):
    factors = pair(4, 30, 20)
    length = float((factors.dense() * rescaling(factors, "unit", 0.7, reduction, 4)).norm())
    assert length == pytest.approx(longest("unit", 0.7, reduction, 4), rel=1e-12)
    nothing = Factors(factors.pre, Activity(torch.zeros(4, 20, dtype=torch.float64)))
    assert float(rescaling(nothing, "unit", 1.0, reduction, 4)) == 0


def test_clip_shortens_long_updates_and_leaves_short_ones():
    factors = pair(4, 30, 20)
    norm = float(factors.norm())
    assert float(rescaling(factors, "clip", norm / 2, "sum", 4)) == pytest.approx(0.5, rel=1e-12)
    assert float(rescaling(factors, "clip", norm * 2, "sum", 4)) == pytest.approx(1.0, rel=1e-12)
    assert rescaling(factors, "none", norm / 2, "sum", 4) == 1.0
    assert longest("none", 1.0, "sum", 4) is None


def test_the_postponed_check_of_the_norms_equals_one_at_every_step(monkeypatch):
    """A thousand random steps, with bounds of the growth; and most of the time nobody has to look."""
    chance = torch.Generator().manual_seed(0)
    postponed = torch.randn(6, 5, generator=chance, dtype=torch.float64)
    always = postponed.clone()
    looks = []
    norm = torch.linalg.vector_norm
    monkeypatch.setattr(torch.linalg, "vector_norm", lambda *a, **k: looks.append(1) or norm(*a, **k))
    ball = MaxNorm(6.0)
    for t in range(1000):
        step = torch.randn(6, 5, generator=chance, dtype=torch.float64) * 0.1
        step -= 0.02 * postponed if t % 300 < 150 else 0  # comes and goes
        postponed += step
        always += step
        ball.project(postponed, growth=float(norm(step, dim=1).max()))
        always *= (6.0 / norm(always, dim=1, keepdim=True)).clamp_max(1.0)
        torch.testing.assert_close(postponed, always, rtol=0, atol=1e-12)
    assert 0 < len(looks) < 900
    assert norm(postponed, dim=1).max() <= 6.0 + 1e-12


def test_a_bound_on_weights_that_someone_else_changed_is_forgotten():
    ball = MaxNorm(1.0)
    weight = torch.full((2, 2), 0.1)
    ball.project(weight, growth=0.0)
    ball.version = weight._version
    weight.fill_(100.0)
    ball.forget_if_changed(weight._version)
    ball.project(weight, growth=0.0)
    torch.testing.assert_close(weight.norm(dim=1), torch.ones(2))
