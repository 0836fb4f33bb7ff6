"""Mirror descent in loops of the user's own, wrapped as optax's own optimizers are."""

import io
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.geometry import Lp
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training import train
from attractor.training.optimizers import declare, mirror_descent

rng = np.random.default_rng(0)
INPUTS, TARGETS = rng.normal(size=(12, 3)), rng.choice([-1.0, 1.0], 12)


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def model(dtype=float, seed=1):
    """Something with queries, keys, a head, and a bias that starts at zero."""
    draw = np.random.default_rng(seed).normal
    arrays = {
        "layer": {"query": draw(size=(3, 4)), "key": draw(size=(3, 4))},
        "head": draw(size=4),
        "bias": np.zeros(4),
    }
    return jax.tree.map(lambda leaf: jnp.asarray(0.5 * leaf, dtype), arrays)


def loss(W, inputs=INPUTS, targets=TARGETS):
    hidden = jnp.tanh(inputs @ W["layer"]["query"]) * (inputs @ W["layer"]["key"]) + W["bias"]
    return jnp.logaddexp(0, -targets * (hidden @ W["head"])).mean()


gradient = jax.jit(jax.grad(loss))


def step_of(optimizer):
    def step(W, memory, *data):
        G = jax.grad(loss)(W, *data)
        updates, memory = optimizer.update(G, memory, W)
        return optax.apply_updates(W, updates), memory

    return step


def follow(optimizer, W, steps, memory=None):
    """All iterates, and what is remembered after the last."""
    memory = optimizer.init(W) if memory is None else memory
    step, path = jax.jit(step_of(optimizer)), [W]
    for _ in range(steps):
        W, memory = step(W, memory)
        path.append(W)
    return path, memory


def assert_equal(found, wanted, rtol=0.0):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol), found, wanted)


def assert_same_bits(found, wanted):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == two.dtype and one.tobytes() == two.tobytes()


def by_path(path):
    return 1.1 if path.startswith("layer") else 2.0


SETTINGS = {"momentum": 0.5, "dual_weight_decay": 0.01}


def test_groups_of_optax_are_exponents_by_path():
    labels = {"layer": {"query": "sparse", "key": "sparse"}, "head": "plain", "bias": "plain"}
    groups = {name: mirror_descent(0.01, p) for name, p in (("sparse", 1.1), ("plain", 2))}
    one, _ = follow(optax.multi_transform(groups, labels), model(), 10)
    two, _ = follow(mirror_descent(0.01, by_path), model(), 10)
    assert_equal(one, two, rtol=1e-13)
    assert loss(one[-1]) < loss(one[0])


def test_behind_clipping_it_sees_clipped_gradients():
    clipped = optax.chain(optax.clip_by_global_norm(0.1), mirror_descent(0.1, 1.5, False))
    found, _ = follow(clipped, model(), 1)
    G = gradient(model())
    size = np.sqrt(sum((np.asarray(leaf) ** 2).sum() for leaf in jax.tree.leaves(G)))
    assert size > 0.1

    def move(leaf, slope):
        leaf, slope = np.asarray(leaf), np.asarray(slope)
        Y = np.sign(leaf) * np.sqrt(np.abs(leaf)) - 0.1 * 0.1 / size * slope
        return np.sign(Y) * Y**2

    assert_equal(found[-1], jax.tree.map(move, model(), G), rtol=1e-12)


def test_accumulated_micro_batches_are_one_large_batch():
    accumulated = optax.MultiSteps(mirror_descent(0.1, 1.5, **SETTINGS), 3)
    W, memory = model(), accumulated.init(model())
    step = jax.jit(step_of(accumulated))
    for _ in range(4):
        for part in range(3):
            W, memory = step(W, memory, INPUTS[4 * part :][:4], TARGETS[4 * part :][:4])
    wanted, _ = follow(mirror_descent(0.1, 1.5, **SETTINGS), model(), 4)
    assert_equal(W, wanted[-1], rtol=1e-6)  # as MultiSteps accumulates in single precision
    assert_equal(accumulated.init(W).inner_opt_state, mirror_descent(0.1, 1.5, **SETTINGS).init(W))


