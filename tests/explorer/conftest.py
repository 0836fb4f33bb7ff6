import pytest

import attractor as at


@pytest.fixture
def flat():
    """Two sequences of three and two tokens in the plane, for a prompt, with its head."""
    keys = [[[0.9, 1.0], [-1.1, 0.4], [0.2, -0.9]], [[1.3, 0.2], [-0.4, -1.2], [0, 0]]]
    mask = [[True, True, True], [True, True, False]]
    return at.Tokens.prompt_vector(keys, labels=[1, -1], mask=mask), at.LinearHead([0.5, -1.0])


@pytest.fixture
def deep():
    """Two sequences of three tokens in R^4 with queries in R^3, and their head."""
    tokens, head = at.datasets.unit_tokens(2, 3, 4, seeds=[3])
    queries = tokens.queries[0, ..., :3]
    return at.Tokens(tokens.keys[0], queries, tokens.labels[0]), at.LinearHead(head.weight[0])
