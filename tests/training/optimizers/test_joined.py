"""Optimizers to which the arrays of all attention heads are one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attractor as at
from attractor.attention import AttentionHeads, Parameters, Scaled
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def tree(*leaves):
    return Parameters(AttentionHeads(tuple(jnp.asarray(leaf) for leaf in leaves)), None)


def scaled(arrays, scales):
    leaves = [
        Scaled(jnp.asarray(a), jnp.asarray(float(s))) for a, s in zip(arrays, scales, strict=True)
    ]
    return Parameters(AttentionHeads(tuple(leaves)), None)


def step(optimizer, gradient, parameters):
    moved, _ = optimizer.step(gradient, optimizer.init(parameters), parameters)
    return [np.asarray(leaf) for leaf in moved.attention.each]


def test_a_joint_spectral_step_is_orthogonal_over_all_heads():
    draw = np.random.default_rng(0)
    G, W = draw.normal(size=(2, 3, 4)), draw.normal(size=(2, 3, 4))
    U, _, Vt = np.linalg.svd(np.hstack([G[0], np.e * G[1]]))
    expected = np.hstack(W) - 0.1 * U @ Vt[:3]
    found = step(at.joined(at.spectral_descent(0.1)), scaled(G, [-5000, -4999]), tree(*W))
    assert np.hstack(found) == pytest.approx(expected, abs=1e-14)
    apart = step(at.spectral_descent(0.1), scaled(G, [-5000, -4999]), tree(*W))
    for own, w, g in zip(apart, W, G, strict=True):
        U, _, Vt = np.linalg.svd(g, full_matrices=False)
        assert own == pytest.approx(w - 0.1 * U @ Vt, abs=1e-14)


def test_a_head_far_below_the_others_is_still_made_orthogonal_where_it_has_room():
    # exp(-12) of the other, in directions that are its own: a joint step has both.
    G = np.zeros((2, 4, 4))
    G[0, :2, :2] = [[1, 2], [0, 1]]
    G[1, 2:, 2:] = [[1, 0], [3, 1]]
    found = step(at.joined(at.spectral_descent(1.0)), scaled(G, [-900, -912]), tree(*0 * G))
    for own, g in zip(found, G, strict=True):
        U, _, Vt = np.linalg.svd(g)
        assert own == pytest.approx(-U[:, :2] @ Vt[:2], abs=1e-10)


def test_vectors_and_factors_are_joined_as_columns():
    draw = np.random.default_rng(1)
    g = draw.normal(size=(3, 5))
    found = step(at.joined(at.spectral_descent(1.0)), scaled(g, [0, 0, 0]), tree(*0 * g))
    U, _, Vt = np.linalg.svd(g.T, full_matrices=False)
    assert np.stack(found, axis=1) == pytest.approx(-U @ Vt, abs=1e-14)


@pytest.mark.parametrize(
    "make", [at.normalized_gradient_descent, at.sign_descent, at.lion, at.mirror_descent]
)
def test_what_knows_no_arrays_or_only_one_is_left_as_it_was(make):
    draw = np.random.default_rng(2)
    G, W = draw.normal(size=(2, 3, 4)), draw.normal(size=(2, 3, 4))
    optimizer = make(0.1)
    if optimizer.by_entry:
        leaves = [Scaled(jnp.asarray(g), jnp.full(g.shape, -3000.0)) for g in G]
        gradient = Parameters(AttentionHeads(tuple(leaves)), None)
    else:
        gradient = scaled(G, [-3000, -3001])
    found = step(at.joined(optimizer), gradient, tree(*W))
    if make is at.mirror_descent:
        optimizer = at.mirror_descent(0.1, per_factor=False)
    assert np.array(found) == pytest.approx(
        np.array(step(optimizer, gradient, tree(*W))), abs=1e-14
    )


def test_a_loop_of_ones_own_has_the_same_steps():
    draw = np.random.default_rng(3)
    W, optimizer = tree(*draw.normal(size=(2, 3, 4))), at.joined(at.muon(0.1))
    G = draw.normal(size=(2, 3, 4))
    updates, _ = optimizer.update(tree(*G), optimizer.init(W), W)
    own = jax.tree.map(jnp.add, W, updates).attention.each
    for one, other in zip(own, step(optimizer, scaled(G, [0, 0]), W), strict=True):
        assert np.asarray(one) == pytest.approx(other, abs=1e-14)


def test_it_keeps_its_name_settings_and_numbers():
    optimizer = at.get_optimizer("muon:joined=true,momentum=0.8", 0.1)
    assert optimizer.name == "joined Muon" and optimizer.settings["momentum"] == 0.8
    assert (
        optimizer.example is optimizer.with_numbers({"learning_rate": 0.3, "momentum": 0.2}).example
    )
    several = at.joined(at.spectral_descent([0.1, 0.2], weight_decay=0.01))
    assert several.axes == {"learning_rate": (0.1, 0.2)}
    with pytest.raises(InvalidInputError, match="already"):
        at.joined(optimizer)
