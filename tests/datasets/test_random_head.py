import numpy as np
import pytest

from attractor.prompts import random_head
from attractor.prompts.example import LAWS, LAWS as LAWS_OF_COMMAND
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize("samples", [None, 3000])
def test_scores_have_the_variance_said_and_the_seed_names_the_head(samples):
    head, tokens, queries = random_head(5, samples=samples, queries=40, seed=1)
    U = np.asarray(head.score_matrix)
    assert np.trace(U.T @ np.asarray(tokens.covariance) @ U) == pytest.approx(1.44)
    assert np.linalg.matrix_rank(U) == 4
    if samples is not None:
        assert tokens.points.shape == (3000, 5) and queries.points.shape == (40, 5)
    same, other = (random_head(5, samples=samples, seed=seed)[0] for seed in (1, 2))
    np.testing.assert_array_equal(same.score_matrix, head.score_matrix)
    assert (other.score_matrix != head.score_matrix).all()


@pytest.mark.parametrize("law", LAWS)
def test_every_law_gives_scores_of_that_variance(law):
    head, tokens, queries = random_head(5, law=law, seed=1)
    U = np.asarray(head.score_matrix)
    assert np.trace(U.T @ np.asarray(tokens.covariance) @ U) == pytest.approx(1.44)
    assert tokens.dimension == queries.dimension == 5
    assert (np.asarray(tokens.mean) != 0).all()


def test_laws_are_those_of_the_command_and_stand_beside_no_samples():
    assert LAWS_OF_COMMAND == LAWS
    with pytest.raises(InvalidInputError, match=r"^law: .*beside samples"):
        random_head(5, samples=30, law="mixture", seed=1)
    with pytest.raises(InvalidInputError, match=r"^law: .*mixture"):
        random_head(5, law="mixtures", seed=1)
