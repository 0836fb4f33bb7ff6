import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from runs import LINEAR, embedded_contexts, linear_trajectory

import attractor.training.optimizers as optimizers
from attractor.corpora.linear import EmbeddedContexts, train_linear
from attractor.geometry import Spectral
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.support.precision import double_precision
from attractor.training.loop import BlockTrainer

SMALL = embedded_contexts()
NGD = optimizers.normalized_gradient_descent(0.1)


def plain_loss(W, embeddings, shares):
    return -(shares * jax.nn.log_softmax(embeddings @ W.T)).sum()


@functools.partial(jax.jit, static_argnums=0)
def plain_step(optimizer, W, state, entropy, *arrays):
    loss, slope = jax.value_and_grad(plain_loss)(W, *arrays)
    further = {"log_excess": jnp.log(loss - entropy)} if optimizer.needs else {}
    updates, state = optimizer.update(slope, state, W, **further)
    return W + updates, state


def arrays_of(contexts):
    return contexts.embeddings, contexts.frequencies[:, None] * contexts.probabilities


def plain_run(contexts, optimizer, W, steps):
    """The user's own loop on automatic differentiation."""
    with double_precision():
        state = jax.jit(optimizer.init)(W)
        for _ in range(steps):
            W, state = plain_step(optimizer, W, state, contexts.entropy, *arrays_of(contexts))
        return np.asarray(W)


def same(one, other):
    return all(one[name].to_numpy().tobytes() == other[name].to_numpy().tobytes() for name in one)


@pytest.mark.parametrize(
    "optimizer",
    [
        optimizers.gradient_descent(0.5),
        NGD,
        optimizers.adam(0.01, 0.9, 0.99),
        *(
            pytest.param(optimizer, marks=pytest.mark.slow)
            for optimizer in (
                optimizers.polyak_step(),
                optimizers.adam(0.01, 0.9, 0.99, 1e-8),
                optimizers.normalized_momentum(0.1),
                optimizers.mirror_descent(0.1, 3),
                optimizers.schatten_mirror_descent(0.1, 3),
                optimizers.sign_descent(0.1),
                optimizers.spectral_descent(0.1),
                optimizers.muon(0.1),
                optimizers.lion(0.1),
                optimizers.greedy_coordinate_descent(0.1),
            )
        ),
    ],
    ids=repr,
)
def test_steps_are_those_of_automatic_differentiation(optimizer):
    trajectory = train_linear(SMALL, optimizer, **LINEAR)
    for contexts, start, found in zip(
        SMALL, trajectory.W(0)[:, 0], trajectory.W()[:, 0], strict=True
    ):
        expected = plain_run(contexts, optimizer, start, 7)
        if optimizer.geometry == Spectral():  # columns of gradients add up to zero, or to rounding
            found, expected = found - found.mean(0), expected - expected.mean(0)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    data = trajectory.data.isel(step=-1, instance=1, seed=0)
    loss = float(plain_loss(trajectory.W()[1, 0], *arrays_of(SMALL[1])))
    assert float(data["loss"]) == pytest.approx(loss, rel=1e-6)
    assert float(data["excess_loss"]) == pytest.approx(loss - SMALL.entropy[1], abs=1e-6)
    assert (trajectory.data["status"] == TrialStatus.TRAINED).all()
    assert (trajectory.data["steps_taken"] == 7).all()


@pytest.mark.long
def test_normalized_steps_follow_the_closed_form_for_as_long_as_asked():
    """``W(t) = t eta W* / ||W*||``; softmax less one-hot has lost the direction by 10,000."""
    V, steps = 8, 10_000
    rng = np.random.default_rng(0)
    labels, eta = rng.permutation(V), 0.2 / np.sqrt(V)
    bases = np.stack([np.eye(V), np.linalg.qr(rng.normal(size=(V, V)))[0]])
    contexts = EmbeddedContexts.one_hot(bases, np.stack([labels, labels]), V)
    optimizer = optimizers.normalized_gradient_descent(eta)
    trajectory = train_linear(contexts, optimizer, steps=steps, record=[0, 1, 900, steps])
    direction = (np.eye(V)[labels] - 1 / V).T @ bases / np.sqrt(V - 1)
    for t in trajectory.steps:
        found = trajectory.W(t)[:, 0]
        np.testing.assert_allclose(found, t * eta * direction, atol=1e-12 * max(t * eta, 1))
        expected = np.log1p((V - 1) * np.exp(-t * eta / np.sqrt(V - 1)))
        record = trajectory.data.sel(step=t, seed=0)
        np.testing.assert_allclose(record["loss"], expected, rtol=1e-10)
        np.testing.assert_allclose(record["log_excess_loss"], np.log(expected), atol=1e-10)
        np.testing.assert_allclose(record["norm"], t * eta, rtol=1e-12)


