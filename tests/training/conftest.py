"""Data of one shape for every test, so that training is compiled once."""

import logging
from pathlib import Path

import jax
import numpy as np
import pytest

from attractor.attention import LinearHead
from attractor.tokens import Tokens

ARRAYS = Path(__file__).parents[1] / "data" / "unit_tokens_6_8_10.npz"


@pytest.fixture(scope="session")
def unit_tokens():
    """Function giving the first data sets of unit tokens with their heads."""
    arrays = np.load(ARRAYS)

    def first(instances):
        chosen = slice(0, instances)
        return (
            Tokens(arrays["keys"][chosen], arrays["queries"][chosen], arrays["labels"][chosen]),
            LinearHead(arrays["v"][chosen]),
        )

    return first


@pytest.fixture
def compiled(caplog):
    """Names of the programs that JAX compiled so far in a test."""
    before = jax.config.jax_log_compiles
    jax.config.update("jax_log_compiles", True)

    def names():
        texts = [r.getMessage() for r in caplog.records if r.name.startswith("jax")]
        return [text.split()[1] for text in texts if text.startswith("Compiling ")]

    with caplog.at_level(logging.WARNING, logger="jax"):
        yield names
    jax.config.update("jax_log_compiles", before)
