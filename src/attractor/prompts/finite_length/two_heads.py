"""Exact averages over finite prompts of Gaussian tokens that two heads attend to at once.

Given a query the scores of two heads on a token are ``alpha^T g`` and ``beta^T g`` with a standard
normal ``g``, and their weights on the prompt are ``p`` and ``q``. Both denominators are integrals,

    E[ sum_l u_l^a v_l^b f(g_l) / (sum_l u_l  sum_l v_l) ]
        = L int int E[u^a v^b f e^(-s u - t v)] phi(s, t)^(L-1) ds dt,   phi = E e^(-s u - t v),

with ``u = exp(alpha^T g - |alpha|^2 / 2)`` and ``v`` likewise: the tokens are independent under
both. By parts every average over one token that matters is one of the ``N_ab = E[x^a y^b e^(-x -
y)]`` with ``x = s u`` and ``y = t v``, so that no small difference is ever taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import ArrayLike, Float
from numpy.lib.stride_tricks import sliding_window_view

from attractor.prompts.finite_length.functions import check_length
from attractor.prompts.finite_length.laplace import kernels
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64

LARGEST_PAIR_DEVIATION = 16.0
"""Largest score deviation of either head; beyond it there are too many times and nodes."""
_STEP = 0.25
_POWER = 3
_PRODUCTS = ((0, 0), (2, 0), (1, 1), (0, 2), (2, 1), (1, 2), (3, 1), (2, 2), (1, 3))
"""Powers of the weights of two heads whose joint averages are needed."""
_RARE = 38.0
"""Minus the logarithm of what is left out, relative to one over the length."""
_MARGIN = 2.0
_SYMMETRY = 1e-10
_MOST_STRIDES = 64
_BLOCK = 64
"""Times of either head whose averages are one product."""
_TOGETHER = 2**14
"""Kernels that are computed together."""
_NEARLY_HALF = 0.49
"""A ``phi`` below which ``1 - phi`` is above one half, whatever the rounding of both sums."""


class TwoHeadMoments(NamedTuple):
    """How two heads err together on a prompt, as a function of their scores and the length.

    With ``m = sum_l p_l g_l`` and ``m' = sum_l q_l g_l``, which are ``alpha`` and ``beta`` on an
    infinite prompt,

        E[(m - alpha) (m' - beta)^T] = shared I + first alpha alpha^T + second beta beta^T
                                       + outer alpha beta^T + swapped beta alpha^T.

    Attributes:
        shared: ``E sum_l p_l q_l``.
        first: The coefficient of ``alpha alpha^T``.
        second: The coefficient of ``beta beta^T``.
        outer: The coefficient of ``alpha beta^T``.
        swapped: The coefficient of ``beta alpha^T``.
    """

    shared: Float[np.ndarray, "*shape"]
    first: Float[np.ndarray, "*shape"]
    second: Float[np.ndarray, "*shape"]
    outer: Float[np.ndarray, "*shape"]
    swapped: Float[np.ndarray, "*shape"]


def two_head_moments(
    score_covariance: Float[ArrayLike, "*batch 2 2"], length: ArrayLike
) -> TwoHeadMoments:
    """Computes the averages of two heads over finite prompts of Gaussian tokens, exactly.

    Of one head twice the coefficients add up: ``first + second + outer + swapped`` is then its
    ``error_per_variance``, and ``shared`` its ``sum_of_squared_weights``. A head whose scores are
    zero averages the prompt.

    Args:
        score_covariance: The covariance of the two scores of a token, ``[[|alpha|^2, alpha^T
            beta], [alpha^T beta, |beta|^2]]``, positive semidefinite.
        length: Numbers of tokens ``L >= 1``; broadcasts against the batch.

    Returns:
        The averages, to 1e-12 in all.

    Raises:
        InvalidInputError: If a matrix is no covariance, scores have a standard deviation beyond
            16, or a length is below 1.
    """
    covariances, L = _checked(score_covariance, length)
    shape = np.broadcast_shapes(covariances.shape[:-2], L.shape)
    covariances = np.broadcast_to(covariances, (*shape, 2, 2)).reshape(-1, 2, 2)
    lengths = np.broadcast_to(L, shape).ravel()
    found = np.empty((5, len(lengths)))
    distinct, group = np.unique(covariances, axis=0, return_inverse=True)
    for number, covariance in enumerate(distinct):
        members = np.flatnonzero(group.ravel() == number)
        wanted, place = np.unique(lengths[members], return_inverse=True)
        found[:, members] = _moments(covariance, wanted)[:, place]
    return TwoHeadMoments(*found.reshape(5, *shape))


def along_scores(
    found: TwoHeadMoments, inner: Float[np.ndarray, "*batch 2 2"]
) -> Float[np.ndarray, "..."]:
    """All terms but that of the identity, under a bilinear form ``f``.

    Args:
        found: The moments of two heads.
        inner: ``[[f(alpha, alpha), f(alpha, beta)], [f(beta, alpha), f(beta, beta)]]``.
    """
    once = found.first * inner[..., 0, 0] + found.second * inner[..., 1, 1]
    return once + found.outer * inner[..., 0, 1] + found.swapped * inner[..., 1, 0]


def _checked(
    score_covariance: ArrayLike, length: ArrayLike
) -> tuple[Float[np.ndarray, "*batch 2 2"], Float[np.ndarray, "..."]]:
    name = "score_covariance"
    given = as_float64(name, score_covariance, largest=LARGEST)
    if given.shape[-2:] != (2, 2):
        raise InvalidInputError(name, f"the shape is {given.shape}", "Give (*batch, 2, 2)")
    first, second = given[..., 0, 0], given[..., 1, 1]
    scale = np.sqrt(np.maximum(first, 0) * np.maximum(second, 0))
    across = (given[..., 0, 1] + given[..., 1, 0]) / 2
    valid = (first >= 0) & (second >= 0) & (np.abs(across) <= scale * (1 + _SYMMETRY))
    valid &= np.abs(given[..., 0, 1] - given[..., 1, 0]) <= _SYMMETRY * scale
    if not valid.all():
        raise InvalidInputError(
            name, "one is not symmetric positive semidefinite", "Give covariances of two scores"
        )
    largest = math.sqrt(max(float(np.max(first, initial=0)), float(np.max(second, initial=0))))
    if largest > LARGEST_PAIR_DEVIATION:
        raise InvalidInputError(
            name,
            f"scores have a standard deviation of {largest:.4g}",
            f"Give at most {LARGEST_PAIR_DEVIATION:g}",
        )
    return given, check_length(length)


def _moments(
    covariance: Float[np.ndarray, "2 2"], L: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "value length"]:
    """The five averages for one pair of heads and increasing lengths."""
    a, b = np.sqrt(np.diag(covariance))
    if a < b:  # nodes serve the wider head
        return _moments(covariance[::-1, ::-1], L)[[0, 2, 1, 3, 4]]
    longer = L > 1
    if not longer.all():  # one token, which both heads attend to
        found = np.tile(np.array([1.0, 0.0, 0.0, 1.0, 0.0])[:, None], len(L))
        if longer.any():
            found[:, longer] = _moments(covariance, L[longer])
        return found
    slope = float(np.clip(covariance[0, 1] / a, -b, b)) if a else 0.0
    spread = math.sqrt(max(b**2 - slope**2, 0.0))
    g, stride = _nodes(float(a), slope, float(L.max()))
    weights = (g[1] - g[0]) * np.exp(-(g**2) / 2) / math.sqrt(2 * math.pi)
    log_s, masses = _stretched(_log_times(float(a), L))
    log_t = _log_times(float(b), L)
    y = _second(log_t - b**2 / 2, slope, spread, g, stride)
    wider = [
        _WiderHead.of(log_s[first : first + _BLOCK] - a**2 / 2, a * g, weights, masses[first:])
        for first in range(0, len(log_s), _BLOCK)
    ]
    found = np.zeros((5, len(L)))
    for first in range(0, len(log_t), _BLOCK):
        start, stop = _support(y[1, first])
        of_y = np.ascontiguousarray(y[:, first : first + _BLOCK, start:stop])
        for of_x in wider:
            if start < min(stop, of_x.stop):
                found += of_x.beside(of_y, start, L)
    return found * _STEP


class _WiderHead(NamedTuple):
    """Kernels of the wider head at some times that follow each other, times weights of the nodes.

    At late times ``e^-x`` is zero at all but the first nodes, and ``e^-y`` at others: most products
    are zero, and left out by blocks of times.

    Attributes:
        masses: Of the times.
        stop: The node after the last.
        below: ``E[1 - e^-x]``.
        powers: ``x^k e^-x``.
    """

    masses: Float[np.ndarray, "s"]
    stop: int
    below: Float[np.ndarray, "s"]
    powers: Float[np.ndarray, "power s node"]

    @classmethod
    def of(
        cls,
        log_times: Float[np.ndarray, "s"],
        log_values: Float[np.ndarray, "all"],
        weights: Float[np.ndarray, "all"],
        masses: Float[np.ndarray, "more"],
    ) -> _WiderHead:
        """Computes the kernels, from the logarithms of what their variable is a product of."""
        stop = _support(kernels(log_times[0] + log_values, 0)[1] * weights)[1]
        found = kernels(log_times[:, None] + log_values[:stop], _POWER) * weights[:stop]
        below = found[0].sum(axis=1) + weights[stop:].sum()
        return cls(masses[: len(log_times)], stop, below, found[1:])

    def beside(
        self, y: Float[np.ndarray, "kernel t node"], start: int, L: Float[np.ndarray, "length"]
    ) -> Float[np.ndarray, "value length"]:
        """The share of these times, and of some of the other head, in the five averages.

        Args:
            y: The kernels of the other head at the nodes where it has any.
            start: The first of these.
            L: The lengths.
        """
        end = min(self.stop, start + y.shape[2])
        x, y = self.powers[:, :, start:end], y[:, :, : end - start]
        n = {(i, j): x[i] @ y[j + 1].T for i, j in _PRODUCTS}
        phi = np.maximum(n[0, 0], 1e-300)
        log_phi = np.log(phi)
        if phi.max() > _NEARLY_HALF:
            plain = self.powers[0]
            outside = plain[:, :start].sum(axis=1) + plain[:, end:].sum(axis=1)
            below = (self.below + outside)[:, None] + x[0] @ y[0].T
            near = below < 0.5
            log_phi[near] = np.log1p(-below[near])
        of_one = [
            n[1, 1],
            n[3, 1] - 2 * n[2, 1],
            n[1, 3] - 2 * n[1, 2],
            n[2, 2],
            n[2, 2] - n[2, 1] - n[1, 2] + n[1, 1],
        ]
        found = np.zeros((5, len(L)))
        for place, length in enumerate(L):
            rest = length * np.exp(np.minimum((length - 2) * log_phi, 700.0)) * self.masses[:, None]
            one, two = rest * phi, (length - 1) * rest
            once = two * n[1, 1]
            found[:, place] = [np.vdot(each, one) for each in of_one]
            found[1:, place] += [
                np.vdot(n[2, 0], once),
                np.vdot(n[0, 2], once),
                np.vdot(n[2, 0] * n[0, 2], two),
                np.vdot(n[1, 1], once),
            ]
        return found


def _support(values: Float[np.ndarray, "node"]) -> tuple[int, int]:
    """The nodes between which values are not zero: the first, and the one after the last."""
    nodes = np.flatnonzero(values)
    return (int(nodes[0]), int(nodes[-1]) + 1) if len(nodes) else (0, 0)


def _log_times(deviation: float, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "time"]:
    """Nodes in the logarithm of the variable of one denominator.

    Every average is at most a multiple of ``E x = s`` at small ``s``, and next to nothing where
    all tokens of the shortest prompt have scores so low that it is that rare.
    """
    shortest = float(L.min())
    if shortest > 2 * _RARE:
        lowest = float(scipy.special.ndtri(2 * _RARE / shortest))
    else:
        lowest = math.sqrt(2 * _RARE / max(shortest - 1, 1.0)) + 0.5
    highest = deviation**2 / 2 + deviation * lowest + 5
    return np.arange(-_RARE - math.log(L.max()), highest + _STEP, _STEP)


def _stretched(
    log_times: Float[np.ndarray, "time"],
) -> tuple[Float[np.ndarray, "node"], Float[np.ndarray, "node"]]:
    """Fewer nodes over the same times, and their masses: the least come doubly exponentially.

    Where averages only fall like ``s`` itself few nodes are enough.
    """
    first, last = log_times[[0, -1]]
    near = first + _RARE - _MARGIN
    node = np.arange(near - math.log(_RARE - _MARGIN), last + _STEP, _STEP)
    stretch = np.exp(near - node)
    return node - stretch, _STEP * (1 + stretch)


def _nodes(a: float, slope: float, longest: float) -> tuple[Float[np.ndarray, "node"], int]:
    """Values of the first score over its deviation, and steps between them in one of ``log t``.

    The latter is zero where it is no whole number: the second score hardly varies with the first.
    """
    spacing = min(0.45, 0.25 / max(a, 1e-9))
    stride = math.ceil(_STEP / (abs(slope) * spacing)) if slope else _MOST_STRIDES + 1
    if stride > _MOST_STRIDES:
        stride = 0
    else:
        spacing = _STEP / (abs(slope) * stride)
    rarest = math.sqrt(2 * (3 * math.log(longest) + 40)) + 2 + 7 / max(a, 1e-9)
    last = min(_POWER * a + abs(slope) + 10, rarest)
    first = max(-10 - _POWER * max(-slope, 0.0), -rarest)
    return np.arange(first, last + spacing, spacing), stride


def _second(
    log_t: Float[np.ndarray, "time"],
    slope: float,
    spread: float,
    g: Float[np.ndarray, "node"],
    stride: int,
) -> Float[np.ndarray, "kernel time node"]:
    """The kernels of the second head, averaged over the part of its score that the first lacks."""
    if not stride:
        return _averaged(log_t[:, None] + slope * g, spread)
    # Times and nodes lie on one lattice, on which the kernels are computed once.
    ordered = slope * (g if slope > 0 else g[::-1])
    size = (len(log_t) - 1) * stride + len(g)
    lattice = log_t[0] + ordered[0] + _STEP / stride * np.arange(size)
    found = sliding_window_view(_averaged(lattice, spread), len(g), axis=1)[:, ::stride]
    return found if slope > 0 else found[..., ::-1]


def _averaged(log_y: Float[np.ndarray, "*point"], spread: float) -> Float[np.ndarray, "..."]:
    """``E k(log_y + spread g)`` of every kernel ``k``."""
    if spread == 0:
        return kernels(log_y, _POWER)
    spacing = min(0.45, 0.25 / max(spread, 1e-9))
    g = np.arange(-10.0, 10 + _POWER * spread + spacing, spacing)
    weights = spacing * np.exp(-(g**2) / 2) / math.sqrt(2 * math.pi)
    points, found = log_y.ravel(), np.zeros((_POWER + 2, log_y.size))
    count = max(1, _TOGETHER // log_y.size)
    for first in range(0, len(g), count):
        some = slice(first, first + count)
        found += weights[some] @ kernels(points + spread * g[some, None], _POWER)
    return found.reshape(-1, *log_y.shape)
