"""Offsets of normalized gradient descent: closed forms, the law itself, and long training."""

import dataclasses

import numpy as np
import prompt_examples as examples
import pytest

from attractor.analysis import measured_offsets, predicted_offsets
from attractor.attention import LinearHead, ReLUHead
from attractor.geometry import Lp
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection, optimal_tokens
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens
from attractor.training import normalized_gradient_descent, train

LOSSES = {
    "linear": np.ones_like,
    "logistic": lambda u: 1 / (1 + np.exp(u)),
    "exponential": lambda u: np.exp(-u),
}
# Six support tokens of three sequences in the plane, so that multipliers are many.
DEPENDENT = np.array(
    [[[1, 1], [0, 0], [0, 0]], [[1, -1], [0, 0], [0, 2]], [[1, 0.5], [0, 0], [0, -1]]]
)
DEPENDENT_SCORES = np.array([[1, 0.2, -0.5], [2, 0.3, 0.1], [1.3, -0.3, 0.7]])


def optimal_solution(tokens, head, *geometry):
    return solve(MarginProblem.from_selection(tokens, optimal_tokens(tokens, head)), *geometry)


@pytest.mark.parametrize(
    ("gap", "loss", "published"),
    (
        (2, "linear", 0.3466), (5, "linear", 0.8047), (10, "linear", 1.1513),
        (100, "linear", 2.3026), (2, "logistic", -0.0603), (5, "logistic", -1.0420),
        (10, "logistic", -3.1921), (100, "logistic", -47.0408), (2, "exponential", -0.1534),
        (5, "exponential", -1.1953), (10, "exponential", -3.3487), (100, "exponential", -47.1974),
    ),
)  # fmt: skip
def test_two_sequences_have_the_closed_form(gap, loss, published):
    tokens, head = examples.two_losses(gap)
    found = predicted_offsets(tokens, head, optimal_solution(tokens, head), loss=loss)
    slope = LOSSES[loss]
    exact = 0.5 * np.log(gap * slope(float(gap)) / slope(1.0))
    np.testing.assert_allclose(found.matrix[:, 0], [0, exact], atol=1e-12 * max(1, abs(exact)))
    np.testing.assert_allclose(exact, published, atol=1e-4)
    np.testing.assert_allclose(found.margins, [exact, -exact], rtol=1e-12)
    np.testing.assert_allclose(found.shares, [0.5, 0.5])


@pytest.fixture(scope="module")
def both():
    """Two data sets of one shape: independent support constraints, and dependent ones."""
    keys = np.stack([examples.THREE_SEQUENCES, np.pad(DEPENDENT, ((0, 0), (0, 4), (0, 0)))])
    scores = np.stack([examples.THREE_SCORES, np.pad(DEPENDENT_SCORES, ((0, 0), (0, 4)))])
    mask = np.arange(7) < np.array([7, 3])[:, None, None] * np.ones((1, 3, 1))
    tokens = Tokens(keys, np.ones((2, 3, 1)), np.ones((2, 3)), mask, scores[..., None])
    return tokens, LinearHead([1])


