"""Newton-Schulz iterations: what they make of singular values, their presets and their text."""

import jax.numpy as jnp
import numpy as np
import pytest
from optax.contrib import _muon as of_optax
from scipy.optimize import linprog

from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers import newton_schulz_values
from attractor.training.optimizers.newton_schulz import COEFFICIENTS, PolarFactor, polar_factor

OWN = [(2.0, -1.5, 0.5), (1.5, -0.5, 0.0)]


def polar(*given):
    return polar_factor("newton-schulz", *given)


@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (3, 1)])
def test_a_matrix_keeps_its_vectors_and_its_values_are_those_of_the_function(shape):
    G = np.random.default_rng(0).normal(size=shape)
    U, values, V = np.linalg.svd(G, full_matrices=False)
    relative = values / np.linalg.norm(values)
    with double_precision():
        for coefficients in (*COEFFICIENTS, OWN):
            for iterations in (1, 7):
                found = polar(coefficients, iterations)(jnp.asarray(G * 1e-150))
                turned = newton_schulz_values(relative, coefficients, iterations)
                np.testing.assert_allclose(found, (U * turned) @ V, atol=1e-11)
        exact = polar_factor("exact", "muon", None)(jnp.asarray(G * 1e-150))
        np.testing.assert_allclose(exact, U @ V, atol=1e-13)
        assert (polar("cans", None)(jnp.zeros(shape)) == 0).all()


def test_where_each_preset_ends():
    x = np.geomspace(0.01, 1, 2001)
    ends = {
        name: (values.min(), values.max())
        for name in COEFFICIENTS
        for values in [newton_schulz_values(x, name, 25)]
    }
    for name in ("newton-schulz", "newton-schulz-5", "polar-express"):
        np.testing.assert_allclose(ends[name], 1, atol=1e-14)
    # The others have a fixed point of their own, or none: no number of iterations is the factor.
    np.testing.assert_allclose(ends["muon"], (0.6818, 1.1344), atol=1e-3)
    np.testing.assert_allclose(ends["dion"], 0.9891, atol=1e-3)
    np.testing.assert_allclose(ends["you"], 0.9968, atol=1e-3)
    np.testing.assert_allclose(ends["cans"], 1.0282, atol=1e-3)


def best_quintic(low, high):
    """The odd polynomial of degree five that is nearest to one on an interval, by a linear program.

    Returns its three coefficients.
    """
    x = np.linspace(low, high, 2001)
    powers, one = np.stack([x, x**3, x**5], 1), np.ones(len(x))
    above = np.concatenate([powers, -powers])
    error = np.tile(-one[:, None], (2, 1))
    found = linprog(
        [0, 0, 0, 1],
        np.hstack([above, error]),
        np.concatenate([one, -one]),
        bounds=[(None, None)] * 4,
    )
    return found.x[:3]


@pytest.mark.parametrize(
    ("coefficients", "iterations", "quotient"),
    [
        ("muon", 5, 2.952),
        ("polar-express", 5, 1.614),
        ("polar-express", 9, 1),
        ("newton-schulz", 5, 1),
    ],
)
def test_steps_of_no_norm_are_told_from_those_that_may_be(coefficients, iterations, quotient):
    """Steepest steps of a norm have <u(G), H> <u(H), G> <= <u(G), G> <u(H), H>; G, H diagonal."""
    angles = np.linspace(1e-3, np.pi / 2 - 1e-3, 2001)
    values = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    steps = newton_schulz_values(values, coefficients, iterations)
    own, crossed = (steps * values).sum(-1), steps @ values.T
    largest = (crossed * crossed.T / np.outer(own, own)).max()
    assert largest == pytest.approx(quotient, rel=1e-3 if quotient > 1 else 1e-14)


def test_polar_express_is_the_best_polynomial_after_those_before():
    """Section 4 of the paper, with its cushion, and the safety factor of its Algorithm 1."""
    low, high, odd = 1e-3, 1.0, np.array([1, 3, 5])
    for number, triple in enumerate(COEFFICIENTS["polar-express"][:6]):
        best = best_quintic(max(low, 0.02407327424182761 * high), high)
        ends = [(best * end**odd).sum() for end in (low, high)]
        best *= 2 / sum(ends)  # centered around one after the cushion
        low = 2 * ends[0] / sum(ends)
        high = 2 - low
        safety = 1.01 ** (odd * (2 if number == 0 else 1))
        np.testing.assert_allclose(triple * safety, best, rtol=3e-6)


def test_presets_of_optax_are_ours():
    assert COEFFICIENTS["muon"] == (of_optax._DEFAULT_NS_COEFFS,)
    assert COEFFICIENTS["dion"] == tuple(of_optax._DION_NS_COEFFS)


def test_numbers_of_iterations_and_text():
    assert len(polar("muon", None).triples) == 5 and len(polar("you", None).triples) == 6
    assert polar("polar_express", 10).triples[7:] == ((1.875, -1.25, 0.375),) * 3
    assert polar("dion", 2).triples == COEFFICIENTS["dion"][:2]
    own = polar(OWN, 3)
    assert own.triples == (*OWN, OWN[-1]) and own == polar(own.coefficients, 3)
    assert polar((3 / 2, -1 / 2, 0), 4).coefficients == "newton-schulz"
    assert polar(np.array(OWN), None) == polar(OWN, 2)
    assert PolarFactor().settings("iterations") == {"method": "exact"}
    assert own.settings("iterations")["coefficients"] == "2.0/-1.5/0.5:1.5/-0.5/0.0"


@pytest.mark.parametrize(
    "given",
    [
        {"coefficients": "fast"},
        {"coefficients": "1/2"},
        {"coefficients": []},
        {"coefficients": (1.0, 2.0)},
        {"coefficients": [(1.0, np.nan, 0.0)]},
        {"coefficients": 3},
        {"coefficients": [(1.0, 0.0, 0.0)] * 101},
        {"iterations": 0},
        {"iterations": 101},
        {"values": [0.5, 1.1]},
        {"values": [-0.1]},
    ],
    ids=str,
)
def test_arguments_are_checked(given):
    with pytest.raises(InvalidInputError, match=next(iter(given))):
        newton_schulz_values(**{"values": 0.5, **given})


@pytest.mark.parametrize("given", [{"coefficients": "cans"}, {"iterations": 5}], ids=str)
def test_the_exact_method_has_no_iterations(given):
    with pytest.raises(InvalidInputError, match=next(iter(given))):
        polar_factor("exact", **{"coefficients": "muon", "iterations": None, **given})
    with pytest.raises(InvalidInputError, match="method"):
        polar_factor("svd", "muon", None)
