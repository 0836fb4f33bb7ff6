import numpy as np

from attractor.papers.mirror_descent.data import (
    normal_weights,
    random_case,
    random_data_sets,
    two_sequences,
)


def test_a_start_is_the_same_whatever_runs_beside_it():
    several, _ = random_data_sets([1, 2, 3])
    alone, _ = random_data_sets([3])
    together = normal_weights(several, 0, "p = 2")
    assert together.shape == (3, 1, 10, 10)
    np.testing.assert_array_equal(together[2:], normal_weights(alone, 0, "p = 2"))
    assert (together != normal_weights(several, 0, "p = 3")).all()
    assert (together != normal_weights(several, 1, "p = 2")).all()
    assert abs(together.std() - 1) < 0.1


def test_the_data_sets_are_those_of_the_papers_seeds():
    tokens, head = random_data_sets([1])
    scores = tokens.labels[0] * (tokens.keys[0] @ np.asarray(head.weight)[0])
    np.testing.assert_array_equal(tokens.labels[0, :, 0], [-1, -1, -1, -1, 1, 1])
    expected = [-0.040, -0.079, -0.092, 0.438, 0.288, 0.119, 0.349, -0.676]
    np.testing.assert_allclose(scores[0], expected, atol=6e-4)


def test_queries_of_the_two_sequences_are_their_first_tokens():
    tokens = two_sequences()
    np.testing.assert_array_equal(tokens.queries[:, 0], tokens.keys[:, 0])


def test_a_case_is_one_data_set():
    case = random_case(7)
    assert case.tokens.instances is None and case.head.weight.shape == (4,)
    np.testing.assert_allclose(np.linalg.norm(case.tokens.keys, axis=-1), 1, rtol=1e-6)
