import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import optax
import pytest
from hypothesis import given, settings, strategies as st

from attractor.attention import LinearHead, attention_rows, get_loss
from attractor.attention.gradients.scaled_gradient import scaled_gradient
from attractor.attention.parameterization import AttentionMatrix, Parameters
from attractor.attention.scaled import Scaled
from attractor.geometry import Lp, Schatten
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training import train
from attractor.training.optimizers import (
    declare,
    gradient_descent,
    mirror_descent,
    normalized_gradient_descent,
    schatten_mirror_descent,
)


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def run(optimizer, W, gradients):
    """Takes plain steps with given gradients; returns all iterates."""
    step = jax.jit(
        lambda W, memory, G: optimizer.step(
            jax.tree.map(lambda g: Scaled(g, jnp.zeros(())), G), memory, W
        )
    )
    memory, path = optimizer.init(W), [W]
    for G in gradients:
        W, memory = step(W, memory, G)
        path.append(W)
    return path


@pytest.mark.parametrize("p", [1.01, 1.1, 1.5, 1.75, 3, 8])
@pytest.mark.parametrize("normalize", [True, False])
def test_steps_are_those_of_exact_arithmetic(p, normalize):
    rng = np.random.default_rng(0)
    W = rng.uniform(0.3, 1.5, (3, 4)) * rng.choice([-1, 1], (3, 4))
    gradients = rng.normal(size=(6, 3, 4))
    rate = 0.05 * min(p - 1, 1)
    found = run(mirror_descent(rate, p, normalize), jnp.asarray(W), jnp.asarray(gradients))[-1]
    with mpmath.workdps(50):
        power, q = mpmath.mpf(p) - 1, mpmath.mpf(p) / (mpmath.mpf(p) - 1)
        Y = [mpmath.sign(w) * abs(w) ** power for w in map(mpmath.mpf, W.ravel().tolist())]
        for G in gradients:
            g = [mpmath.mpf(x) for x in G.ravel().tolist()]
            norm = sum(abs(x) ** q for x in g) ** (1 / q) if normalize else 1
            Y = [y - mpmath.mpf(rate) * x / norm for y, x in zip(Y, g, strict=True)]
        wanted = [float(mpmath.sign(y) * abs(y) ** (1 / power)) for y in Y]
    # Rounding of Y, some halves of a unit at its largest on the way, is magnified by 1 / (p - 1).
    tolerance = 2.3e-16 * 12 * max(1 / (p - 1), 1)
    sizes = np.abs(np.ravel(found)) ** (p - 1)
    np.testing.assert_allclose(np.ravel(found), wanted, rtol=tolerance / sizes.min(), atol=1e-300)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("per_factor", [True, False])
@pytest.mark.parametrize("make", [mirror_descent, schatten_mirror_descent])
def test_two_is_gradient_descent_to_the_last_bit(make, normalize, per_factor):
    rng = np.random.default_rng(1)
    shapes = {"attention": (3, 4), "head": (5,)}

    def draw():
        return {name: jnp.asarray(rng.normal(size=shape)) for name, shape in shapes.items()}

    W, gradients = draw(), [draw() for _ in range(20)]
    other = (
        normalized_gradient_descent(0.1, per_factor=per_factor)
        if normalize
        else gradient_descent(0.1)
    )
    optimizer = make(0.1, 2, normalize, per_factor=per_factor)
    for one, two in zip(run(optimizer, W, gradients), run(other, W, gradients), strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, two)
    updates, _ = optimizer.update(gradients[0], optimizer.init(W), W)
    wanted, _ = other.update(gradients[0], other.init(W), W)
    jax.tree.map(np.testing.assert_array_equal, updates, wanted)


def test_two_is_normalized_gradient_descent_in_training(unit_tokens):
    tokens, head = unit_tokens(2)
    one, two = (
        train(tokens, head, optimizer, steps=50).data["W"].values
        for optimizer in (mirror_descent(0.1, 2), normalized_gradient_descent(0.1))
    )
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)  # as compilers order operations


@pytest.mark.parametrize("p", [1.1, 1.5, 1.75, 2, 3])
def test_the_identity_of_mirror_descent(p, unit_tokens):
    # D(U, W) - D(U, W+) = D(W+, W) - rate <G, U - W+> for any U, where losses have canceled.
    tokens, head = unit_tokens(1)
    rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], attention_rows(tokens))
    head = LinearHead(jnp.asarray(head.weight)[0])
    rate, optimizer = 1.0, mirror_descent(1.0, p, normalize=False)

    @jax.jit
    def step(W, memory):
        G = scaled_gradient(AttentionMatrix(), get_loss("logistic"), W, head, rows).attention
        return *optimizer.step(G, memory, W), G.mantissa * jnp.exp(G.log_scale)

    rng = np.random.default_rng(2)
    W, U = jnp.asarray(rng.uniform(-0.3, 0.3, (5, 5))), rng.uniform(-0.3, 0.3, (5, 5))

    def divergence(A, B):
        image = np.sign(B) * np.abs(B) ** (p - 1)
        return (np.abs(A) ** p - np.abs(B) ** p).sum() / p - (image * (A - B)).sum()

    memory, worst, furthest = optimizer.init(W), 0.0, 0.0
    for _ in range(40):
        ahead, memory, G = step(W, memory)
        before, after, slope = np.asarray(W), np.asarray(ahead), np.asarray(G)
        left = divergence(U, before) - divergence(U, after)
        right = divergence(after, before) - rate * (slope * (U - after)).sum()
        worst, furthest = max(worst, abs(left - right)), max(furthest, abs(left))
        W = ahead
    assert worst <= 1e-12
    assert furthest > 1e-3  # so that the identity says something


