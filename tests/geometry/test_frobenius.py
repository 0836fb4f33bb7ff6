import numpy as np

from attractor.geometry import Frobenius


def test_norm_is_numpys():
    W = np.random.default_rng(0).normal(size=(5, 3, 4))
    np.testing.assert_allclose(Frobenius().norm(W), np.linalg.norm(W, axis=(1, 2)), rtol=1e-15)


def test_distance_bound_holds_for_feasible_matrices():
    # One constraint W_11 >= 1: the solution is e1 e1^T, and every W with W_11 >= 1 is feasible.
    rng = np.random.default_rng(1)
    for _ in range(100):
        W = rng.normal(size=(2, 2)) * 0.1
        W[0, 0] = 1 + abs(W[0, 0])
        value = np.linalg.norm(W)
        gap = (value - 1) / value
        distance = np.linalg.norm(W - np.diag([1.0, 0.0]))
        assert distance <= Frobenius().distance_to_solution(value, gap) * (1 + 1e-12)


def test_no_part_of_a_direction_is_left_without_a_norm():
    found = Frobenius().steepest_descent_direction(np.array([[3.0, np.nan], [4.0, 0.0]]))
    assert np.isnan(found).all()
