"""Data of one shape for every test, so that training is compiled once."""

from pathlib import Path

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