def test_steps_that_are_not_finite_are_left_out():
    # optax wants updates of the type of gradients; mirror descent gives those of its dual.
    widened = optax.stateless(
        lambda G, _: jax.tree.map(lambda g: g.astype(jnp.promote_types(g.dtype, jnp.float32)), G)
    )
    guarded = optax.chain(widened, optax.apply_if_finite(mirror_descent(0.1, 1.5), 3))
    W = model("bfloat16")
    G = gradient(W)
    bad = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), G)
    memory, update = guarded.init(W), jax.jit(guarded.update)
    updates, memory = update(bad, memory, W)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(updates))
    updates, memory = update(G, memory, W)
    wanted, inner = jax.jit(mirror_descent(0.1, 1.5).update)(G, mirror_descent(0.1, 1.5).init(W), W)
    assert_equal(updates, wanted)
    assert_equal(memory[1].inner_state, inner)


def test_an_injected_learning_rate_can_be_changed_on_the_way():
    injected = optax.inject_hyperparams(
        lambda learning_rate: mirror_descent(learning_rate, 1.5, momentum=0.5)
    )
    schedule = optax.piecewise_constant_schedule(0.125, {3: 0.5})
    wanted, _ = follow(mirror_descent(schedule, 1.5, momentum=0.5), model(), 6)
    path, memory = follow(injected(learning_rate=0.125), model(), 3)
    memory.hyperparams["learning_rate"] = jnp.asarray(0.0625)
    path, _ = follow(injected(learning_rate=0.125), path[-1], 3, memory)
    assert_equal(path[-1], wanted[-1], rtol=1e-14)


def test_only_the_learning_rate_can_be_injected():
    for setting in ({"p": jnp.asarray(1.5)}, {"momentum": jnp.asarray(0.5)}):
        (name,) = setting
        with pytest.raises(InvalidInputError, match=rf"{name}: it is an array.*lambda"):
            mirror_descent(0.1, **setting)
    with pytest.raises(InvalidInputError, match=re.escape("p: it is an array")):
        optax.inject_hyperparams(mirror_descent)(learning_rate=0.1).init(model())


def test_frozen_parameters_keep_their_bits():
    frozen = {"layer": {"query": False, "key": True}, "head": False, "bias": True}
    moving = jax.tree.map(lambda flag: not flag, frozen)
    optimizer = optax.chain(
        optax.masked(mirror_descent(0.1, 1.1), moving), optax.masked(optax.set_to_zero(), frozen)
    )
    path, _ = follow(optimizer, model(), 5)
    assert_equal(path[-1]["layer"]["key"], model()["layer"]["key"])
    assert_equal(path[-1]["bias"], model()["bias"])
    assert (path[-1]["head"] != model()["head"]).all()


def test_an_equinox_model_trains_as_its_arrays_do():
    network = eqx.nn.MLP(3, "scalar", 4, 1, key=jax.random.key(0), dtype=jnp.float64)
    optimizer = mirror_descent(0.05, 1.5)

    @eqx.filter_jit
    def risk(network):
        return jnp.logaddexp(0, -TARGETS * jax.vmap(network)(INPUTS)).mean()

    @eqx.filter_jit
    def step(network, memory):
        G = eqx.filter_grad(risk)(network)
        updates, memory = optimizer.update(G, memory, eqx.filter(network, eqx.is_inexact_array))
        return eqx.apply_updates(network, updates), memory

    arrays, static = eqx.partition(network, eqx.is_inexact_array)

    start, memory = network, optimizer.init(eqx.filter(network, eqx.is_inexact_array))
    network, memory = step(network, memory)

    @jax.jit
    def wanted_step(arrays, memory):
        G = jax.grad(lambda arrays: risk(eqx.combine(arrays, static)))(arrays)
        updates, _ = optimizer.update(G, memory, arrays)
        return optax.apply_updates(arrays, updates)

    wanted = wanted_step(arrays, optimizer.init(arrays))
    assert_equal(eqx.filter(network, eqx.is_inexact_array), wanted, rtol=1e-12)
    assert risk(network) < risk(start)


