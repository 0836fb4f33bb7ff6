import numpy as np
import pytest

import attractor as at
from attractor.maps.basins import basin_map, basin_shares

STEP = at.normalized_gradient_descent(0.1)
"""One object, so that every test trains by the same compiled step."""


def scored(keys, scores):
    """Tokens in the plane of a prompt vector with given token scores, and the head for them."""
    keys = np.asarray(keys, dtype=float)
    ones = np.ones(len(keys))
    values = np.asarray(scores, dtype=float)[..., None]
    return at.Tokens(keys, ones[:, None], ones, values=values), at.LinearHead([1.0])


@pytest.fixture(scope="session")
def step():
    return STEP


@pytest.fixture(scope="session")
def make():
    return scored


@pytest.fixture(scope="session")
def three_tokens():
    """Token 0 is best; token 1 is nearly as good, and locally optimal."""
    return scored([[[-0.1, 1], [1, 0], [0, 0]]], [[1, 0.9, 0]])


@pytest.fixture(scope="session")
def two_rows():
    """The best token of the second row may be lost for good, though all non-optimal scores tie."""
    keys = [[[1, 0], [0, 0], [0, 0]], [[-2, 3], [0, 0], [-1, 0]]]
    return scored(keys, [[1, 0, 0], [1, 0, 0]])


@pytest.fixture(scope="session")
def plane_map(three_tokens):
    return basin_map(*three_tokens, STEP, parameterization="p", resolution=(14, 12))


@pytest.fixture(scope="session")
def shares(three_tokens):
    return basin_shares(*three_tokens, STEP, parameterization="p", starts=150, scale=2.0)


def unit_tokens_of(seed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((3, 4, 8))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    v = random.standard_normal(8)
    v /= np.linalg.norm(v)
    labels = np.sign(random.standard_normal(3))
    return at.Tokens(X, np.ones((3, 1)), labels), at.LinearHead(v)


@pytest.fixture(scope="session")
def unit_data_set():
    """Three sequences of four random unit tokens in R^8, by seed."""
    return unit_tokens_of
