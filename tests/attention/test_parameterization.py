import jax.numpy as jnp
import numpy as np
import pytest

from attractor.attention import AttentionMatrix, attention_rows, get_parameterization
from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius
from attractor.precision import double_precision
from attractor.tokens import Tokens


def test_scores_are_those_of_the_tokens(rng):
    tokens = Tokens(rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 5, 6)), np.ones((3, 5)))
    W = rng.normal(size=(2, 6))
    with double_precision():
        found = AttentionMatrix().scores(jnp.asarray(W), attention_rows(tokens))
    np.testing.assert_allclose(found, tokens.scores(W), atol=1e-14)


def test_the_matrix_stands_for_itself(rng):
    W = rng.normal(size=(2, 3))
    parameterization = get_parameterization("W")
    assert parameterization.effective_matrix(parameterization.from_matrix(W)) is W
    assert parameterization.effective_geometry(Frobenius()) == Frobenius()


def test_unknown_names_are_refused():
    with pytest.raises(InvalidInputError, match="Known: W"):
        get_parameterization("low rank")
