import numpy as np
import pytest
import runs
from sizes import USUAL, drawn

import attractor as at


@pytest.fixture(scope="session")
def feasible():
    tokens, heads = drawn(USUAL)
    return tokens[0], at.LinearHead(heads.weight[0])


@pytest.fixture(scope="session")
def contradictory():
    """Sequence 2 asks for the opposite of sequence 1 in the same tokens; sequence 0 is harmless."""
    keys = np.array([[[0.0, 1], [0, -1]], [[1, 0], [-1, 0]], [[1, 0], [-1, 0]]])
    queries = np.array([[0.0, 1], [1, 0], [1, 0]])
    return at.Tokens(keys, queries, [1, 1, -1]), at.LinearHead([1.0, 1.0])


@pytest.fixture(scope="session")
def solved():
    def solve(tokens, head):
        problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
        return at.solve(problem, at.Frobenius())

    return solve


@pytest.fixture(scope="session")
def verdict():
    return runs.verdict(runs.trajectory)