def test_scanned_donated_and_batched_steps_are_the_same_steps():
    optimizer = mirror_descent(0.05, 1.1, **SETTINGS)
    wanted, _ = follow(optimizer, model(), 5)
    step = step_of(optimizer)

    def scanned(W):
        return jax.lax.scan(lambda carry, _: (step(*carry), None), (W, optimizer.init(W)), None, 5)

    (found, _), _ = jax.jit(scanned)(model())
    assert_equal(found, wanted[-1], rtol=1e-12)

    seeds = [model(seed=seed) for seed in (1, 2)]
    (many, _), _ = jax.jit(jax.vmap(scanned))(jax.tree.map(lambda *one: jnp.stack(one), *seeds))
    assert_equal(jax.tree.map(lambda leaf: leaf[0], many), wanted[-1], rtol=1e-12)

    donating = jax.jit(step, donate_argnums=(0, 1))
    W, memory = model(), jax.jit(optimizer.init)(model())
    for _ in range(5):
        W, memory = donating(W, memory)
    assert_equal(W, wanted[-1])


def test_a_saved_state_resumes_bit_for_bit():
    optimizer = mirror_descent(optax.linear_schedule(0.1, 0.01, 8), 1.1, **SETTINGS)
    (*_, W), memory = follow(optimizer, model("bfloat16"), 3)
    wanted, _ = follow(optimizer, W, 3, memory)
    stream = io.BytesIO()
    eqx.tree_serialise_leaves(stream, (W, memory))
    stream.seek(0)
    restored = eqx.tree_deserialise_leaves(stream, jax.tree.map(jnp.zeros_like, (W, memory)))
    assert_same_bits(restored, (W, memory))
    assert_equal(follow(optimizer, restored[0], 3, restored[1])[0], wanted)


def test_a_state_goes_through_safetensors_bit_for_bit():
    safetensors = pytest.importorskip("safetensors.flax")
    memory = follow(mirror_descent(optax.constant_schedule(0.1), 1.1, **SETTINGS), model(), 3)[1]
    leaves, structure = jax.tree.flatten(memory)
    written = safetensors.save({str(place): leaf for place, leaf in enumerate(leaves)})
    read = safetensors.load(written)
    assert_same_bits(structure.unflatten([read[str(i)] for i in range(len(leaves))]), memory)


@pytest.mark.parametrize(
    ("dtype", "p"), [("float16", 1.1), ("bfloat16", 1.1), ("bfloat16", 2), ("float16", 3)]
)
def test_half_precision_weights_are_the_rounded_map_of_the_dual(dtype, p):
    optimizer, W = mirror_descent(0.03, p, momentum=0.5), model(dtype)
    memory, step = optimizer.init(W), jax.jit(step_of(optimizer))
    for _ in range(30):
        W, memory = step(W, memory)
        rounded = optimizer.retract(W, memory)
        jax.tree.map(np.testing.assert_array_equal, W, rounded)
        assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(W))


@pytest.mark.parametrize(("dtype", "p"), [("float64", 1.02), ("float32", 1.1), ("float32", 3)])
def test_added_differences_are_off_by_half_a_unit_of_the_larger_weight_and_no_more(dtype, p):
    # A difference cannot say what is far below the weight it starts from; the next one does.
    optimizer = mirror_descent(0.1 * min(p - 1, 0.5), p)
    path, memory = follow(optimizer, model(dtype), 0)
    step = jax.jit(step_of(optimizer))
    for _ in range(50):
        W, memory = step(path[-1], memory)
        path.append(W)
        for held, before, exact in zip(
            *map(jax.tree.leaves, (W, path[-2], optimizer.retract(W, memory))), strict=True
        ):
            larger = np.maximum(np.abs(before), np.abs(exact))
            assert (np.abs(held - exact) <= np.finfo(dtype).eps * larger).all()


@pytest.mark.slow
def test_declared_again_a_chain_trains_right(unit_tokens):
    tokens, head = unit_tokens(1)
    descent = mirror_descent(0.02, 1.05, normalize=False)
    chain = optax.chain(optax.clip_by_global_norm(1e6), descent)
    found, wanted = (
        train(tokens, head, optimizer, steps=20).data["W"].values[0, 0]
        for optimizer in (declare(chain, geometry=Lp(1.05)), descent)
    )
    # Weights are added to there, and follow from the dual here.
    for before, held, exact in zip(found[:-1], found[1:], wanted[1:], strict=True):
        larger = np.maximum(np.abs(before), np.abs(exact))
        assert (np.abs(held - exact) <= 1e-12 * larger).all()
    assert np.abs(wanted[-1] - wanted[0]).max() > 1e-3