@pytest.mark.long
def test_long_training_settles_at_the_offset(both):
    tokens, head = both
    solution = optimal_solution(tokens, head)
    run = train(
        tokens, head, normalized_gradient_descent(0.1), steps=30_000, parameterization="p",
        initial=np.zeros(2), record=[100, 30_000],
    )  # fmt: skip
    predicted = predicted_offsets(tokens, head, solution)
    measured = measured_offsets(run, solution)
    assert measured.shape == (2, 1, 2, 18)
    np.testing.assert_array_equal(np.isnan(measured[:, 0, 1]), np.isnan(predicted.margins))
    error = np.abs(measured[:, 0] - predicted.margins[:, None])
    assert (np.nanmax(error[:, 1], axis=-1) < 1e-8).all()
    assert (np.nanmax(error[:, 0], axis=-1) > 1e-5).any()  # it takes long
    # In the plane nothing is orthogonal to the constraints: W is the ray and the offset alone.
    ray = solution.W[..., 0] / np.linalg.norm(solution.W, axis=(1, 2))[:, None]
    p = run.W()[:, 0, :, 0]
    rest = p - (p * ray).sum(-1, keepdims=True) * ray
    np.testing.assert_allclose(rest, predicted.matrix[..., 0], atol=1e-8)
    first, second = np.flatnonzero(solution.support[0])
    ratio = np.log(solution.multipliers[0, first] / solution.multipliers[0, second])
    difference = measured[0, 0, 1, second] - measured[0, 0, 1, first]
    np.testing.assert_allclose(difference, ratio, atol=1e-8)  # score gaps are all the same
    with pytest.raises(InvalidInputError, match="W: its geometry is not known"):
        measured_offsets(dataclasses.replace(run, geometry="not known"), solution)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_of_the_limit_points_along_the_solution(loss, seed):
    rng = np.random.default_rng(seed)
    tokens = Tokens(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 2)), rng.choice([-1, 1.0], 3))
    head = LinearHead(rng.normal(size=5))
    solution = optimal_solution(tokens, head)
    found = predicted_offsets(tokens, head, solution, loss=loss)
    chosen = found.shares > 0
    gamma = tokens.labels * (tokens.values @ head.weight)
    best = gamma.max(1)
    problem = solution.problem
    gap = best[problem.sequence] - gamma[problem.sequence, problem.token]
    weights = LOSSES[loss](best)[problem.sequence] * gap * np.exp(-problem.margins(found.matrix))
    weights = np.where(chosen, weights, 0)
    np.testing.assert_allclose(found.shares, weights / weights.sum(), atol=1e-11)
    gradient = problem.apply_adjoint(weights)
    gradient, ray = (M / np.linalg.norm(M) for M in (gradient, solution.W))
    np.testing.assert_allclose(gradient, ray, atol=1e-9)
    assert abs((found.matrix * ray).sum()) < 1e-9
    np.testing.assert_allclose(problem.margins(found.matrix)[chosen], found.margins[chosen])
    moved = 1e3 * solution.W + found.matrix
    np.testing.assert_allclose(
        measured_offsets(moved, solution)[chosen], found.margins[chosen], atol=1e-8
    )


def test_rows_without_a_choice_have_no_offset():
    tokens = Tokens(
        [[[1.0, 2], [0, 0]], [[3.0, 1], [0, 0]]], np.ones((2, 1)), [1, 1], [[1, 1], [1, 0]]
    )
    head = LinearHead([1, 1])
    found = predicted_offsets(tokens, head, optimal_solution(tokens, head))
    np.testing.assert_array_equal(found.margins, 0)
    np.testing.assert_array_equal(found.shares, 1)
    np.testing.assert_allclose(found.matrix, 0, atol=1e-15)


def test_what_the_law_does_not_cover_is_refused(both):
    tokens, head = both
    solution = optimal_solution(tokens, head)
    ties = Tokens(examples.ONE_SEQUENCE, np.ones((1, 1)), [1], values=[[[1], [0.9], [1]]])
    worse = solve(MarginProblem.from_selection(ties, Selection.from_index(ties, [1])))
    tied = solve(MarginProblem.from_selection(ties, Selection.from_index(ties, [0])))
    kept = Selection(np.array([[[True, False, True]]]), np.array([[False]]))
    equal = solve(MarginProblem.from_selection(ties, kept))
    plain = solve(MarginProblem(np.eye(2), np.ones((2, 1))))
    one = LinearHead([1])
    for data, reader, given, message in (
        (tokens, head, optimal_solution(tokens, head, Lp(3)), "solution: its geometry is l_3"),
        (ties, one, worse, "solution: in instance 0 the support token"),
        (ties, one, tied, "solution: in instance 0 the support token"),
        (ties, one, equal, "solution: some rows keep several tokens"),
        (ties, one, plain, "solution: its problem does not come from a selection"),
        (ties, one, solution, "tokens: the mask has shape"),
        (tokens, ReLUHead(np.eye(1)), solution, "head: "),
    ):
        with pytest.raises(InvalidInputError, match=message):
            predicted_offsets(data, reader, given)
    with pytest.raises(InvalidInputError, match="loss: "):
        predicted_offsets(tokens, head, solution, loss="squared")
    with pytest.raises(InvalidInputError, match="W: the shape is"):
        measured_offsets(np.ones((3, 2, 1)), solution)
