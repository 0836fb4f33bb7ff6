import numpy as np
import pytest
from conic_oracle import conic_value, entrywise, frobenius
from joint_examples import SLACK, TIGHT, published_joint, random_joint
from margin_examples import random_tokens
from scipy.optimize import nnls

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, label_problem, label_support, solve
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError, Status
from attractor.tokens import Tokens

EVERY_NORM = [Frobenius(), Lp(1), Lp(1.5), Lp(3), Lp(np.inf), Nuclear(), Spectral(), Schatten(8)]


@pytest.mark.parametrize("third, support", [(TIGHT, [1, 1, 1]), (SLACK, [1, 1, 0])])
def test_published_values(third, support):
    solution = solve(label_problem(*published_joint(third)))
    np.testing.assert_allclose(solution.W, [[0], [1]], atol=1e-12)
    np.testing.assert_array_equal(label_support(solution)[:, 0], support)


@pytest.mark.parametrize(
    "geometry, norm",
    [(Frobenius(), frobenius), (Lp(1.5), entrywise(1.5)), (Lp(np.inf), entrywise("inf"))],
)
def test_norms_agree_with_a_conic_solver(geometry, norm):
    for seed in range(3):
        problem = label_problem(*random_joint(seed, n=4))
        assert solve(problem, geometry).norm == pytest.approx(conic_value(problem, norm), rel=1e-7)


def test_support_rows_alone_make_up_the_solution():
    # The head is a nonnegative combination of them, and the others have slack.
    for seed in range(20):
        problem = label_problem(*random_joint(seed, n=6, d=3))
        solution = solve(problem)
        if solution.status is Status.INFEASIBLE:
            continue
        support = label_support(solution).ravel()
        _, residual = nnls(problem.left[support].T, solution.W[:, 0])
        assert residual < 1e-9 * solution.norm
        assert (problem.margins(solution.W)[~support] > 1 + 1e-6).all()


@pytest.mark.parametrize("geometry", EVERY_NORM, ids=lambda g: g.name)
def test_a_row_at_the_margin_without_a_multiplier_counts(geometry):
    # The second row needs nothing beyond what the first asks for, and has no slack.
    keys = [[[0.0, 1.0], [3.0, 3.0]], [[1.0, 1.0], [3.0, 3.0]], [[0.0, 1.5], [3.0, 3.0]]]
    tokens = Tokens.prompt_vector(keys, [1, 1, 1])
    solution = solve(label_problem(tokens, Selection.from_index(tokens, [0, 0, 0])), geometry)
    if geometry.unique or geometry.unitarily_invariant:
        assert solution.multipliers[1] == pytest.approx(0, abs=1e-6)
        np.testing.assert_array_equal(label_support(solution)[:, 0], [1, 1, 0])
    assert label_support(solution)[0, 0]


@pytest.mark.parametrize("slack", [0.0, 1e-15, 1e-12, 1e-9, 1e-8, 1e-7, 5e-7, 1e-6, 1e-5])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_row_beyond_the_margin_by_more_than_rounding_is_told_from_one_at_it(slack, scale):
    tokens, selection = published_joint(TIGHT)
    keys = np.array(tokens.keys)
    keys[2, 1, 1] += slack
    solution = solve(label_problem(Tokens.prompt_vector(scale * keys, tokens.labels), selection))
    np.testing.assert_array_equal(label_support(solution)[:, 0], [1, 1, slack < 1e-13])


@pytest.mark.parametrize("seed", range(6))
def test_rows_made_to_stand_at_the_margin_do_and_the_others_do_not(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    slack = rng.choice([0.0, 0.0, 1e-8, 1e-7, 1e-6, 1e-4, 1.0], size=8)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    # along the first axis all rows are one beside their slack; two rows off it cancel
    across = np.concatenate([[1.0, -1.0], rng.normal(size=6)])[:, None] * axes[1]
    slack[:2] = 0.0
    keys = ((1 + slack)[:, None] * axes[0] + across)[:, None]
    keys = np.concatenate([keys, np.zeros_like(keys)], axis=1)
    tokens = Tokens.prompt_vector(keys, np.ones(8))
    solution = solve(label_problem(tokens, Selection.from_index(tokens, [0] * 8)))
    np.testing.assert_array_equal(label_support(solution)[:, 0], slack == 0)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_the_scale_of_values_does_not_matter(scale):
    tokens, selection = published_joint(SLACK)
    scaled = Tokens.prompt_vector(tokens.keys * scale, tokens.labels)
    solution = solve(label_problem(scaled, selection))
    np.testing.assert_allclose(solution.W * scale, [[0], [1]], atol=1e-12)
    np.testing.assert_array_equal(label_support(solution)[:, 0], [1, 1, 0])


def test_batches_with_several_queries():
    rng = np.random.default_rng(0)
    tokens = Tokens.causal(rng.normal(size=(3, 2, 4, 9)), rng.choice([-1.0, 1.0], size=(3, 2, 4)))
    index = np.minimum(rng.integers(0, 4, size=(3, 2, 4)), np.arange(4))
    selection = Selection.from_index(tokens, index)
    problem = label_problem(tokens, selection)
    solution = solve(problem)
    support = label_support(solution)
    assert support.shape == (3, 2, 4)
    for i in range(3):
        alone = solve(label_problem(tokens[i], selection[i]))
        np.testing.assert_allclose(alone.W, solution.W[i], rtol=1e-10)
        np.testing.assert_array_equal(label_support(alone), support[i])
    chosen = tokens.keys[1, 0, index[1, 0, 3]] * tokens.labels[1, 0, 3]
    np.testing.assert_array_equal(problem.left[1, 3], chosen)
    assert (problem.sequence[1, 3], problem.query[1, 3]) == (0, 3)


def test_labels_that_no_head_can_tell_apart_have_no_support():
    keys = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    tokens = Tokens.prompt_vector([keys, keys], [[1, -1], [1, 1]])
    solution = solve(label_problem(tokens, Selection.from_index(tokens, [[0, 0], [0, 0]])))
    assert [*solution.status] == [Status.INFEASIBLE, Status.OPTIMAL]
    assert label_support(solution)[..., 0].tolist() == [[False, False], [True, True]]


def test_bad_input_is_refused():
    tokens, selection = published_joint(TIGHT)
    for labels in (None, [1, 0, 1], [2.0, -1, 1]):
        other = Tokens.prompt_vector(tokens.keys, labels)
        with pytest.raises(InvalidInputError, match=r"tokens: .*label"):
            label_problem(other, selection)
    both = Selection(tokens.mask, np.ones((3, 1), dtype=bool))
    with pytest.raises(InvalidInputError, match=r"selection: row .* keeps the tokens"):
        label_problem(tokens, both)
    with pytest.raises(InvalidInputError, match="selection: its mask has shape"):
        label_problem(tokens, random_tokens(1, 3, 2, 2)[1])
    with pytest.raises(InvalidInputError, match="solution: its problem is not one of labels"):
        label_support(solve(MarginProblem.from_selection(tokens, selection)))
