"""Momentum, decay and schedules of mirror descent, against exact arithmetic and optax."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import optax
import pytest

from attractor.attention.scaled import Scaled
from attractor.geometry import Lp
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training import Trajectory, train
from attractor.training.optimizers import get_optimizer, mirror_descent, schatten_mirror_descent


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def run(optimizer, W, gradients):
    """Follows given gradients as anybody's own loop does."""

    @jax.jit
    def steps(W, memory):
        def one(carry, G):
            W, memory = carry
            updates, memory = optimizer.update(G, memory, W)
            W = optax.apply_updates(W, updates)
            return (W, memory), W

        return jax.lax.scan(one, (W, memory), gradients)

    (_, memory), path = steps(W, optimizer.init(W))
    return path, memory


def draws(dtype=float, steps=6):
    rng = np.random.default_rng(0)
    W = rng.uniform(0.3, 1.5, (3, 4)) * rng.choice([-1, 1], (3, 4))
    return jnp.asarray(W, dtype), jnp.asarray(rng.normal(size=(steps, 3, 4)), dtype)


@pytest.mark.parametrize("p", [1.1, 1.5, 3])
@pytest.mark.parametrize("normalize", [True, False])
def test_momentum_decay_and_schedule_are_those_of_exact_arithmetic(p, normalize):
    W, gradients = draws()
    base, decay, shrink = 0.05 * min(p - 1, 1), 0.8, 0.3

    def schedule(count):
        return base / (count + 1)

    optimizer = mirror_descent(schedule, p, normalize, momentum=decay, dual_weight_decay=shrink)
    found, memory = run(optimizer, W, gradients)
    with mpmath.workdps(40):
        power, q = mpmath.mpf(p) - 1, mpmath.mpf(p) / (mpmath.mpf(p) - 1)
        Y = [mpmath.sign(w) * abs(w) ** power for w in map(mpmath.mpf, W.ravel().tolist())]
        M = [mpmath.mpf(0)] * len(Y)
        for count, G in enumerate(gradients):
            g = [mpmath.mpf(x) for x in G.ravel().tolist()]
            norm = sum(abs(x) ** q for x in g) ** (1 / q) if normalize else 1
            rate = mpmath.mpf(base) / (count + 1)
            M = [mpmath.mpf(decay) * m + x / norm for m, x in zip(M, g, strict=True)]
            Y = [(1 - rate * mpmath.mpf(shrink)) * y - rate * m for y, m in zip(Y, M, strict=True)]
        wanted = [float(mpmath.sign(y) * abs(y) ** (1 / power)) for y in Y]
        dual, remembered = [float(y) for y in Y], [float(m) for m in M]
    np.testing.assert_allclose(memory.memory.dual.ravel(), dual, rtol=0, atol=2e-15)
    np.testing.assert_allclose(memory.memory.momentum.ravel(), remembered, rtol=0, atol=2e-14)
    tolerance = 2e-15 / min(p - 1, 1) / np.abs(dual).min()
    np.testing.assert_allclose(found[-1].ravel(), wanted, rtol=tolerance)
    assert memory.step == len(gradients)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_two_is_sgd_to_the_last_bit(dtype, momentum):
    W, gradients = draws(dtype, 50)
    schedule = optax.piecewise_constant_schedule(0.1, {20: 0.5})
    for rate in (0.1, schedule):
        found, _ = run(mirror_descent(rate, 2, False, momentum=momentum), W, gradients)
        wanted, _ = run(optax.sgd(rate, momentum=momentum or None), W, gradients)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * np.finfo(dtype).eps)
    decayed = mirror_descent(0.1, 2, False, momentum=momentum, dual_weight_decay=0.3)
    found, _ = run(decayed, W, gradients)
    after = optax.chain(
        optax.trace(momentum), optax.add_decayed_weights(0.3), optax.scale_by_learning_rate(0.1)
    )
    wanted, _ = run(after, W, gradients)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=8 * np.finfo(dtype).eps)


def test_singular_values_remember_and_shrink_as_entries_do():
    rng = np.random.default_rng(1)
    U, V = (np.linalg.qr(rng.normal(size=(n, 3)))[0] for n in (5, 4))
    values, slopes = np.array([2.0, 1.5, 1.0]), rng.uniform(-1, 1, (5, 3))
    settings = {"normalize": False, "momentum": 0.7, "dual_weight_decay": 0.5}

    def build(s):
        return jnp.asarray((U * s[..., None, :]) @ V.T)

    found, _ = run(schatten_mirror_descent(0.02, 3, **settings), build(values), build(slopes))
    wanted, _ = run(mirror_descent(0.02, 3, **settings), jnp.asarray(values), jnp.asarray(slopes))
    np.testing.assert_allclose(found, build(np.asarray(wanted)), atol=1e-13)


