"""A geometry with its solver, both from outside of the library: all that it takes."""

import numpy as np
from scipy.optimize import linprog

from attractor.geometry import Geometry, register_geometry
from attractor.margin import register_methods


@register_geometry
class RowSums(Geometry):
    """The largest sum of absolute values in a row; its dual sums the largest entries of rows."""

    name, spelling = "row_sums", "row_sums"
    unique, unitarily_invariant = False, False

    @classmethod
    def from_name(cls, name):
        return cls() if name == cls.name else None

    @classmethod
    def examples(cls):
        return (cls(),)

    def norm(self, W):
        return W.__array_namespace__().max(abs(W).sum(-1), axis=-1)

    def dual_norm(self, G):
        return G.__array_namespace__().max(abs(G), axis=-1).sum(-1)

    def steepest_descent_direction(self, G):
        xp = G.__array_namespace__()
        largest = xp.arange(G.shape[-1]) == xp.argmax(abs(G), axis=-1)[..., None]
        return xp.where(largest, xp.sign(G), 0.0)

    def dual_norm_constant(self, rows, columns):
        return float(np.sqrt(rows))

    def norm_rounding(self, rows, columns):
        return 2.0**-52 * (rows + columns)


def by_linear_programming(task):
    """Matrices and multipliers from SciPy, instance by instance; infeasible ones get neither."""
    W, multipliers = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    d, e = task.W.shape[1:]
    rows = np.hstack([np.kron(np.eye(d), np.ones((1, 2 * e))), -np.ones((d, 1))])
    for i in range(len(W)):
        scaled = task.scaled.choose([i])
        products = np.einsum("md,me->mde", scaled.left[0], scaled.right[0])
        signed = np.stack([products, -products], -1).reshape(len(products), -1)
        signed = np.hstack([signed, np.zeros((len(products), 1))])  # the last one is the norm
        kept, equal = scaled.inequality[0], scaled.equality[0]
        found = linprog(
            np.eye(2 * d * e + 1)[-1],
            A_ub=np.vstack([-signed[kept], rows]),
            b_ub=np.concatenate([-scaled.bounds[0, kept], np.zeros(d)]),
            A_eq=signed[equal] if equal.any() else None,
            b_eq=scaled.bounds[0, equal] if equal.any() else None,
        )
        if found.status == 0:
            parts = found.x[:-1].reshape(d, e, 2)
            W[i] = parts[..., 0] - parts[..., 1]
            multipliers[i, kept] = -found.ineqlin.marginals[: kept.sum()]
            multipliers[i, equal] = found.eqlin.marginals if equal.any() else 0.0
    return W, multipliers


register_methods(RowSums, lambda _: (by_linear_programming,))
