"""Data of one shape for nearly every test, so that training is compiled once."""

from pathlib import Path

import numpy as np
import pytest
from sizes import USUAL, drawn

from attractor.attention import LinearHead
from attractor.tokens import Tokens

ARRAYS = Path(__file__).parents[1] / "data" / "unit_tokens_6_8_10.npz"


@pytest.fixture
def unit_tokens():
    """Function giving so many data sets of the usual size with their heads."""
    return lambda instances: drawn(USUAL._replace(instances=instances), seed=0)


@pytest.fixture(scope="session")
def published_tokens():
    """Function giving the first data sets of which numbers are published, with their heads."""
    arrays = np.load(ARRAYS)

    def first(instances):
        chosen = slice(0, instances)
        return (
            Tokens(arrays["keys"][chosen], arrays["queries"][chosen], arrays["labels"][chosen]),
            LinearHead(arrays["v"][chosen]),
        )

    return first