def test_decay_alone_shrinks_the_image_geometrically():
    W = jnp.asarray([1.0, -2.0, 0.0])
    found, _ = run(mirror_descent(0.1, 1.1, dual_weight_decay=0.2), W, jnp.zeros((5, 3)))
    np.testing.assert_allclose(found[-1], W * 0.98 ** (5 / 0.1), rtol=1e-13)


def pulse(count):
    return jnp.where((count >= 2) & (count < 4), 0.5, 0.0)


def test_training_follows_a_schedule_and_keeps_its_name(unit_tokens, tmp_path):
    tokens, head = unit_tokens(1)
    trained = train(tokens, head, mirror_descent(pulse, 1.5), steps=8)
    images = [Lp(1.5).mirror_map(W) for W in trained.data["W"].values[0, 0]]
    lengths = [Lp(1.5).dual_norm(b - a) for a, b in itertools.pairwise(images)]
    np.testing.assert_allclose(lengths, [0, 0, 0.5, 0.5, 0, 0, 0, 0], rtol=1e-14)
    # Where the rate is zero no time passes.
    sizes = np.exp(trained.data["log_time"].values[0, 0])
    assert (sizes[:3] == 0).all() and (np.diff(sizes) > 0).tolist() == [False] * 2 + [True] * 2 + [
        False
    ] * 4
    trained.save(tmp_path / "run.nc")
    assert Trajectory.load(tmp_path / "run.nc").settings["optimizer"]["learning_rate"] == "pulse"


@pytest.mark.parametrize("setting", [{"momentum": 0.5}, {"dual_weight_decay": 0.01}])
def test_only_plain_steps_of_one_length_have_a_raw_time(setting):
    assert mirror_descent(0.5, 1.5).log_time_step is not None
    assert mirror_descent(0.5, 1.5, **setting).log_time_step is None


def test_a_sweep_over_learning_rates_is_each_alone():
    W, gradients = draws(steps=1)
    rates = jnp.asarray([0.01, 0.02, 0.05])

    def image(rate):
        optimizer = mirror_descent(rate, 1.5)
        return optimizer.update(gradients[0], optimizer.init(W), W)[1].dual

    found = jax.jit(jax.vmap(image))(rates)
    for rate, one in zip(rates, found, strict=True):
        np.testing.assert_allclose(one, image(float(rate)), rtol=1e-15, atol=1e-16)


def test_time_without_normalization_is_the_learning_rate():
    gradient = Scaled(jnp.ones((3, 4)), jnp.asarray(-3000.0))
    assert mirror_descent(0.5, 1.5, normalize=False).log_time_step(gradient) == np.log(0.5)


def test_all_settings_have_a_written_form():
    written = "md:p=1.1,momentum=0.9,dual_weight_decay=1e-4,normalize=false"
    settings = {"momentum": 0.9, "dual_weight_decay": 1e-4, "normalize": False}
    assert get_optimizer(written, 0.1) is mirror_descent(0.1, 1.1, **settings)
    assert get_optimizer("smd:p=3,momentum=0.9", 0.1) is schatten_mirror_descent(
        0.1, 3, momentum=0.9
    )


def test_what_is_out_of_range_is_refused():
    for bad in (-0.1, 1, "much"):
        with pytest.raises(InvalidInputError, match=r"^momentum"):
            mirror_descent(0.1, momentum=bad)
    for bad in (-0.1, np.inf, "much"):
        with pytest.raises(InvalidInputError, match=r"^dual_weight_decay"):
            mirror_descent(0.1, dual_weight_decay=bad)
    with pytest.raises(InvalidInputError, match=r"the schedule .* gives"):
        mirror_descent(lambda count: jnp.ones(3) * count)
    with pytest.raises(InvalidInputError, match=r"params: .* not complex"):
        mirror_descent(0.1).init(jnp.ones(3, complex))
    with pytest.raises(InvalidInputError, match=r"params: .* not int"):
        mirror_descent(0.1).init({"a": np.arange(3)})


def test_arrays_without_entries_and_trees_without_arrays_are_left_alone():
    for per_factor in (True, False):
        optimizer = mirror_descent(0.1, 1.1, per_factor=per_factor)
        for W in ({}, {"a": jnp.zeros((0, 3)), "b": jnp.ones((2, 0)), "c": jnp.ones(2)}):
            updates, _ = optimizer.update(W, optimizer.init(W), W)
            assert jax.tree.map(jnp.shape, updates) == jax.tree.map(jnp.shape, W)
            assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(updates))
