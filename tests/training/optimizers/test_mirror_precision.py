"""Warnings of mirror descent where floating point cannot follow it."""

import warnings

import jax
import jax.numpy as jnp
import pytest

from attractor.support.errors import PrecisionWarning
from attractor.training.optimizers import mirror_descent, schatten_mirror_descent

ONES = {"a": jnp.ones((2, 3)), "b": jnp.ones((2, 3))}


def warned(optimizer, W=ONES):
    """What starting says, compiled or not."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        optimizer.init(W)
    return [str(one.message) for one in found if one.category is PrecisionWarning]


@pytest.mark.parametrize("make", [mirror_descent, schatten_mirror_descent])
def test_ordinary_settings_say_nothing(make):
    for p in (1.01, 1.1, 2, 3, 10):
        for rate in (1e-4, 0.1):
            for dtype in (jnp.float16, jnp.bfloat16, jnp.float32):
                assert not warned(make(rate, p), jnp.ones((2, 3), dtype))


def test_neighboring_weights_a_factor_of_two_apart_are_reported_once():
    spacing = 2.0**-23
    (message,) = warned(mirror_descent(0.1, 1 + spacing, normalize=False))
    assert "Mirror descent of a, and 1 more" in message and "close to 1" in message
    # (1 + spacing)^(1 / (p - 1)) is 2 to rounding at p - 1 = spacing, and 1.42 at twice that.
    assert not warned(mirror_descent(0.1, 1 + 2 * spacing, normalize=False))


def test_a_step_below_rounding_is_reported_where_weights_are_known():
    below, above = 2.0**-26, 2.0**-24
    (message,) = warned(mirror_descent(below, 1.1))
    assert "no weight moves" in message
    assert not warned(mirror_descent(above, 1.1))
    assert not warned(mirror_descent(below, 1.1, momentum=0.9))  # steps add up to ten times that
    assert not warned(mirror_descent(below, 1.1, normalize=False))  # of any length
    # A weight at zero or near it does move.
    assert not warned(mirror_descent(below, 1.1), {"a": ONES["a"].at[0, 0].set(0)})
    # What is reported is so: here no weight moves, there all do.
    for rate, moves in ((below, False), (above, True)):
        optimizer = mirror_descent(rate, 1.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, memory = optimizer.update(ONES["a"], optimizer.init(ONES["a"]), ONES["a"])
        assert bool((memory.dual != 1).any()) is moves


def test_a_step_beyond_the_range_of_images_is_reported():
    # With p = 1.01 the images of positive singles lie between 0.36 and 2.43.
    (message,) = warned(mirror_descent(4.0, 1.01))
    assert "Mirror descent of a, and 1 more: a step of" in message and "whole range" in message
    assert not warned(mirror_descent(0.5, 1.01))
    assert not warned(mirror_descent(lambda count: 4.0, 1.01))  # how long is not known
    only = mirror_descent(4.0, lambda path: 1.01 if path == "b" else 2)
    (message,) = warned(only)
    assert "Mirror descent of b:" in message
    # What is reported is so: after one step nothing is left of the weights.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        W = ONES["a"]
        optimizer = mirror_descent(4.0, 1.01)
        updates, _ = optimizer.update(W, optimizer.init(W), W)
    assert not jnp.isfinite(W + updates).any()


def test_the_range_is_that_of_the_type_of_the_weights():
    # Half precision ends at 65504, whose image with p = 1.1 is 3.03; single has 7073.
    half = {"a": jnp.ones((), jnp.float16)}
    assert len(warned(mirror_descent(4.0, 1.1), half)) == 1
    assert not warned(mirror_descent(4.0, 1.1), {"a": jnp.ones(())})


def test_a_compiled_start_warns_of_what_it_knows():
    with pytest.warns(PrecisionWarning, match="whole range"):
        jax.jit(mirror_descent(4.0, 1.01).init)(ONES)
