"""Small problems that several tests use."""

import warnings
from pathlib import Path

import numpy as np

from attractor.margin import MarginProblem
from attractor.margin.selection import Selection
from attractor.tokens import Tokens

STORED = Path(__file__).parents[1] / "data" / "unit_tokens_6_8_10.npz"


def unit(array):
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


def random_tokens(instances, n, T, d, seed=0):
    """Unit Gaussian tokens, and a random selection."""
    rng = np.random.default_rng(seed)
    tokens = Tokens(
        unit(rng.normal(size=(instances, n, T, d))), unit(rng.normal(size=(instances, n, d)))
    )
    return tokens, Selection.from_index(tokens, rng.integers(0, T, size=(instances, n)))


def random_problem(instances, n, T, d, seed=0):
    return MarginProblem.from_selection(*random_tokens(instances, n, T, d, seed))


def stored_tokens(instances=slice(0, 10)):
    """Data sets of seeds 0, 1, ... and the optimal tokens."""
    with np.load(STORED) as file:
        keys, queries, labels, v = (
            file[name][instances].astype(np.float64) for name in ("keys", "queries", "labels", "v")
        )
    tokens = Tokens(keys, queries, labels)
    scores = labels[:, :, None] * np.einsum("intd,id->int", keys, v)
    return tokens, Selection.from_index(tokens, scores.argmax(-1)), v


def thin_problem(margin, seed, m=60, d=20):
    """Constraints that a matrix of norm about ``1 / margin`` is needed for."""
    rng = np.random.default_rng(seed)
    direction = unit(rng.normal(size=d))
    rows = rng.normal(size=(m, d))
    rows = unit(rows - np.outer(rows @ direction, direction))
    rows = rows + margin * rng.uniform(1, 2, size=m)[:, None] * direction
    return MarginProblem(rows, np.ones((m, 1)))


def cvxpy_solution(problem):
    """W and value by an interior-point method, in the full space of matrices."""
    import cvxpy as cp

    W = cp.Variable(problem.shape)
    rows = (problem.left[:, :, None] * problem.right[:, None, :]).reshape(len(problem.left), -1)
    margins = rows @ cp.vec(W, order="C")
    held = problem.equality
    constraints = []
    if (~held).any():
        constraints.append(margins[np.flatnonzero(~held)] >= problem.bounds[~held])
    if held.any():
        constraints.append(margins[np.flatnonzero(held)] == problem.bounds[held])
    model = cp.Problem(cp.Minimize(cp.norm(W, "fro")), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is asked for more than it promises
        model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return W.value, model.value, model.status
