import cvxpy
import jax
import numpy as np
import pytest

from attractor.attention import AttentionMatrix, attention_rows, get_loss, mean_loss
from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics import attention_limits, ball_path, label_mass_tokens
from attractor.corpora.mechanics.limits import log_excess_loss
from attractor.geometry.vectors import cosines
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision


def by_cone_program(limits, radius):
    contexts = limits.contexts
    W = cvxpy.Variable((8, 8))
    terms = []
    for i, weight in enumerate(contexts.weights):
        scores = contexts.keys[i] @ W @ contexts.queries[i]
        label = int(contexts.is_label[i].argmax())
        terms.append(weight * (cvxpy.log_sum_exp(scores) - scores[label]))
    problem = cvxpy.Problem(cvxpy.Minimize(sum(terms)), [cvxpy.norm(W, "fro") <= radius])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return W.value, problem.value


def test_minima_are_those_of_a_cone_solver(cyclic, acyclic):
    for _, limits in (cyclic, acyclic):
        path = ball_path(limits[0], [0.3, 3.0, 20.0])
        for number, radius in enumerate(path.radii):
            W, value = by_cone_program(limits[0], radius)
            loss = limits[0].finite.floor + np.exp(path.log_excess[number])
            assert loss == pytest.approx(value, abs=1e-9)
            np.testing.assert_allclose(path.W[number], W, atol=1e-4 * radius)


def test_every_point_is_certified_and_the_loss_is_that_of_training(cyclic):
    data, limits = cyclic
    path = ball_path(limits[3])
    assert path.optimality.max() <= 1e-14 and "17 radii" in repr(path)
    np.testing.assert_allclose(np.linalg.norm(path.W, axis=(1, 2)), path.radii, rtol=1e-11)
    tokens, head = label_mass_tokens(data.corpora[3], data.embeddings[3])
    rows, loss = attention_rows(tokens), get_loss("negative_log")
    with double_precision():
        found = np.asarray(
            jax.jit(jax.vmap(lambda W: mean_loss(AttentionMatrix(), loss, W, head, rows)))(
                path.W[:9]
            )
        )
    excess = np.exp(path.log_excess[:9])
    np.testing.assert_allclose(found, limits[3].finite.floor + excess, rtol=1e-13)
    np.testing.assert_allclose(
        log_excess_loss(limits[3], path.W[:7]), path.log_excess[:7], atol=1e-8
    )


def test_it_tends_to_the_direction_and_to_the_finite_part(cyclic, acyclic):
    for _, limits in (cyclic, acyclic):
        for one in (limits[0], limits[3]):
            path = ball_path(one)
            away = 1 - cosines(path.W, one.direction.W)
            assert (np.diff(away[8:]) < 0).all() and away[-1] <= 1e-6
            assert (np.diff(path.log_excess) < 0).all() and path.log_excess[-1] < -900
            # The norm of the direction says how fast: the loss falls like exp(-R / ||W_svm||).
            rate = -(path.log_excess[-1] - path.log_excess[-2]) / np.diff(path.radii)[-1]
            assert rate * float(one.direction.norm) == pytest.approx(1, abs=2e-3)
            if one.subspace.dimension:
                assert path.log_distance[-1] < -900  # far below what W itself can show
                ratio = np.diff(path.log_distance)[-1] / np.diff(path.log_multiplier)[-1]
                assert ratio == pytest.approx(1, abs=1e-3)
            else:
                assert (path.log_distance == -np.inf).all()


def test_without_tokens_to_leave_it_ends_at_the_finite_part(uneven, embeddings):
    corpus = Corpus.from_samples([[0, 1], [0, 1]], [0, 1], counts=[1, 2])
    limits = attention_limits(corpus, embeddings[:2])
    size = np.linalg.norm(limits.finite.W)
    path = ball_path(limits, size * np.array([0.1, 0.9, 1.1, 100]))
    np.testing.assert_allclose(path.W[2:], [limits.finite.W] * 2, atol=1e-14)
    assert np.isfinite(path.log_multiplier).tolist() == [True, True, False, False]
    direction = limits.finite.W / size
    np.testing.assert_allclose(path.W[0], 0.1 * size * direction, atol=1e-12)
    balanced = Corpus.from_samples([[0, 1], [0, 1]], [0, 1])
    resting = ball_path(attention_limits(balanced, embeddings[:2]), [1.0, 2.0])
    assert np.abs(resting.W).max() <= 1e-15 and (resting.log_excess == -np.inf).all()


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_units_of_embeddings_do_not_matter(cyclic, unit):
    data, limits = cyclic
    E = data.embeddings[3]
    scaled = attention_limits(data.corpora[3], unit * E)
    np.testing.assert_allclose(scaled.finite.W * unit**2, limits[3].finite.W, atol=1e-13)
    path, expected = ball_path(scaled, [2 / unit**2, 80 / unit**2]), ball_path(limits[3], [2, 80])
    np.testing.assert_allclose(path.log_excess, expected.log_excess, rtol=1e-11)
    assert path.optimality.max() <= 1e-14


def test_tokens_that_are_nearly_the_same(cyclic):
    """Two of a cycle differ by a thousandth, so that the finite part has norm 1,000."""
    data, _ = cyclic
    E = data.embeddings[3].copy()
    E[5] = E[4] + 1e-3 * E[5]
    limits = attention_limits(data.corpora[3], E)
    assert np.linalg.norm(limits.finite.W) > 500
    path = ball_path(limits, [1.0, 100.0, 1e4])
    assert path.optimality.max() <= 1e-14 and (np.diff(path.log_excess) < 0).all()


def test_radii_have_to_increase(acyclic):
    for radii in ([2.0, 1.0], [0.0, 1.0], [], [[1.0]]):
        with pytest.raises(InvalidInputError, match="radii: they are"):
            ball_path(acyclic[1][0], radii)
