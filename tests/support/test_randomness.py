import pickle
import random
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.support.randomness import (
    fold_in,
    generator,
    key,
    key_data,
    keys,
    seeded,
    unit_interval,
)
from attractor.support.threads import in_threads, use_threads


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


def drawn():
    """Numbers of the generators that a process shares."""
    return random.random(), *np.random.normal(size=3), random.gauss(0, 1)


def states():
    bits = np.random.get_bit_generator()
    return random.getstate(), pickle.dumps(np.random.get_state(legacy=False)), bits


@pytest.fixture
def another_generator():
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(5))
    yield
    np.random.set_bit_generator(before)


def test_numbers_of_users_code_follow_from_their_names_alone():
    found = []
    for names in [(3, 1, 7), (3, 1, 7), (3, 1, 8), (3, 17), (4, 1, 7), (3, 1, 7)]:
        random.seed(len(found)), np.random.seed(len(found))
        with seeded(*names, purpose="a test"):
            found.append(drawn())
    assert found[0] == found[1] == found[5] and len({*found}) == 4
    assert found[0][:2] == pytest.approx((0.78295283562, 0.57933326410))  # as in any other process
    with seeded(3, purpose="a test") as seed:
        first = drawn()
        seed(1, 7)
        assert drawn() == found[0]
        seed()
        assert drawn() == first
    with seeded(3, 1, 7, purpose="another"):
        assert drawn()[0] != found[0][0]


@pytest.mark.parametrize("raised", [None, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("kind", ["as it is", "another"])
def test_shared_generators_are_as_they_were(request, raised, kind):
    if kind == "another":
        request.getfixturevalue("another_generator")
    np.random.normal(), random.gauss(0, 1)  # of which a second one waits
    before = states()

    def block():
        with seeded(0, purpose="a test"):
            numbers = drawn()
            with seeded(1, purpose="a test"):
                assert drawn() != numbers
            after = drawn()
            np.random.seed(3)
            np.random.set_bit_generator(np.random.SFC64(1))
            if raised:
                raise raised
        return numbers, after

    if raised:
        with pytest.raises(raised):
            block()
    else:
        assert block() == block()
    assert states() == before


def test_threads_wait_for_each_other():
    def draw(number):
        with seeded(number, purpose="a test"):
            return [(drawn(), time.sleep(1e-4)) for _ in range(20)]

    numbers = [*range(8)] * 4
    alone = {number: draw(number) for number in range(8)}
    before = states()
    with ThreadPoolExecutor(8) as pool:
        for number, found in zip(numbers, pool.map(draw, numbers), strict=True):
            assert found == alone[number]
    with seeded(0, purpose="around"), use_threads(4):  # threads of a block do not wait for it
        for number, found in in_threads(draw, range(8)):
            assert found == alone[number]
    assert states() == before


def test_code_that_is_not_alone_may_start_threads_of_its_own():
    def nested():
        with seeded(5, purpose="a test"):
            return drawn()

    with seeded(0, purpose="a test", alone=False), ThreadPoolExecutor(1) as pool:
        assert pool.submit(nested).result(timeout=20) == nested()
