"""Rows that count differently, against the same rows repeated."""

import numpy as np
import pytest

from attractor import (
    LinearHead,
    Tokens,
    Trajectory,
    polyak_step,
    regularization_path,
    sign_descent,
    train,
)
from attractor.files import save_tokens
from attractor.support.errors import InvalidInputError

TIMES = [1, 3, 2]


def data(repeated):
    random = np.random.default_rng(3)
    keys, labels = random.standard_normal((3, 4, 3)), np.array([1.0, -1.0, 1.0])
    queries = random.standard_normal((3, 3))
    head = LinearHead(random.standard_normal(3))
    if repeated:
        arrays = (np.repeat(array, TIMES, axis=0) for array in (keys, queries, labels))
        return Tokens(*arrays), head
    return Tokens(keys, queries, labels, weights=TIMES), head


@pytest.mark.long
def test_weights_count_as_repetitions():
    weighted, repeated = (
        train(*data(times), sign_descent(0.1), steps=20, initial=np.eye(3))
        for times in (False, True)
    )
    assert np.allclose(weighted.W(), repeated.W(), rtol=1e-12)
    assert np.allclose(weighted.data["loss"], repeated.data["loss"], rtol=1e-12)


def test_weights_are_kept_in_files_or_refused(tmp_path):
    tokens, head = data(False)
    run = train(tokens, head, sign_descent(0.1), steps=3)
    run.save(tmp_path / "run.nc")
    assert np.array_equal(Trajectory.load(tmp_path / "run.nc").tokens.weights, tokens.weights)
    with pytest.raises(InvalidInputError, match="weights"):
        save_tokens(tmp_path / "tokens.npz", tokens, head)


def test_what_does_not_know_weights_refuses_them():
    tokens, head = data(False)
    with pytest.raises(InvalidInputError, match="weights"):
        train(tokens, head, polyak_step(), steps=3)
    with pytest.raises(InvalidInputError, match="weights"):
        regularization_path(tokens, head)
