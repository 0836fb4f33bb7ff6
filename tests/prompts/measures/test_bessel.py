import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.prompts.measures import elliptical
from attractor.support.precision import double_precision

ARGUMENTS = np.concatenate([np.logspace(-6, 4, 11), np.linspace(2, 200, 12)])


@pytest.mark.parametrize(
    "nu", [0.0, *(pytest.param(nu, marks=pytest.mark.slow) for nu in (-0.5, 5000.0))]
)
def test_ratio_logarithm_and_slope_at_every_argument(nu):
    @jax.jit
    def evaluate(q):
        ratio, slope = jax.jvp(
            functools.partial(elliptical.bessel_ratio, nu), (q,), (jnp.ones_like(q),)
        )
        return ratio, slope, elliptical.log_ascending(nu, q)

    with double_precision():
        found = np.array(evaluate(jnp.asarray(ARGUMENTS**2)))
    with mpmath.workdps(40):
        for x, (ratio, slope, log) in zip(ARGUMENTS, found.T, strict=True):
            q = mpmath.mpf(x**2)
            x = mpmath.sqrt(q)
            values = [mpmath.besseli(nu + k, x) for k in range(3)]
            exact = values[1] / values[0] / x
            assert ratio == pytest.approx(float(exact), rel=2e-15)
            # From the recurrence, as a difference that arbitrary precision can afford.
            exact_slope = exact * (values[2] / values[1] - values[1] / values[0]) / (2 * x)
            assert slope == pytest.approx(float(exact_slope), rel=1e-13)
            exact_log = mpmath.log(mpmath.gamma(nu + 1) * (2 / x) ** nu * values[0])
            assert log == pytest.approx(float(exact_log), rel=2e-14, abs=0)


def test_zero_is_no_special_case():
    def second(q):
        return jax.grad(jax.grad(functools.partial(elliptical.log_ascending, 1.0)))(q)

    with double_precision():
        evaluate = jax.jit(
            lambda q: (elliptical.log_ascending(1.0, q), elliptical.bessel_ratio(1.0, q), second(q))
        )
        log, ratio, slope = (float(value) for value in evaluate(0.0))
    assert log == 0 and ratio == pytest.approx(1 / 4, rel=1e-15)
    assert slope == pytest.approx(-1 / 192, rel=1e-13)
