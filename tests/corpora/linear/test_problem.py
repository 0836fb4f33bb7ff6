"""The margin problem, the finite part and the space of the supports against other solvers."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from runs import embedded_contexts

from attractor.corpora.linear import (
    EmbeddedContexts,
    compatibility,
    decoder_problem,
    finite_part,
    random_contexts,
    support_projection,
    support_space,
)
from attractor.margin import solve
from attractor.support.errors import InvalidInputError, Status

SMALL = embedded_contexts()


def pairs(contexts):
    """Every ordered pair of tokens of one support, and of one inside and one outside."""
    support = contexts.support
    m, V = support.shape
    every = [(j, z, v) for j in range(m) for z in range(V) for v in range(V) if z != v]
    inside = [(j, z, v) for j, z, v in every if support[j, z] and support[j, v]]
    return inside, [(j, z, v) for j, z, v in every if support[j, z] and not support[j, v]]


def rows(contexts, chosen):
    unit = np.eye(contexts.classes)
    return np.array(
        [np.outer(unit[z] - unit[v], contexts.embeddings[j]).ravel() for j, z, v in chosen]
    ).reshape(-1, contexts.classes * contexts.dimension)


def least_squares(contexts):
    inside, _ = pairs(contexts)
    p = contexts.probabilities
    odds = [np.log(p[j, z] / p[j, v]) for j, z, v in inside]
    found = np.linalg.lstsq(rows(contexts, inside), odds, rcond=None)[0]
    return found.reshape(contexts.classes, contexts.dimension)


def test_solution_is_that_of_a_conic_solver_with_every_pair():
    solution = solve(decoder_problem(SMALL))
    assert set(solution.status) == {Status.OPTIMAL}
    for contexts, found in zip(SMALL, solution.W, strict=True):
        inside, outside = pairs(contexts)
        W = cp.Variable(found.size)
        asked = [rows(contexts, inside) @ W == 0, rows(contexts, outside) @ W >= 1]
        cp.Problem(cp.Minimize(cp.sum_squares(W)), asked).solve(
            cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
        np.testing.assert_allclose(found.ravel(), W.value, atol=1e-7)


def test_solution_is_orthogonal_to_the_space_of_the_supports():
    W = solve(decoder_problem(SMALL)).W
    assert np.abs(support_projection(SMALL, W)).max() < 1e-12


@pytest.mark.parametrize("V", [2, 5])
def test_one_hot_orthonormal_contexts_have_a_closed_form(V):
    rng = np.random.default_rng(V)
    basis, labels = np.linalg.qr(rng.normal(size=(V, V)))[0], rng.integers(0, V, V)
    contexts = EmbeddedContexts.one_hot(basis, labels, V)
    solution = solve(decoder_problem(contexts))
    np.testing.assert_allclose(solution.W, (np.eye(V)[labels] - 1 / V).T @ basis, atol=1e-12)
    assert solution.norm == pytest.approx(np.sqrt(V - 1), rel=1e-12)
    assert solution.support.all()
    assert support_space(contexts).dimension == 0 and not finite_part(contexts).any()


def test_constraints_are_numbered_and_fewest():
    problem = decoder_problem(SMALL)
    sizes = SMALL.support.sum(-1)
    assert (problem.equality.sum(-1) == (sizes - 1).sum(-1)).all()
    assert ((~problem.equality).sum(-1) == (4 - sizes).sum(-1)).all()
    assert problem.matrix == "decoder" and (problem.bounds == ~problem.equality).all()
    assert problem.sequence is not None and problem.token is not None
    for i, j in np.ndindex(problem.bounds.shape):
        context, token = problem.sequence[i, j], problem.token[i, j]
        assert problem.equality[i, j] == SMALL.support[i, context, token]
        np.testing.assert_array_equal(problem.right[i, j], SMALL.embeddings[i, context])


def test_finite_part_is_least_squares():
    found = finite_part(SMALL)
    for contexts, W in zip(SMALL, found, strict=True):
        np.testing.assert_allclose(W, least_squares(contexts), atol=1e-12)
    np.testing.assert_allclose(support_projection(SMALL, found), found, atol=1e-13)
    assert compatibility(SMALL).compatible.all()


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4), st.integers(2, 5))
def test_space_is_that_of_every_pair(seed, m, d, V):
    """Dependent embeddings, repeated ones, and the odds of a decoder that exists."""
    rng = np.random.default_rng(seed)
    embeddings = rng.integers(-1, 2, (m, d)).astype(float) * 10.0 ** rng.integers(-3, 4, (m, 1))
    W, support = rng.normal(size=(V, d)) * 1e-3, rng.random((m, V)) < 0.5
    support[np.arange(m), rng.integers(0, V, m)] = True
    p = np.exp(embeddings @ W.T) * support
    contexts = EmbeddedContexts(embeddings, p / p.sum(-1, keepdims=True))
    space = support_space(contexts)
    inside = rows(contexts, pairs(contexts)[0])
    lengths = np.linalg.norm(inside, axis=1)
    inside = inside[lengths > 0] / lengths[lengths > 0, None]
    assert space.dimension == (np.linalg.matrix_rank(inside) if len(inside) else 0)
    flat = space.basis.reshape(-1, V * d)
    np.testing.assert_allclose(flat @ flat.T, np.eye(len(flat)), atol=1e-12)
    np.testing.assert_allclose(inside @ flat.T @ flat, inside, atol=1e-12)
    found = compatibility(contexts)
    assert found.compatible and found.context == -1 and found.reason == ""
    np.testing.assert_allclose(space.project(W), space.solution, atol=1e-9)


def test_projection_is_symmetric_and_keeps_what_it_made():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 3, 7, 4, 6))
    space = support_space(SMALL)
    kept = space.project(one)
    assert kept.shape == one.shape
    np.testing.assert_allclose(space.project(kept), kept, atol=1e-13)
    products = [(space.project(a) * b).sum((-1, -2)) for a, b in ((one, other), (other, one))]
    np.testing.assert_allclose(*products, atol=1e-12)
    np.testing.assert_allclose(space.project(one[:, 3])[1], kept[1, 3], atol=1e-14)
    np.testing.assert_allclose(support_projection(SMALL[1], one[1]), kept[1], atol=1e-12)
    with pytest.raises(InvalidInputError, match=r"^W: "):
        space.project(one[..., :3])


def test_incompatible_contexts_say_where():
    """The same embedding with other odds; a third context is on its own."""
    embeddings = np.array([[1.0, 0], [0, 1], [2, 0]])
    p = [[0.5, 0.5, 0], [0, 0.3, 0.7], [0.8, 0.2, 0]]
    found = compatibility(EmbeddedContexts(embeddings, p))
    assert not found.compatible and found.context in (0, 2)
    assert found.residuals[1] < 1e-14 and found.residual > 0.1
    assert f"context {found.context}" in found.reason and "not compatible" in repr(found)
    zero = compatibility(EmbeddedContexts([[0.0, 0]], [[0.3, 0.7]]))
    assert not zero.compatible and zero.residual > 0.1
    both = compatibility(EmbeddedContexts(np.stack([embeddings] * 2), [p, [[1, 0, 0]] * 3]))
    np.testing.assert_array_equal(both.compatible, [False, True])
    assert both.reason[1] == "" and "1 of 2" in repr(both)


def test_contexts_that_every_token_follows_have_no_direction():
    solution = solve(decoder_problem(EmbeddedContexts([[1.0, 2.0]], [[0.2, 0.3, 0.5]])))
    assert solution.status is Status.OPTIMAL and not solution.W.any()


def test_systems_beyond_the_limit_are_refused():
    contexts = random_contexts(contexts=150, dimension=150, classes=30, support=20)
    with pytest.raises(InvalidInputError, match="2,850 equations in 4,500 unknowns"):
        support_space(contexts[0])
