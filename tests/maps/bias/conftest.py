import pytest
import runs
from sizes import drawn


@pytest.fixture
def data():
    return drawn(runs.EIGHT)


@pytest.fixture
def methods():
    return runs.bias_methods()


@pytest.fixture
def matrix():
    return runs.bias_matrix()
