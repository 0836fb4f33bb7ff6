import mpmath
import numpy as np
import pytest

from attractor.papers.measurements.mirror_steps import loss_at, potential_divergence, step_from
from attractor.papers.mirror_descent.data import random_case

CASE = random_case(3)


def exact_loss(case, W):
    """The logistic loss, entry by entry in 40 digits."""
    with mpmath.workdps(40):
        tokens, v, total = case.tokens, np.asarray(case.head.weight), mpmath.mpf(0)
        for x, z, y in zip(tokens.keys, tokens.queries[:, 0], tokens.labels[:, 0], strict=True):
            scores = [
                mpmath.fsum(mpmath.mpf(a) * w * b for a, row in zip(t, W, strict=True)
                            for w, b in zip(row, z.tolist(), strict=True))
                for t in x.tolist()
            ]  # fmt: skip
            weights = [mpmath.exp(s) for s in scores]
            values = [
                mpmath.mpf(float(y))
                * mpmath.fsum(mpmath.mpf(a) * b for a, b in zip(t, v.tolist(), strict=True))
                for t in x.tolist()
            ]
            margin = mpmath.fsum(w * s for w, s in zip(weights, values, strict=True))
            total += mpmath.log1p(mpmath.exp(-margin / mpmath.fsum(weights)))
        return total / len(tokens.keys)


def test_loss_and_gradient_are_those_of_finite_differences_in_high_precision(rng):
    W = rng.normal(size=(2, 4, 4))
    found = loss_at(CASE, W)
    for k in range(2):
        entries = [[mpmath.mpf(w) for w in row] for row in W[k].tolist()]
        assert float(exact_loss(CASE, entries) - found.value[k]) == pytest.approx(0, abs=1e-15)
        for i, j in [(0, 0), (2, 3)]:
            with mpmath.workdps(40):
                step = mpmath.mpf(10) ** -12
                entries[i][j] += step
                up = exact_loss(CASE, entries)
                entries[i][j] -= 2 * step
                slope = (up - exact_loss(CASE, entries)) / (2 * step)
                entries[i][j] += step
            assert found.gradient[k, i, j] == pytest.approx(float(slope), rel=1e-11)


def test_a_step_is_taken_in_the_dual_variables(rng):
    W, p, rate = rng.normal(size=(3, 4, 4)), 1.75, 0.3
    image = np.sign(W) * np.abs(W) ** (p - 1) - rate * loss_at(CASE, W).gradient
    expected = np.sign(image) * np.abs(image) ** (1 / (p - 1))
    np.testing.assert_allclose(step_from(CASE, W, p, rate), expected, rtol=1e-12)


@pytest.mark.parametrize("p", [1.1, 1.75, 2, 3])
def test_the_divergence_of_the_potential(p, rng):
    U, W = rng.normal(size=(2, 3, 4))
    psi = lambda A: (np.abs(A) ** p).sum() / p  # noqa: E731
    slope = np.sign(W) * np.abs(W) ** (p - 1)
    expected = psi(U) - psi(W) - (slope * (U - W)).sum()
    assert potential_divergence(U, W, p) == pytest.approx(expected, rel=1e-12)
    assert abs(potential_divergence(U, U, p)) < 1e-14