def test_trials_are_the_same_alone_and_among_others():
    run = linear_trajectory()
    alone = train_linear(SMALL[1:2], NGD, seed=2, **LINEAR)
    chosen = run.data.sel(instance=[1], seed=[2])
    assert same(alone.data, chosen)
    bare = train_linear(SMALL[1], NGD, seed=2, **LINEAR)
    assert same(bare.data, chosen) and bare.contexts.instances is None
    starts = run.W(0).reshape(9, -1)
    assert len(np.unique(starts[:, 0])) == 9
    assert 0.3 < starts.std() < 0.5


def test_starts_are_zero_or_given():
    zero = train_linear(SMALL, NGD, steps=7, record=[0, 7])
    assert not zero.W(0).any()
    W = np.random.default_rng(0).normal(size=(3, 3, 4, 6))
    given = train_linear(SMALL, NGD, steps=7, seeds=3, initial=W, record=[0, 7])
    np.testing.assert_array_equal(given.W(0), W)
    each = train_linear(SMALL, NGD, steps=7, seeds=3, initial=W[:, 0], record=[0, 7])
    np.testing.assert_array_equal(each.W(0)[:, 1], W[:, 0])
    one = train_linear(SMALL, NGD, steps=7, initial=W[0, 0], record=[0, 7])
    np.testing.assert_array_equal(one.W(0)[2, 0], W[0, 0])
    assert same(one.data.isel(instance=[0]), given.data.isel(instance=[0], seed=[0]))


def test_training_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    def run(folder=None, contexts=SMALL):
        return train_linear(
            contexts, NGD, steps=100, initial_scale=0.4, checkpoint=folder, checkpoint_every=0
        )

    expected, real, places = run(), BlockTrainer.train, []

    def interrupted(*arguments):
        for place in real(*arguments):
            yield place
            places.append(place)
            if len(places) == 12:
                raise KeyboardInterrupt

    monkeypatch.setattr(BlockTrainer, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    monkeypatch.setattr(BlockTrainer, "train", real)
    assert same(run(tmp_path).data, expected.data)
    with pytest.raises(InvalidInputError, match=r"contexts\.embeddings"):
        run(tmp_path, EmbeddedContexts(SMALL.embeddings * 2, SMALL.probabilities))


def test_a_minimum_is_where_training_rests():
    """Every token follows every context evenly: zero is the minimum, and the gradient is zero."""
    contexts = EmbeddedContexts(np.ones((5, 6)), np.full((5, 4), 0.25))
    run = train_linear(contexts, NGD, steps=7, record=[0, 7])
    assert run.data["status"].item() == TrialStatus.STATIONARY and not run.W().any()
    assert run.data["log_excess_loss"].isel(step=-1).item() == -np.inf


def test_trajectory_says_what_it_holds():
    run = train_linear(SMALL, NGD, steps=7, weights="last", record=[0, 7])
    assert run.weights_kept == "last" and run.to_xarray() is run.data
    assert "3 trained" in repr(run) and "normalized gradient descent" in str(run)
    assert "<table" in run._repr_html_()
    with pytest.raises(InvalidInputError, match="were not kept"):
        run.W(0)
    with pytest.raises(InvalidInputError, match="nearest one recorded is 7"):
        run.W(6)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("contexts", {"contexts": 3}),
        ("optimizer", {"optimizer": "gd"}),
        ("steps", {"steps": 0}),
        ("seeds", {"seeds": 1.5}),
        ("seed", {"seed": -1}),
        ("initial", {"initial": np.zeros((4, 5))}),
        ("initial_scale", {"initial_scale": -1}),
        ("initial_scale", {"initial_scale": 1, "initial": np.zeros((4, 6))}),
        ("weights", {"weights": "none"}),
        ("record", {"record": [8]}),
    ],
)
def test_bad_arguments_are_named(argument, change):
    options = {"contexts": SMALL, "optimizer": NGD, "steps": 7, **change}
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        train_linear(options.pop("contexts"), options.pop("optimizer"), **options)
