"""Gradient flow of heads that tell two classes apart, against equations of its own."""

import numpy as np
import pytest
import scipy.integrate

from attractor import InvalidInputError
from attractor.papers import Outcome, examine, get_claim
from attractor_further.gaussian_mixtures.discriminant import classes
from attractor_further.gaussian_mixtures.discriminant_head import (
    Matrices,
    head_flow,
    head_hessian,
    head_risk,
)
from attractor_further.gaussian_mixtures.mixture_data import two_classes


def found(name, case, seed=0):
    return examine(get_claim(f"gaussian-mixtures/{name}"), case, seed)


def test_matrices_as_one_array_and_by_name():
    flat = np.arange(16.0)
    head = Matrices.of(flat)
    assert head.U11.shape == (3, 3) and head.u12.tolist() == [9, 10, 11] and head.v22 == 15
    assert np.array_equal(head.flat, flat)
    assert head.balance == np.sum(flat[:9] ** 2) - np.sum(flat[12:15] ** 2)


def test_second_derivatives_in_the_matrices_of_a_head():
    of = classes(two_classes((1.0, 0.5), (-0.5, 1.0), 0.3, wide=True))
    flat, along = np.random.default_rng(0).standard_normal((2, 9))
    values = [head_risk(of, flat + step * along).value for step in (-1e-3, 0.0, 1e-3)]
    second = (values[0] - 2 * values[1] + values[2]) / 1e-6
    assert along @ head_hessian(of, flat) @ along == pytest.approx(second, rel=1e-4)


def test_with_the_gate_off_the_flow_is_that_of_a_product_of_two_numbers():
    # With U11 = [[0, a], [0, 0]] and v21 = (0, c) only w = (a c, 0) is left, and of x only the
    # first coordinate, with mean y and variance one.
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    points, weights = points + 1, weights / weights.sum()

    def moves(_, state):
        a, c = state
        slope = -weights @ (points / (1 + np.exp(a * c * points)))
        return [-slope * c, -slope * a]

    times = np.array([0.0, 1.0, 5.0, 20.0])
    wanted = scipy.integrate.solve_ivp(
        moves, (0, 20), [0.3, 0.8], "DOP853", times, rtol=1e-11, atol=1e-13
    )
    of = classes(two_classes((1.0, 0.0), (-1.0, 0.0), 0.5))
    start = Matrices(np.array([[0.0, 0.3], [0.0, 0.0]]), np.zeros(2), np.array([0.0, 0.8]), 0.0)
    path = head_flow(of, start.flat, times, tolerance=1e-10)
    assert path[:, [1, 7]] == pytest.approx(wanted.y.T, abs=1e-8)
    assert np.abs(np.delete(path, [1, 7], axis=1)).max() < 1e-12


def test_the_risk_falls_along_the_flow():
    of = classes(two_classes())
    start = np.random.default_rng(1).standard_normal(9)
    path = head_flow(of, start, np.linspace(0, 5, 11), tolerance=1e-6)
    values = [head_risk(of, flat).value for flat in path]
    assert np.all(np.diff(values) < 0)


# The rate of a fourth power is reached slowly, and how far a flow comes differs by 0.1 with the
# start, whose directions LAPACK chooses; a square would be 1.
@pytest.mark.parametrize(("gate", "relative", "off"), [(True, 1, 1e-3), (False, 2 / 3, 0.2)])
def test_rates_near_bayes_are_those_of_a_square_or_of_a_fourth_power(gate, relative, off):
    case = two_classes((1.0, 0.0, 0.5), (0.0, 1.0, 0.0))
    claim = get_claim("gaussian-mixtures/discriminant-local-convergence")
    measured = (claim if gate else claim.exchanged()).measured(case)
    assert measured.details["relative rates"] == pytest.approx([relative] * 2, abs=off)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        # On a line b = r = 0 leaves no values for the points.
        ("local", two_classes((1.0,), (1.0,), 0.5)),
        # Flows take longer than they can be followed for.
        ("local", two_classes((40.0, 0.0), (0.0, 40.0))),
        ("global", two_classes((30.0, 0.0), (-30.0, 0.0), 0.5)),
    ],
)
def test_nothing_is_said_where_flows_cannot_be_followed(name, case):
    assert found(f"discriminant-{name}-convergence", case).outcome is Outcome.VACUOUS


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("exchanged", [False, True])
def test_means_that_add_up_to_zero_are_refused(mean, exchanged):
    claim = get_claim("gaussian-mixtures/discriminant-local-convergence")
    case = two_classes((mean, 0.0), (-mean, 0.0), 0.5)
    with pytest.raises(InvalidInputError, match="tokens: the means of their classes add up"):
        (claim.exchanged() if exchanged else claim).measured(case)


def test_the_balance_is_kept_for_classes_far_apart():
    case = two_classes((30.0, 0.0), (-30.0, 0.0), 0.5)
    assert found("discriminant-balance-kept", case).outcome is Outcome.HOLDS


def test_equal_means_leave_nothing_to_converge_to():
    case = two_classes((0.0, 0.0), (0.0, 0.0), 0.5)
    outcome = found("discriminant-global-convergence", case)
    assert outcome.outcome is Outcome.ASSUMPTION_NOT_MET
    assert outcome.reason.startswith("opposite means")
