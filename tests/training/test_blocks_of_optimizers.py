"""A trial's numbers do not depend on its neighbors, whatever path of the code those need."""

import numpy as np
import pytest

from attractor.attention import LinearHead
from attractor.tokens import Tokens
from attractor.training import (
    adam,
    greedy_coordinate_descent,
    mirror_descent,
    momentum,
    muon,
    polyak_step,
    schatten_mirror_descent,
    sign_descent,
    spectral_descent,
    train,
)


@pytest.fixture(scope="module")
def neighbors():
    """A dense data set beside one of one-hot tokens, whose gradients span many scales."""
    random = np.random.default_rng(0)
    keys = np.stack([random.normal(size=(3, 4, 5)), np.eye(5)[random.integers(5, size=(3, 4))]])
    queries = np.stack([random.normal(size=(3, 5)), np.eye(5)[[0, 1, 2]]])
    start = np.stack([random.normal(size=(5, 5)), 300 * random.normal(size=(5, 5))])
    return Tokens(keys, queries, np.tile([1.0, -1.0, 1.0], (2, 1))), start


@pytest.mark.parametrize(
    "optimizer",
    [
        sign_descent(0.1),
        adam(0.1),
        momentum(0.1),
        muon(0.1),
        spectral_descent(0.1),
        greedy_coordinate_descent(0.1),
        mirror_descent(0.1, p=1.5),
        schatten_mirror_descent(0.1, p=3),
        polyak_step(),
    ],
    ids=lambda optimizer: optimizer.name,
)
def test_a_trial_alone_has_the_bits_it_has_among_others(neighbors, optimizer):
    tokens, start = neighbors
    head = LinearHead([0.3, -1.0, 0.5, 0.2, -0.4])
    together = train(tokens, head, optimizer, steps=12, initial=start, record=range(13))
    for place in (0, 1):
        one = slice(place, place + 1)
        alone = train(tokens[one], head, optimizer, steps=12, initial=start[one], record=range(13))
        np.testing.assert_array_equal(alone.data["W"][0], together.data["W"][place])
        np.testing.assert_array_equal(alone.data["log_time"][0], together.data["log_time"][place])
    moved = np.abs(together.data["W"].isel(step=-1) - together.data["W"].isel(step=0))
    assert (moved[0] > 0).any()  # the other one is saturated, and rests where steps are raw
