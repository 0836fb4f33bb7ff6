"""Errors of finite prompts of laws whose exponential moments end, against mpmath.

`exact_errors.csv` holds what `exact_prompts.py` computes in 100 digits, integrated to 1e-13, with a
slope of the scores that is a share of where moments end.
"""

import csv
import pathlib

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.prompts.finite_length import measure_error, measure_output_error
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures import Gaussian, Laplace, Mixture, Pushforward
from attractor.support.errors import InvalidInputError

from .exact_prompts import (
    DIGITS,
    GaussianPart,
    LaplacePart,
    exact_errors,
    tilted,
    tilted_gaussian,
    tilted_laplace,
)

LAWS = {
    "Laplace": Laplace(1.0, 1),
    "two Laplace": Pushforward(Laplace(1.0, 2), [[1.0, 0.6]]),
    "rarely Laplace": Mixture([1, 99], [Laplace(1.0, 1), Gaussian([0.0], [[0.25]])]),
    "Gaussian": Gaussian([0.0], [[1.0]]),  # whose moments do not end
}
FAST = [
    ("Laplace", 0.3),
    ("Laplace", 0.7),
    ("Laplace", 0.73),
    ("Laplace", 0.99),
    ("two Laplace", 0.73),
    ("rarely Laplace", 0.73),
]


def stored():
    path = pathlib.Path(__file__).with_name("exact_errors.csv")
    found = {}
    with path.open() as file:
        for law, *numbers in list(csv.reader(file))[1:]:
            slope, *row = map(float, numbers)
            found.setdefault((law, slope), []).append(row)
    return {key: np.array(rows) for key, rows in found.items()}


EXACT = stored()
CASES = [
    pytest.param(*case, marks=() if case in FAST else pytest.mark.slow, id=f"{case[0]} {case[1]}")
    for case in EXACT
]


def on_line(slope):
    return AttentionHead([[slope]], [[1.0]])


@pytest.mark.parametrize(("law", "slope"), CASES)
def test_all_errors_have_the_digits_that_are_promised(law, slope):
    lengths, *expected = EXACT[law, slope].T
    ordinary = lengths <= 1e12
    found = measure_error(LAWS[law], on_line(slope), [1.0], lengths[ordinary])
    own = (found.output, found.score_gradient, found.sum_of_squared_weights)
    for one, exact in zip(own, expected, strict=True):
        np.testing.assert_allclose(one, exact[ordinary], 1e-11)
    if not ordinary.all():
        found = measure_error(LAWS[law], on_line(slope), [1.0], lengths[~ordinary])
        np.testing.assert_allclose(found.output, expected[0][~ordinary], 1e-9)


def laplace_nodes(scale):
    """Nodes and weights of Gauss-Legendre panels to both sides of the kink."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    x = (2 * np.arange(25)[:, None] + 1 + nodes).ravel()
    density = (weights * np.exp(-x.reshape(25, -1)) / 2).ravel()
    return scale * np.concatenate([-x[::-1], x]), np.concatenate([density[::-1], density])


@pytest.mark.parametrize("share", [0.2, 0.42, 0.6, 0.7, 0.72, 0.73, 0.8, 0.95, 0.999])
def test_two_laplace_tokens_by_quadrature(share):
    # Beyond one half weights have no second moment, and the error is finite all the same.
    scale, slope = 0.6, share / 0.6
    x, weights = laplace_nodes(scale)
    mean = 2 * scale**2 * slope / (1 - share**2)
    p = 1 / (1 + np.exp(slope * (x[None, :] - x[:, None])))
    squared = (p * x[:, None] + (1 - p) * x[None, :] - mean) ** 2
    found = measure_output_error(Laplace(scale, 1), on_line(slope), [1.0], 2)
    assert found == pytest.approx(float(weights @ squared @ weights), rel=1e-12)


class Claiming(Laplace):
    """A law that says moments exist further than they do."""

    def _exists(self, direction):
        return (jnp.abs(direction) < 1.4).all(-1)


@pytest.mark.parametrize("slope", [0.73, 0.95])
@pytest.mark.parametrize("length", [2, 1000])
def test_contours_beside_a_singularity_are_seen(slope, length):
    with pytest.raises(InvalidInputError):
        measure_output_error(Claiming(1.0, 1), on_line(slope), [1.0], length)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "slope"), [("Laplace", 0.73), ("rarely Laplace", 0.95)])
def test_stored_errors_are_those_of_closed_forms(law, slope):
    lengths, *expected = EXACT[law, slope].T
    with mpmath.workdps(100):
        parts = {"Laplace": [(mpmath.mpf(1), LaplacePart(1, slope), tilted_laplace(1))]}
        parts["rarely Laplace"] = [
            (mpmath.mpf(1) / 100, LaplacePart(1, slope), tilted_laplace(1)),
            (mpmath.mpf(99) / 100, GaussianPart(0, 0.5, slope), tilted_gaussian(0, 0.5)),
        ]
        mean, variance = tilted([(weight, at) for weight, _, at in parts[law]], slope)
        laws = [(weight, part) for weight, part, _ in parts[law]]
        chosen = lengths[lengths <= 1e3]
        found = exact_errors(laws, mean, variance, list(chosen))
    for length, *exact in zip(lengths, *expected, strict=True):
        if length in found:
            assert [float(one) for one in found[length]] == pytest.approx(exact, rel=1e-14)


@pytest.mark.slow
def test_closed_forms_of_one_token_are_their_integrals():
    slope, t = mpmath.mpf(0.73), mpmath.mpf(3)
    with mpmath.workdps(2 * DIGITS):
        table = LaplacePart(1, slope)(t)
    with mpmath.workdps(DIGITS):
        for k, j in ((0, 0), (1, 1), (2, 2), (4, 3)):
            expected = mpmath.quad(
                lambda x, k=k, j=j: (
                    x**j * mpmath.exp(k * slope * x - abs(x) - t * mpmath.exp(slope * x)) / 2
                ),
                [-200, -60, -20, -5, 0, 1, 3, 6, 10],
            )
            assert abs(table[k][j] / expected - 1) < mpmath.mpf(10) ** (10 - DIGITS)
