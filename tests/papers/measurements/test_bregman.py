import numpy as np

from attractor.geometry import Lp
from attractor.papers.measurements.mirror_steps import divergences


def test_every_trial_is_held_against_its_own_solution(rng):
    W, solutions = rng.normal(size=(3, 5, 2, 4)), rng.normal(size=(3, 2, 4))
    p = 1.75
    found = divergences(W, solutions, Lp(p))
    assert found.shape == (3, 5)
    for i, j in np.ndindex(3, 5):
        b = W[i, j] / (np.abs(W[i, j]) ** p).sum() ** (1 / p)
        a = solutions[i] / (np.abs(solutions[i]) ** p).sum() ** (1 / p)
        expected = 1 - (np.sign(b) * np.abs(b) ** (p - 1) * a).sum()
        np.testing.assert_allclose(found[i, j], expected, rtol=1e-12)


def test_one_matrix_for_each_trial(rng):
    W, solutions = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3, 3))
    assert divergences(W, solutions, Lp(3)).shape == (2,)
    np.testing.assert_allclose(divergences(W, W, Lp(3)), 0, atol=1e-30)
    solutions[1] = np.nan
    assert np.isnan(divergences(W, solutions, Lp(3))).tolist() == [False, True]
