"""The directional Bregman divergence, to full relative accuracy however small it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from attractor.geometry import Frobenius, Geometry, Lp, Schatten, get_geometry, has_norm_of
from attractor.margin.extended import two_product
from attractor.precision import as_real

_SERIES_TERMS = 16
_SERIES_REACH = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_QUADRATURE_REACH = 0.05
"""A step this small beside the least singular value is integrated to rounding by six nodes."""


def directional_bregman_divergence(
    W: Float[np.ndarray, "batch d e"], solution: Float[np.ndarray, "d e"], geometry: Geometry | str
) -> Float[np.ndarray, "batch"]:
    """``D = 1 - <grad psi(b), a>`` with ``a = W*/||W*||`` and ``b = W/||W||``.

    It is the Bregman divergence of ``psi = ||.||^p / p`` from the direction of W to that of the
    solution: 0 where they agree, about 1 for a random W, at most 2, and not symmetric unless
    p = 2, where it is one minus the correlation. With the entrywise norms
    ``D = 1 - sum_ij sign(b_ij) |b_ij|^(p-1) a_ij``; with the Schatten norms the power is taken
    of the singular values.

    That formula loses every digit below 1e-16. A sum of Bregman divergences of entries (or of
    singular values), none of them negative, is evaluated in its place, at the exact difference of
    the two directions: errors are a few roundings of D, down to D of 1e-30. Where a Schatten norm
    meets singular values below ``||a - b||``, relative errors are about ``1e-15 / ||a - b||``.

    Args:
        W: Matrices, of any scale; those that are zero or not finite give NaN.
        solution: The matrix ``W*``, which is not zero.
        geometry: The norm; NaN where its mirror map does not exist (p = 1 and p = inf).

    Source: *Optimizing Attention with Mirror Descent* (arXiv 2410.14581), the divergence plotted.
    """
    geometry = get_geometry(geometry)
    solution = as_real("solution", solution, ("d", "e"))
    W = as_real("W", W, ("batch", *solution.shape))
    usable = np.isfinite(W).all((-1, -2)) & (W != 0).any((-1, -2))
    divergence = np.full(len(W), np.nan)
    if not (np.isfinite(solution).all() and np.any(solution)) or not usable.any():
        return divergence
    try:
        geometry.mirror_map(solution)
    except NotImplementedError:
        return divergence
    own, other = _scaled_by_power_of_two(W[usable]), _scaled_by_power_of_two(solution)
    if geometry == Frobenius():
        geometry = Lp(2)
    if has_norm_of(geometry, Lp):
        divergence[usable] = _divergence(own, other, geometry, _entrywise)
    elif has_norm_of(geometry, Schatten):
        divergence[usable] = _divergence(own, other, geometry, _spectral)
    else:
        unit = own / geometry.norm(own)[:, None, None]
        inner = (geometry.mirror_map(unit) * (other / geometry.norm(other))).sum((-1, -2))
        divergence[usable] = 1 - inner
    return divergence


def _divergence(
    own: np.ndarray,
    other: np.ndarray,
    geometry: Lp | Schatten,
    bregman: Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray],
) -> np.ndarray:
    p, norm = geometry.p, geometry.norm(own)
    high, low = two_product((norm / geometry.norm(other))[:, None, None], other)
    step = (high - own) + low  # to the solution at the length of W, exact where the two are close
    value = bregman(own, step, norm, p)
    unit = own / norm[:, None, None]
    along = (geometry.mirror_map(unit) * step).sum((-1, -2)) / norm
    # The lengths agree to rounding only; ``excess`` is by how much, and D forgets it.
    excess = along + value
    return value + excess * (along - (1 + along) * (p + 1) * excess / 2)


def _entrywise(own: np.ndarray, step: np.ndarray, norm: np.ndarray, p: float) -> np.ndarray:
    """``psi(W + step) - psi(W) - <grad psi(W), step>``, over ``||W||^p``."""
    scale = norm[:, None, None]
    return _scalar_terms(own / scale, step / scale, p).sum((-1, -2))


def _scalar_terms(b: np.ndarray, step: np.ndarray, p: float) -> np.ndarray:
    """``|b + step|^p / p - |b|^p / p - sign(b) |b|^(p-1) step``, never negative."""
    size = np.abs(b)
    near = np.abs(step) * p <= _SERIES_REACH * size
    ratio = np.divide(step, b, out=np.zeros_like(step), where=near & (size > 0))
    term = (p - 1) / 2 * ratio**2
    series = term
    for k in range(2, _SERIES_TERMS):
        term = term * ((p - k) / (k + 1) * ratio)
        series = series + term
    slope = np.sign(b) * size ** (p - 1)
    plain = np.abs(b + step) ** p / p + (1 - 1 / p) * size**p - slope * (b + step)
    return np.where(near, size**p * series, np.maximum(plain, 0))


def _spectral(own: np.ndarray, step: np.ndarray, norm: np.ndarray, p: float) -> np.ndarray:
    """The same for ``psi = sum_i sigma_i^p / p``."""
    own, step = own / norm[:, None, None], step / norm[:, None, None]
    least = np.linalg.svd(own, compute_uv=False)[:, -1]
    smooth = np.linalg.norm(step, axis=(-1, -2)) <= _QUADRATURE_REACH * least
    own, step = _padded_to_square(own), _padded_to_square(step)
    value = np.empty(len(own))
    value[smooth] = _integrated(own[smooth], step[smooth], p)
    value[~smooth] = _over_pairs(own[~smooth], own[~smooth] + step[~smooth], p)
    return value


def _integrated(own: np.ndarray, step: np.ndarray, p: float) -> np.ndarray:
    """``int_0^1 (1 - t) <step, Hess psi(W + t step) step> dt``, for steps that keep the rank."""
    total = np.zeros(len(own))
    for node, weight in zip((_NODES + 1) / 2, _WEIGHTS / 2, strict=True):
        total += weight * (1 - node) * _curvature(own + node * step, step, p)
    return total


def _curvature(W: np.ndarray, step: np.ndarray, p: float) -> np.ndarray:
    """``<step, Hess psi(W) step>`` from divided differences of ``sign(s) |s|^(p-1)``."""
    U, s, V = np.linalg.svd(W)
    turned = np.swapaxes(U, -1, -2) @ step @ np.swapaxes(V, -1, -2)
    mirrored = np.swapaxes(turned, -1, -2)
    larger = np.maximum(s[:, :, None], s[:, None, :])
    smaller = np.minimum(s[:, :, None], s[:, None, :])
    present = larger > 1e-14 * s[:, :1, None]
    larger = np.where(present, larger, 1.0)
    ratio = np.where(present, smaller / larger, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        falling = np.expm1((p - 1) * np.log(ratio)) / (ratio - 1)
    falling = np.where(ratio == 1, p - 1, falling)
    rising = (1 + ratio ** (p - 1)) / (1 + ratio)
    symmetric, antisymmetric = (turned + mirrored) / 2, (turned - mirrored) / 2
    pairs = larger ** (p - 2) * (falling * symmetric**2 + rising * antisymmetric**2)
    return np.where(present, pairs, 0).sum((-1, -2))


def _over_pairs(own: np.ndarray, other: np.ndarray, p: float) -> np.ndarray:
    """``sum_ij <u_i, v_j>^2 d(lambda_i, mu_j)`` over eigenvectors of the Hermitian dilations."""
    U, s, V = np.linalg.svd(other)
    X, t, Y = np.linalg.svd(own)
    left = np.swapaxes(U, -1, -2) @ X
    right = V @ np.swapaxes(Y, -1, -2)
    s, t = np.broadcast_arrays(s[:, :, None], t[:, None, :])
    same = ((left + right) / 2) ** 2 * _scalar_terms(t, s - t, p)
    opposite = ((left - right) / 2) ** 2 * _scalar_terms(-t, s + t, p)
    return (same + opposite).sum((-1, -2))


def _padded_to_square(W: np.ndarray) -> np.ndarray:
    size = max(W.shape[-2:])
    return np.pad(W, ((0, 0), (0, size - W.shape[-2]), (0, size - W.shape[-1])))


def _scaled_by_power_of_two(W: np.ndarray) -> np.ndarray:
    """Divides by a power of two, which rounds nothing, so that the largest entry is about one."""
    exponent = np.frexp(np.abs(W).max((-1, -2), keepdims=True))[1]
    return np.ldexp(W, -exponent)
