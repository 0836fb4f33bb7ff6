import cvxpy
import numpy as np
import pytest

from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics import attention_limits


def by_cone_program(limits):
    """The minimizer over coordinates of the subspace, by an interior-point solver."""
    contexts, basis = limits.contexts, limits.subspace.basis
    theta = cvxpy.Variable(len(basis))
    terms = []
    for sample, weight in enumerate(contexts.weights):
        kept = limits.kept[sample]
        X = contexts.keys[sample][kept]
        scores = np.einsum("tc,rce,e->tr", X, basis, contexts.queries[sample]) @ theta
        label = int(contexts.is_label[sample][kept].argmax())
        copies = np.log(contexts.is_label[sample].sum())
        terms.append(weight * (cvxpy.log_sum_exp(scores) - scores[label] - copies))
    problem = cvxpy.Problem(cvxpy.Minimize(sum(terms)))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    return np.einsum("r,rce->ce", theta.value, basis), problem.value


def test_it_is_the_minimizer_that_a_cone_solver_finds(cyclic):
    _, limits = cyclic
    assert sum(np.linalg.norm(one.finite.W) > 0.1 for one in limits) == 2
    for one in limits:
        W, floor = by_cone_program(one)
        assert np.linalg.norm(one.finite.W - W) <= 1e-5  # the solver's own, by its tolerances
        assert one.finite.floor == pytest.approx(floor, abs=1e-10)
        assert one.finite.floor <= floor + 1e-14
        assert one.finite.gradient_norm <= 1e-15 and one.finite.curvature > 1e-3
        np.testing.assert_allclose(one.subspace.project(one.finite.W), one.finite.W, atol=1e-14)


def test_two_conflicting_samples_of_six_leave_a_third_of_log_two(embeddings):
    samples = [[0, 1, 2], [1, 0, 2], [3, 4, 5], [0, 3, 1], [2, 4, 0], [1, 5, 4]]
    corpus = Corpus.from_samples(samples, [0, 1, 3, 0, 2, 1])
    finite = attention_limits(corpus, embeddings).finite
    assert finite.floor == pytest.approx(np.log(2) / 3, rel=1e-14)
    assert np.linalg.norm(finite.W) <= 1e-14
    assert "loss floor 0.231049" in repr(finite)


def test_labels_that_count_differently_settle_at_their_frequencies(uneven, embeddings):
    """One context, two labels with counts 1 and 2: attention tends to 1/3 and 2/3."""
    limits = attention_limits(uneven, embeddings[:3])
    e, q = embeddings[0] - embeddings[1], embeddings[2]
    expected = -np.log(2) * np.outer(e, q) / ((e @ e) * (q @ q))
    np.testing.assert_allclose(limits.finite.W, expected, atol=1e-14)
    np.testing.assert_allclose(limits.finite.weights[:, :2], [[1 / 3, 2 / 3]] * 2, rtol=1e-13)
    entropy = -(np.log(1 / 3) + 2 * np.log(2 / 3)) / 3
    assert limits.finite.floor == pytest.approx(entropy, rel=1e-14)


def test_lopsided_counts_take_newton_far(embeddings):
    corpus = Corpus.from_samples([[0, 1, 2], [0, 1, 2]], [0, 1], counts=[1, 10**6])
    finite = attention_limits(corpus, embeddings[:3]).finite
    e, q = embeddings[0] - embeddings[1], embeddings[2]
    assert e @ finite.W @ q == pytest.approx(-np.log(10**6), rel=1e-9)
    assert finite.gradient_norm <= 1e-12


def test_a_token_that_stands_twice_counts_twice(embeddings):
    """Odds of the label over the other are those of scores times two copies against one."""
    corpus = Corpus.from_samples([[0, 0, 1, 2], [0, 0, 1, 2]], [0, 1])
    limits = attention_limits(corpus, embeddings[:3])
    e, q = embeddings[0] - embeddings[1], embeddings[2]
    assert e @ limits.finite.W @ q == pytest.approx(-np.log(2), rel=1e-12)
    assert limits.finite.floor == pytest.approx(np.log(2), rel=1e-14)


def test_without_cycles_there_is_none(acyclic):
    _, limits = acyclic
    for one in limits:
        assert not one.finite.W.any() and one.finite.floor == 0 and one.finite.iterations == 0
