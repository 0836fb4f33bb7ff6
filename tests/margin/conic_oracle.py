"""Margin problems by cvxpy and Clarabel at tight tolerance, in norms that are cone programs."""

import warnings

import cvxpy as cp
import numpy as np

from attractor.margin import MarginProblem

KINDS = 8


def random_small_problem(seed):
    """A feasible problem of up to 8 constraints on a matrix of up to 4 x 4.

    Kinds take turns: plain; shared right vectors; repeated constraints; all on one line; general
    bounds; equalities among them; homogeneous equalities; bounds of one and zero.
    """
    rng = np.random.default_rng(seed)
    d, e, m = int(rng.integers(1, 5)), int(rng.integers(1, 5)), int(rng.integers(1, 9))
    kind = seed % KINDS
    a, b, target = rng.normal(size=(m, d)), rng.normal(size=(m, e)), rng.normal(size=(d, e))
    a, b = of_kind(kind, a, b, rng)
    equality = rng.random(m) < 0.4 if kind in (5, 6) else np.zeros(m, dtype=bool)
    if kind == 6:  # the target meets the equalities
        images = b @ target.T
        off = (a * images).sum(-1, keepdims=True) / (images**2).sum(-1, keepdims=True)
        a = np.where(equality[:, None] & (d > 1), a - off * images, a)
        a[equality & (d == 1)] = 0  # and not the rounding of zero
    margins = np.einsum("jd,de,je->j", a, target, b)
    if kind in (4, 5):
        bounds = margins - np.where(equality, 0, rng.exponential(size=m))
        return MarginProblem(a, b, bounds, equality)
    # Every inequality is turned and scaled until the target has a margin between one and three.
    factor = rng.uniform(1, 3, size=m) / np.where(equality, 1, margins)
    a = np.where(equality[:, None], a, a * factor[:, None])
    free = equality | (rng.random(m) < (0.4 if kind == 7 else 0))
    return MarginProblem(a, b, np.where(free, 0.0, 1.0), equality)


def of_kind(kind, a, b, rng):
    """Left and right vectors with shared right ones, with copies, or all on one line."""
    m = len(a)
    if kind == 1:
        b = b[rng.integers(0, min(2, m), size=m)]
    if kind == 2:
        copies = rng.integers(0, m, size=m)
        a, b = a[copies], b[copies]
    if kind == 3:
        a = rng.normal(size=(m, 1)) * a[0]
    return a, b


def conic_value(problem, objective):
    """The smallest value of a convex function of W, by an interior-point method."""
    W = cp.Variable(problem.shape)
    rows = (problem.left[:, :, None] * problem.right[:, None, :]).reshape(len(problem.left), -1)
    margins = rows @ cp.vec(W, order="C")
    held, asked = np.flatnonzero(problem.equality), np.flatnonzero(~problem.equality)
    constraints = []
    if asked.size:
        constraints.append(margins[asked] >= problem.bounds[asked])
    if held.size:
        constraints.append(margins[held] == problem.bounds[held])
    value, more = objective(W)
    model = cp.Problem(cp.Minimize(value), constraints + more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is asked for more than it promises
        model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert model.status in ("optimal", "optimal_inaccurate")
    return model.value


def entrywise(p):
    """``||W||_p`` over the entries."""
    return lambda W: (cp.pnorm(cp.vec(W, order="C"), p), [])


def frobenius(W):
    """``||W||_F``."""
    return cp.norm(W, "fro"), []


def nuclear(W):
    """The sum of the singular values."""
    return cp.normNuc(W), []


def spectral(W):
    """The largest singular value."""
    return cp.sigma_max(W), []


def squared_schatten_4(W):
    """The square of the Schatten norm with p = 4: ``||Y||_F`` of the least ``Y >= W^T W``."""
    Y = cp.Variable((W.shape[1], W.shape[1]), symmetric=True)
    block = cp.bmat([[Y, W.T], [W, np.eye(W.shape[0])]])
    return cp.norm(Y, "fro"), [block >> 0]
