import math

import numpy as np
import pytest

from attractor.prompts.finite_length import prompt_moments
from attractor.prompts.regression import (
    RegressionTask,
    infinite_flow,
    isotropic_finite_flow,
    isotropic_optimum,
    softmax_optimum,
)
from attractor.support.errors import InvalidInputError


def exact_risk(d, length, noise, a, b):
    """The risk by exact averages, at the nodes of another quadrature."""
    u, masses = np.polynomial.laguerre.laggauss(60)
    radii = np.sqrt(2 * u)
    masses = masses * u ** (d / 2 - 1)
    moments = prompt_moments(a * radii, length)
    squares = b**2 * moments.output_second_moment - 2 * b * radii * moments.mean_output
    squares += b**2 * (d - 1 + noise) * moments.sum_of_squared_weights
    return masses @ (squares + radii**2) / math.gamma(d / 2) / 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("d", "length", "b", "product", "risk"),
    [
        pytest.param(5, 64, 1.816, 0.842, 0.5191, marks=pytest.mark.slow),
        (5, 1024, 2.707, 0.985, 0.04511),
    ],
)
def test_where_the_flow_ends(d, length, b, product, risk):
    flow = isotropic_finite_flow(d, length, 0.2, [0.0, 3.0, 2e4])
    assert flow.b[-1] == pytest.approx(b, abs=6e-4)
    assert flow.a[-1] * flow.b[-1] == pytest.approx(product, abs=6e-4)
    assert flow.risk[-1] == pytest.approx(risk, rel=2e-4)
    assert flow.balance[0] == pytest.approx(0, abs=1e-15)
    assert flow.balance[-1] < -1  # nothing keeps it
    best = isotropic_optimum(d, length)
    assert flow.b[-1] == pytest.approx(best.b, rel=1e-5)
    assert flow.a[-1] == pytest.approx(best.a, rel=1e-5)
    assert flow.risk[-1] == pytest.approx(best.risk, rel=1e-9)
    assert best.risk == pytest.approx(exact_risk(d, length, 0, best.a, best.b), rel=1e-6)


@pytest.mark.slow
def test_two_inputs():
    flow = isotropic_finite_flow(2, 256, 0.2, [10.0, 1000.0])
    np.testing.assert_allclose(flow.b, [1.331, 1.870], atol=5e-4)
    np.testing.assert_allclose(flow.risk, [0.0434, 0.0376], atol=5e-5)
    assert flow.balance[-1] == pytest.approx(-2.95, abs=0.005)
    for a, b, risk in zip(flow.a, flow.b, flow.risk, strict=True):
        assert risk == pytest.approx(exact_risk(2, 256, 0, a, b), rel=1e-6)


def test_flow_against_differences_of_the_exact_risk():
    d, length, noise, h = 5, 1024, 0.3, 1e-3
    flow = isotropic_finite_flow(d, length, 0.3, [0.5 - h, 0.5, 0.5 + h], label_noise=noise)
    a, b = flow.a[1], flow.b[1]
    across = exact_risk(d, length, noise, a + h, b) - exact_risk(d, length, noise, a - h, b)
    along = exact_risk(d, length, noise, a, b + h) - exact_risk(d, length, noise, a, b - h)
    assert (flow.a[2] - flow.a[0]) == pytest.approx(-across / d, rel=1e-4)
    assert (flow.b[2] - flow.b[0]) == pytest.approx(-along, rel=1e-4)


@pytest.mark.slow
def test_long_prompts_follow_the_infinite_flow_at_first():
    times = [0.5, 1.0, 2.0]
    infinite = infinite_flow(RegressionTask(np.eye(5)), 0.2, times).blocks.value_label
    gaps = [
        np.abs(isotropic_finite_flow(5, length, 0.2, times).b - infinite).max()
        for length in (1024, 1e9)
    ]
    assert gaps[0] > 1e3 * gaps[1]
    # but longer prompts end farther from it: the balanced head is not the limit of the limits
    assert isotropic_optimum(5, 1e9).b == pytest.approx(2.853, abs=5e-3)


def test_independent_inputs_have_the_best_head_of_all():
    best, exact = softmax_optimum(RegressionTask(np.eye(5)), 1024), isotropic_optimum(5, 1024)
    np.testing.assert_allclose(best.blocks.key_query, exact.a * np.eye(5), atol=1e-5)
    assert best.blocks.value_label == pytest.approx(exact.b, rel=1e-5)
    assert best.risk == pytest.approx(exact.risk, rel=1e-9)


def test_bad_input():
    for arguments, name in [
        ((2.5, 1024, 0.2, [1.0]), "dimension"),
        ((5, 0, 0.2, [1.0]), "length"),
        ((5, 1024, 0.0, [1.0]), "scale"),
        ((5, 1024, 1e3, [1.0]), "scale"),
        ((5, 1024, 0.2, [1.0, 0.0]), "times"),
    ]:
        with pytest.raises(InvalidInputError, match=name):
            isotropic_finite_flow(*arguments)
