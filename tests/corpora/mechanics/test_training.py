"""Training by the one engine, at the size of the published experiments."""

import functools

import numpy as np
import optax
import pytest
from scipy.special import softmax

from attractor import Frobenius, declare, gradient_descent, normalized_gradient_descent, train
from attractor.corpora.mechanics import (
    attention_limits,
    conflicting_corpora,
    label_mass_tokens,
    local_limits,
    measure_limits,
    squared_miss,
    vocabulary_tokens,
)
from attractor.support.errors import InvalidInputError

SETS = 10


@functools.cache
def data_of(sets=SETS, seed=1):
    """Corpora, the first half with cycles and the second without, and their limits."""
    halves = [conflicting_corpora(sets, cyclic=c, seed=seed) for c in (True, False)]
    corpora = halves[0].corpora + halves[1].corpora
    embeddings = np.concatenate([half.embeddings for half in halves])
    return corpora, embeddings, attention_limits(corpora, embeddings)


@functools.cache
def trained(optimizer, steps, sets=SETS, seed=1):
    corpora, embeddings, limits = data_of(sets, seed)
    tokens, head = label_mass_tokens(corpora, embeddings)
    run = train(tokens, head, optimizer, steps=steps, loss="negative_log", seed=seed)
    return run, measure_limits(run, limits).isel(seed=0)


def decreasing(step):
    """Steps of .01, and from step 4000 on shorter and shorter ones."""
    return optax.exponential_decay(0.01, 1000, 0.01, 4000)(step)


@pytest.mark.long
def test_attention_tends_to_the_direction_and_to_the_finite_part():
    run, measured = trained(normalized_gradient_descent(0.01), 4000)
    last = measured.isel(step=-1)
    for half in (slice(None, SETS), slice(SETS, None)):
        assert ((last.correlation[half] > 0.97) & (last.correlation[half] < 0.999)).all()
        assert (last.correlation_outside[half] >= last.correlation[half] - 1e-15).all()
    assert (last.mass > 0.995).all() and (np.abs(last.loss_floor[SETS:]) == 0).all()
    # Steps of constant length bounce about the finite part at half their length.
    assert 0.004 < float(last.finite_distance[:SETS].mean()) < 0.006
    assert (last.finite_distance[SETS:] == 0).all()
    loss = run.data["loss"].isel(seed=0)
    excess = loss - measured.loss_floor
    np.testing.assert_allclose(np.exp(measured.log_excess), excess, rtol=1e-9)
    assert (measured.log_excess.diff("step") < 0.1).all()


@pytest.mark.long
def test_the_bounce_goes_away_as_steps_get_shorter():
    constant = trained(normalized_gradient_descent(0.01), 4000)[1]
    shorter = declare(
        optax.chain(optax.normalize_by_update_norm(), optax.scale_by_learning_rate(decreasing)),
        geometry=Frobenius(),
        gradient_scale="global",
    )
    _, measured = trained(shorter, 5000)
    before, after = (
        float(m.finite_distance.isel(step=-1)[:SETS].mean()) for m in (constant, measured)
    )
    assert after < before / 4
    assert (measured.correlation.isel(step=-1) > 0.97).all()


def test_the_general_head_converges_locally():
    corpora, embeddings, limits = data_of()
    tokens, head = vocabulary_tokens(corpora, embeddings)
    run = train(
        tokens, head, normalized_gradient_descent(0.1), steps=2000, loss=squared_miss, seed=1
    )
    W = run.W()[:, 0]
    local = local_limits(corpora, embeddings, softmax(tokens.scores(W)[..., 0, :], axis=-1))
    near = np.array([one.correlation(matrix) for one, matrix in zip(local, W, strict=True)])
    alone = np.array([one.subspace.dimension == 0 for one in local])
    assert near.min() > 0.97 and near[alone].min() > 0.995 and alone.sum() >= 15
    far = np.array([np.sum(w * one.direction.W) / np.linalg.norm(w) / one.direction.norm
                    for w, one in zip(W[:SETS], limits, strict=False)])  # fmt: skip
    assert far.min() < 0.5 < 0.9 < far.max()


def test_measures_want_limits_for_each_corpus():
    run, _ = trained(normalized_gradient_descent(0.01), 4000)
    with pytest.raises(InvalidInputError, match="limits: there are 2 for 20 instances"):
        measure_limits(run, data_of()[2][:2])


def test_matrices_kept_at_the_end_alone_are_measured_there():
    corpora, embeddings, limits = data_of()
    tokens, head = label_mass_tokens(corpora[0], embeddings[0])
    run = train(
        tokens, head, normalized_gradient_descent(0.01), steps=20, loss="negative_log",
        weights="last", seeds=2,
    )  # fmt: skip
    measured = measure_limits(run, limits[0])
    assert measured.sizes == {"instance": 1, "seed": 2, "step": 1}
    np.testing.assert_allclose(measured.norm[0, :, 0], run.data["norm"][0, :, -1])


@pytest.mark.slow
def test_gradient_descent_reaches_the_finite_part_like_one_over_time():
    _, measured = trained(gradient_descent(1.0), 40_000)
    early = measured.isel(step=int(np.abs(measured.step.to_numpy() - 4000).argmin()))
    late = measured.isel(step=-1)
    ratio = late.finite_distance[:SETS] / early.finite_distance[:SETS]
    assert (ratio < 0.2).all() and float(late.finite_distance[:SETS].max()) < 2e-3


@pytest.mark.slow
def test_hundreds_of_corpora():
    _, measured = trained(normalized_gradient_descent(0.01), 4000, 200, 7)
    last = measured.isel(step=-1)
    assert float(last.correlation.quantile(0.02)) > 0.95
    assert float(last.correlation.median()) == pytest.approx(0.988, abs=0.004)
    assert float(last.finite_distance[:200].median()) == pytest.approx(0.005, abs=5e-4)
