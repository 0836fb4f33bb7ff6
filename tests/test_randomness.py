import zlib

import jax
import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.precision import double_precision
from attractor.randomness import fold_in, generator, key, key_data, keys, unit_interval


def test_keys_differ_in_every_one_of_their_names():
    names = [(0, 0, "a", 0), (1, 0, "a", 0), (0, 1, "a", 0), (0, 0, "b", 0), (0, 0, "a", 1)]
    drawn = {float(jax.random.uniform(key(*name))) for name in names}
    assert len(drawn) == len(names)
    assert float(jax.random.uniform(key(0, 0, "a"))) in drawn


def test_generators_repeat_and_differ():
    first = generator(3, 1, purpose="images").random(4)
    assert np.array_equal(first, generator(3, 1, purpose="images").random(4))
    assert not np.array_equal(first, generator(3, 2, purpose="images").random(4))
    assert not np.array_equal(first, generator(3, 1, purpose="labels").random(4))


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, 2**63])
def test_a_seed_is_a_nonnegative_integer(seed):
    with pytest.raises(InvalidInputError, match="seed"):
        key(seed, 0, "a")


def test_many_keys_are_the_keys_of_each():
    seeds, instances = np.array([0, 3, 2**40]), np.array([5, 0, 7])
    together = jax.random.key_data(keys(seeds, instances, "initial weights", step=2))
    alone = [
        jax.random.key_data(key(int(s), int(i), "initial weights", step=2))
        for s, i in zip(seeds, instances, strict=True)
    ]
    assert np.array_equal(together, np.stack(alone))
    assert len({tuple(row) for row in np.asarray(together)}) == 3


SEEDS = np.array([0, 1, 37, 2**31, 2**32 + 5, 2**63 - 1])


@pytest.mark.parametrize("step", [0, 7, 2**32 - 1])
def test_keys_are_those_of_jax(step):
    instances = np.array([0, 5, 2**20, 1, 3, 2**32 - 1])
    found = key_data(SEEDS, instances, "initial weights", step)
    purpose = zlib.crc32(b"initial weights")
    for row, seed, instance in zip(found, SEEDS, instances, strict=True):
        with double_precision():
            expected = jax.random.key(int(seed), impl="threefry2x32")
            for number in (instance, purpose, step):
                expected = jax.random.fold_in(expected, np.uint32(number))
        assert np.array_equal(row, jax.random.key_data(expected))


@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (0, 2), (33,)])
def test_uniform_numbers_are_those_of_jax(shape):
    data = key_data(SEEDS, np.arange(len(SEEDS)), "numbers")
    found = unit_interval((data[:, 0], data[:, 1]), shape)
    with double_precision():
        expected = [
            jax.random.uniform(one, shape, "float64") for one in jax.random.wrap_key_data(data)
        ]
    assert np.array_equal(found, np.stack(expected))


def test_numbers_are_folded_into_one_key_as_into_many():
    data = key_data(SEEDS, np.arange(len(SEEDS)), "numbers")
    together = fold_in((data[:, 0], data[:, 1]), 3)
    alone = [fold_in((row[0], row[1]), 3) for row in data]
    assert np.array_equal(np.stack(together, 1), alone)