@pytest.mark.parametrize("p", [1.1, 1.05, 1.01])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_weight_leaves_zero(p, dtype):
    # A thousand equal steps of 1e-3 make Y = 1, and so W = 1, by way of W far below any float.
    optimizer = mirror_descent(1e-3, p, normalize=False)
    W = jnp.zeros((2, 3), dtype)
    memory = optimizer.init(W)
    assert memory.dual.dtype == jnp.float32

    @jax.jit
    def steps(W, memory):
        def one(_, carry):
            W, memory = carry
            updates, memory = optimizer.update(jnp.full_like(W, -1), memory, W)
            return optax.apply_updates(W, updates), memory

        return jax.lax.fori_loop(0, 1000, one, (W, memory))

    W, memory = steps(W, memory)
    assert W.dtype == dtype
    # The sum of a thousand singles is off by about 1e-5, which 1 / (p - 1) magnifies.
    rtol = 2e-5 / (p - 1) + (0 if dtype == "float32" else 4e-3)
    np.testing.assert_allclose(np.asarray(W, float), 1, rtol=rtol)


def test_half_precision_weights_accumulate_in_single():
    # Each step is far below the spacing of bfloat16 at 1; their sum is not.
    optimizer = mirror_descent(1e-4, 1.75, normalize=False)
    W = jnp.ones((2, 2), jnp.bfloat16)
    memory = optimizer.init(W)
    step = jax.jit(lambda W, memory: optimizer.update(jnp.ones_like(W), memory, W))
    for _ in range(1000):
        updates, memory = step(W, memory)
        W = optax.apply_updates(W, updates)
    np.testing.assert_allclose(np.asarray(W, float), 0.9 ** (4 / 3), rtol=4e-3)


@pytest.mark.parametrize("p", [1.1, 8])
def test_the_dual_norm_of_tiny_gradients_does_not_underflow(p):
    # With q = 11 the powers of these gradients are far below the least single.
    G = np.random.default_rng(3).uniform(1e-6, 2e-6, (3, 4)).astype("float32")
    q = p / (p - 1)
    optimizer = mirror_descent(0.5, p)
    W = jnp.zeros((3, 4), jnp.float32)
    _, memory = optimizer.update(jnp.asarray(G), optimizer.init(W), W)
    wanted = -0.5 * G.astype(float) / (G.astype(float) ** q).sum() ** (1 / q)
    np.testing.assert_allclose(memory.dual, wanted, rtol=1e-5)


@pytest.mark.parametrize("p", [1.01, 3, 8, 50])
def test_weights_that_never_had_a_gradient_keep_their_bits(p):
    # With p = 8 the image of 1e-8 is 1e-56, which no single holds.
    W = jnp.asarray([[1e-8, 0.3, -0.7], [1e-20, 0.0, 2.0]], jnp.float32)
    G = jnp.zeros((2, 3), jnp.float32).at[0, 1].set(1.0)
    path = run(mirror_descent(0.01, p), W, [G] * 3)
    untouched = np.asarray(G) == 0
    np.testing.assert_array_equal(np.asarray(path[-1])[untouched], np.asarray(W)[untouched])
    assert path[-1][0, 1] < 0.3


def test_every_group_may_have_its_own_exponent():
    exponents = {"attention": 1.1, "head.weight": 3}
    rng = np.random.default_rng(4)

    def draw():
        attention, weight = (jnp.asarray(rng.normal(size=shape)) for shape in ((3, 4), (5,)))
        return {"attention": attention, "head": {"weight": weight}}

    W, gradients = draw(), [draw() for _ in range(3)]
    optimizer = mirror_descent(0.01, exponents.__getitem__)
    assert optimizer.geometry is None
    found = run(optimizer, W, gradients)[-1]
    for p, part in ((1.1, lambda t: t["attention"]), (3, lambda t: t["head"]["weight"])):
        wanted = run(mirror_descent(0.01, p), part(W), [part(G) for G in gradients])[-1]
        np.testing.assert_allclose(part(found), wanted, rtol=1e-13)
    together = mirror_descent(0.01, exponents.__getitem__, per_factor=False)
    with pytest.raises(InvalidInputError, match="per_factor"):
        together.update(W, together.init(W), W)
    with pytest.raises(InvalidInputError, match=r"p\('attention'\): 0.5"):
        mirror_descent(0.1, lambda path: 0.5).init(W)


def test_paths_are_those_of_the_trained_parameters():
    seen = []
    trained = Parameters(jnp.ones((3, 4)), LinearHead(jnp.ones(3)))
    mirror_descent(0.1, lambda path: seen.append(path) or 1.5).init(trained)
    assert seen == ["attention", "head.weight"]


