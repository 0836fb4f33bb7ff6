import jax
import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.randomness import generator, key, keys


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
