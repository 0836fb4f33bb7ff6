import pytest

from attractor.datasets import unit_tokens
from attractor.maps.bias import Method, bias_matrix
from attractor.training import normalized_gradient_descent, sign_descent

STEPS = 400


@pytest.fixture(scope="session")
def data():
    return unit_tokens(3, 4, 5, seeds=8)


@pytest.fixture(scope="session")
def methods():
    per_factor = normalized_gradient_descent(0.3, per_factor=True)
    return (
        Method("normalized GD", normalized_gradient_descent(0.3)),
        Method("keys and queries", per_factor, "KQ"),
        Method("signs", sign_descent(0.1), steps=8 * STEPS),
    )


@pytest.fixture(scope="session")
def matrix(data, methods):
    return bias_matrix(*data, methods=methods, steps=STEPS)