def test_one_norm_for_all_arrays_is_that_of_all_entries():
    rng = np.random.default_rng(5)
    G = {"a": jnp.asarray(rng.normal(size=(3, 4))), "b": jnp.asarray(rng.normal(size=5))}
    W = jax.tree.map(jnp.zeros_like, G)
    optimizer = mirror_descent(1.0, 1.5, per_factor=False)
    _, memory = optimizer.update(G, optimizer.init(W), W)
    entries = np.concatenate([np.ravel(leaf) for leaf in G.values()])
    norm = (np.abs(entries) ** 3).sum() ** (1 / 3)
    np.testing.assert_allclose(memory.dual["b"], -G["b"] / norm, rtol=1e-14)
    scaled = {name: Scaled(leaf, jnp.asarray(-3000.0)) for name, leaf in G.items()}
    assert float(optimizer.log_time_step(scaled)) == pytest.approx(3000 - np.log(norm), rel=1e-15)
    assert np.isnan(mirror_descent(1.0, 1.5).log_time_step(scaled))
    raw = mirror_descent(0.5, 1.5, normalize=False)
    assert float(raw.log_time_step(scaled)) == np.log(0.5)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([1.05, 1.5, 3.0, 8.0]), st.integers(0, 10**6), st.floats(-4000, 4000))
def test_the_time_of_a_step_is_by_the_dual_norm(p, seed, log_scale):
    with double_precision():
        G = np.random.default_rng(seed).normal(size=(3, 4))
        G[0] *= 10.0 ** np.random.default_rng(seed).uniform(-12, 0)
        gradient = {"a": Scaled(jnp.asarray(G), jnp.asarray(log_scale))}
        for make, geometry in ((mirror_descent, Lp(p)), (schatten_mirror_descent, Schatten(p))):
            found = float(make(0.3, p).log_time_step(gradient))
            wanted = np.log(0.3) - np.log(geometry.dual_norm(G)) - log_scale
            assert found == pytest.approx(wanted, rel=1e-14, abs=1e-13)


@pytest.mark.parametrize("log_scale", (0.0, np.log(1e-16), -600.0))
@pytest.mark.parametrize("per_factor", (False, True))
def test_a_guarded_norm_divides_by_the_dual_norm_plus_eps(log_scale, per_factor):
    p, eps = 1.75, 2.22e-16
    step = mirror_descent(0.1, p, per_factor=per_factor, eps=eps)
    G = {"K": np.array([[3.0, -1.0]]), "Q": np.array([[0.5, 4.0]])}
    sizes = {name: Lp(p).dual_norm(g) for name, g in G.items()}
    if not per_factor:
        sizes = dict.fromkeys(G, Lp(p).dual_norm(np.concatenate(list(G.values()))))
    gradient = {n: Scaled(jnp.asarray(g), jnp.asarray(log_scale)) for n, g in G.items()}
    zero = jax.tree.map(jnp.zeros_like, {name: jnp.asarray(g) for name, g in G.items()})
    _, memory = step.step(gradient, step.init(zero), zero)
    for name, g in G.items():
        share = 1 / (1 + np.exp(np.log(eps) - log_scale - np.log(sizes[name])))
        np.testing.assert_allclose(memory.dual[name], -0.1 * share * g / sizes[name], rtol=1e-12)
    if not per_factor:
        slowed = np.logaddexp(np.log(sizes["K"]) + log_scale, np.log(eps))
        assert float(step.log_time_step(gradient)) == pytest.approx(np.log(0.1) - slowed, rel=1e-13)


def test_declared_in_a_chain_it_keeps_its_dual_state():
    chain = optax.chain(optax.clip(0.3), mirror_descent(0.1, 1.1))
    optimizer = declare(chain, geometry=Lp(1.1), gradient_scale="absolute")
    rng = np.random.default_rng(6)
    W, gradients = jnp.asarray(rng.normal(size=(3, 4))), jnp.asarray(rng.normal(size=(30, 3, 4)))
    wanted = run(mirror_descent(0.1, 1.1), W, jnp.clip(gradients, -0.3, 0.3))[-1]
    np.testing.assert_allclose(run(optimizer, W, gradients)[-1], wanted, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("make", [mirror_descent, schatten_mirror_descent])
@pytest.mark.parametrize("p", [1, 0.5, np.inf, np.nan, "two", None, True])
def test_exponents_are_above_one_and_finite(make, p):
    with pytest.raises(InvalidInputError, match=r"^p: "):
        make(0.1, p)


def test_it_says_what_it_needs():
    optimizer = mirror_descent(0.1)
    W = jnp.ones((2, 2))
    with pytest.raises(InvalidInputError, match="params"):
        optimizer.update(W, optimizer.init(W))
    for setting in ("normalize", "per_factor"):
        with pytest.raises(InvalidInputError, match=setting):
            mirror_descent(0.1, **{setting: 1})
    with pytest.raises(InvalidInputError, match="nothing is divided"):
        mirror_descent(0.1, normalize=False, eps=1e-16)
