"""Optimizers in loops of one's own: half precision, empty arrays, and what is no real number."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import attractor as at
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers import declare, named_optimizer

STEPS = 3
SHAPES = {"matrix": (3, 4), "vector": (3,), "number": ()}
EMPTY = {"no rows": (0, 3), "no columns": (3, 0), "nothing": (0,)}
DECOMPOSING = (
    "muon:method=exact",
    "spectral",
    "steepest:geometry=nuclear",
    "steepest:geometry=schatten_1.5",
    "Schatten mirror descent:p=3",
)
OTHERS = (
    *(
        "adam",
        "adam:eps=0.001",
        "gd",
        "ngd",
        "ngd:eps=0.001",
        "ngd:per_factor=true",
        "md",
        "md:p=3",
    ),
    *("md:per_factor=false,p=3", "md:momentum=0.9", "momentum", "nsgdm", "signum", "lion", "muon"),
    *("steepest:geometry=l_1", "steepest:geometry=l_3", "steepest:geometry=frobenius", "sign"),
    *("steepest:geometry=schatten_3", "greedy", "spectral:method=newton-schulz", "polyak"),
    *(
        "steepest:geometry=max(l_3[:, : by 1])",
        "muon:joined=true",
        "muon:learning_rate_exponent=0.5",
    ),
)


def drawn(shapes, dtype, step=0):
    """Numbers that bfloat16 holds, so that every type starts from the same."""
    held = {}
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        numbers = np.cos(1.7 * (step + 1) * np.arange(size) + step).reshape(shape)
        held[name] = jnp.asarray(numbers, jnp.bfloat16).astype(dtype)
    return held


def trained(optimizer, shapes, dtype):
    further = {"log_excess": jnp.float32(-1)} if optimizer.needs else {}
    gradients = [drawn(shapes, dtype, step + 1) for step in range(STEPS)]

    @jax.jit
    def run(weights):
        state, lengths = optimizer.init(weights), []
        for gradient in gradients:
            steps, state = optimizer.update(gradient, state, weights, **further)
            lengths += [abs(leaf).max(initial=0) for leaf in jax.tree.leaves(steps)]
            weights = jax.tree.map(lambda w, s: (w + s).astype(w.dtype), weights, steps)
        return weights, steps, jnp.stack(lengths).max()

    return run(drawn(shapes, dtype))


def check(spelling, dtype):
    optimizer = named_optimizer(spelling, None if spelling == "polyak" else 0.1)
    with double_precision():
        exact, _, _ = trained(optimizer, SHAPES, jnp.float64)
        found, steps, longest = trained(optimizer, SHAPES | EMPTY, dtype)
    # A step is rounded to the type, and so is the sum of it and the weight, every time.
    unit = float(jnp.finfo(dtype).eps) / 2
    for name, leaf in found.items():
        assert leaf.dtype == dtype and leaf.shape == (SHAPES | EMPTY)[name]
        if name in EMPTY:
            continue
        if not spelling.startswith(("md", "Schatten")):  # whose sums are exact in single precision
            assert steps[name].dtype == dtype
        size = abs(np.asarray(exact[name])).max() + float(longest)
        apart = abs(np.asarray(leaf, np.float64) - np.asarray(exact[name]))
        assert apart.max() <= 2 * STEPS * unit * size, name


@pytest.mark.long
@pytest.mark.parametrize("spelling", DECOMPOSING)
def test_half_precision_gives_the_steps_of_double_rounded_to_it(spelling):
    check(spelling, jnp.bfloat16)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("spelling", (*DECOMPOSING, *OTHERS))
def test_every_optimizer_takes_half_precision_and_empty_arrays(spelling, dtype):
    check(spelling, dtype)


@pytest.mark.parametrize("spelling", ["muon", "adam", "momentum", "greedy", "md", "spectral"])
def test_where_every_array_is_empty_nothing_moves(spelling):
    optimizer = named_optimizer(spelling, 0.1)
    weights = drawn(EMPTY, jnp.float32)
    steps, _ = optimizer.update(weights, optimizer.init(weights), weights)
    jax.tree.map(np.testing.assert_array_equal, steps, weights)


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.complex64, bool])
@pytest.mark.parametrize("spelling", ["gd", "spectral", "adam", "adam:eps=0.001", "lion", "md"])
def test_what_is_no_real_number_is_refused(spelling, dtype):
    weights = {"W": jnp.ones((2, 2), dtype)}
    optimizer = named_optimizer(spelling, 0.1)
    with pytest.raises(InvalidInputError, match="params: optimizers move real numbers, not"):
        optimizer.init(weights)
    real = {"W": jnp.ones((2, 2))}
    with pytest.raises(InvalidInputError, match="updates: optimizers move real numbers, not"):
        optimizer.update(weights, optimizer.init(real), real)


def test_memories_of_half_precision_weights_do_not_stand_still():
    # A thousandth of a gradient is below the spacing of bfloat16 beside what is remembered.
    optimizer = at.momentum(1e-3, decay=0.999)
    weights = {"W": jnp.ones((2, 2), jnp.bfloat16)}
    _, state = optimizer.update(weights, optimizer.init(weights), weights)
    for _ in range(2):
        _, state = optimizer.update({"W": weights["W"] * 1e-3}, state, weights)
    (memory,) = [leaf for leaf in jax.tree.leaves(state) if leaf.shape == (2, 2)]
    assert memory.dtype == jnp.float32
    np.testing.assert_allclose(memory, 0.999**2 + 1.999e-3, rtol=2e-3)


def test_what_was_declared_sees_arrays_as_they_come():
    own = optax.sgd(0.1, momentum=0.9)
    weights = {"W": jnp.ones((2, 2), jnp.bfloat16), "none": jnp.zeros((0, 3), jnp.bfloat16)}
    declared = declare(own, geometry=None)
    for found, wanted in zip(
        jax.tree.leaves(declared.update(weights, declared.init(weights), weights)),
        jax.tree.leaves(own.update(weights, own.init(weights), weights)),
        strict=True,
    ):
        assert found.dtype == wanted.dtype == jnp.bfloat16
        np.testing.assert_array_equal(found, wanted)
