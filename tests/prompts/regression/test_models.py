import jax
import numpy as np
import pytest

from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.training import PARAMETERIZATIONS, Factors
from attractor.support.precision import double_precision

D, HEADS = 3, 2


def random_blocks(rng):
    shapes = ((HEADS, D, D), (HEADS, D), (HEADS, D), (HEADS,))
    return Blocks(*(rng.standard_normal(shape) for shape in shapes))


@pytest.mark.parametrize("name", PARAMETERIZATIONS)
def test_parameters_of_blocks_have_these_blocks(name):
    model = PARAMETERIZATIONS[name](D, HEADS)
    blocks = random_blocks(np.random.default_rng(0))
    if name == "blocks":  # which has no others
        blocks = blocks._replace(label_row=np.zeros((HEADS, D)), value_inputs=np.zeros((HEADS, D)))
    with double_precision():
        found = jax.jit(model.blocks)(model.of_blocks(blocks))
    for ours, given in zip(found, blocks, strict=True):
        np.testing.assert_allclose(ours, given, atol=1e-14)
    assert model.name == name


def test_factors_of_blocks_are_balanced():
    p = Factors(D, HEADS).of_blocks(random_blocks(np.random.default_rng(1)))
    for h in range(HEADS):
        keys, queries = p["keys"][h], p["queries"][h]
        np.testing.assert_allclose(keys @ keys.T, queries @ queries.T, atol=1e-13)
        outer = np.outer(p["output"][h], p["output"][h])
        np.testing.assert_allclose(p["values"][h] @ p["values"][h].T, outer, atol=1e-13)
    zero = Factors(D, 1).of_blocks(Blocks(*(np.zeros((1, *s)) for s in ((D, D), (D,), (D,), ()))))
    assert all(np.isfinite(array).all() for array in zero.values())


def test_layers_start_as_those_of_pytorch():
    parameters = Factors(5, 1).default(np.random.default_rng(2))
    largest = max(np.abs(array).max() for array in parameters.values())
    assert 0.95 / 6**0.5 < largest <= 1 / 6**0.5
    assert {name: a.shape for name, a in parameters.items()} == {
        "keys": (1, 6, 6), "queries": (1, 6, 6), "values": (1, 6, 6), "output": (1, 6)
    }  # fmt: skip


def test_gradient_pulls_back_to_every_parameter():
    rng = np.random.default_rng(3)
    model, slopes = Factors(D, HEADS), random_blocks(rng)
    parameters = model.default(rng)
    with double_precision():
        found = jax.jit(model.gradient)(parameters, slopes)
        blocks = jax.jit(model.blocks)

        def inner(parameters):
            pairs = zip(blocks(parameters), slopes, strict=True)
            return sum((np.asarray(a) * b).sum() for a, b in pairs)

        for name, array in parameters.items():
            direction = rng.standard_normal(array.shape)
            moved = [inner(parameters | {name: array + h * direction}) for h in (1e-5, -1e-5)]
            difference = (moved[0] - moved[1]) / 2e-5
            assert np.sum(np.asarray(found[name]) * direction) == pytest.approx(
                difference, abs=1e-8
            )
    assert jax.tree.structure(found) == jax.tree.structure(parameters)
