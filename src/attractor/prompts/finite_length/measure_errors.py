"""Expected squared errors of a head on finite prompts whose tokens have any law, exactly.

For a query ``z`` the weights of the tokens depend on their scores ``a^T x`` alone, ``a = U z``.
With ``S`` the sum of the weights ``w = exp(a^T x)`` and ``S^-2 = int t exp(-t S) dt`` tokens are
independent under the integral, so that with ``xi = x - m`` about the tilted mean and
``phi(t) = E exp(-t w)``

    E || sum p V xi ||^2 = L int t E[w^2 ||V xi||^2 e^(-t w)] phi^(L-1) dt
                         + L (L-1) int t || E[w V xi e^(-t w)] ||^2 phi^(L-2) dt.

The averages over one token come from the law's moment generating function; see ``mellin``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.functions import check_queries
from attractor.prompts.finite_length.line import covariance_error
from attractor.prompts.finite_length.mellin import (
    Moments,
    Powers,
    PromptIntegral,
    generated,
    tilted_mean,
)
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.generating import ScoreLine
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64


class MeasureError(NamedTuple):
    """Expected squared differences between a prompt of ``L`` tokens and the infinite prompt.

    Attributes:
        output: ``E || V (m_hat - m_a) ||^2``.
        value_gradient: ``E || J_V - J_V,infinite ||_F^2`` of the derivative of the output in ``V``.
        score_gradient: ``E || J_U - J_U,infinite ||_F^2`` of that in ``U``, for tokens on a line;
            NaN for tokens of more dimensions.
        sum_of_squared_weights: ``E sum_l p_l^2``, one over the effective number of tokens.
    """

    output: Float[np.ndarray, "*shape"]
    value_gradient: Float[np.ndarray, "*shape"]
    score_gradient: Float[np.ndarray, "*shape"]
    sum_of_squared_weights: Float[np.ndarray, "*shape"]


def measure_error(
    measure: Measure,
    head: AttentionHead,
    query: Float[ArrayLike, "*batch e"],
    length: ArrayLike,
) -> MeasureError:
    """Computes the errors of a head on finite prompts of independent tokens of any law, exactly.

    It takes some tens of milliseconds a query, whatever the number of lengths; for an empirical
    law of 10,000 tokens, or where exponential moments end and prompts have 1e12 tokens, about half
    a second. Exact form, for any law, of what the concentration bounds of *Softmax as Linear
    Attention in the Large-Prompt Regime* (arXiv 2512.11784) are about.

    Args:
        measure: The law of the tokens: any of ``attractor.prompts``, however composed.
        head: The head.
        query: Queries ``z``, ``(*batch, e)``.
        length: Numbers of tokens ``L >= 1``; broadcasts against the batch of queries. Between whole
            numbers the result interpolates.

    Returns:
        The errors, of the shape to which the batch of queries and ``length`` broadcast, to a
        relative error below 1e-9 for scores of standard deviation up to 12. The score gradient of
        tokens with few values falls like ``exp(-4 s)`` where scores are ``+-s``: there it is known
        to 1e-6 only. Exponential moments of the law may end anywhere beyond ``U z``.

    Raises:
        InvalidInputError: If shapes do not fit, an entry is not finite, a length is below 1,
            attention over infinitely many tokens does not exist for a query, the law has no formula
            for its moment generating function, or scores spread so widely that rounding errors
            exceed 1e-6 of the result.

    Examples:
        >>> from attractor.prompts import AttentionHead, Rademacher, measure_error
        >>> signs = measure_error(Rademacher(1), AttentionHead([[1]], [[1]]), [2.0], [10, 1000])
        >>> signs.output.round(6)
        array([5.239e-03, 5.000e-06])
    """
    U, values, z, lengths = _checked(measure, head, query, length)
    identity = np.eye(len(U))

    def of(
        direction: Float[np.ndarray, "d"], lengths: Float[np.ndarray, "length"]
    ) -> Float[np.ndarray, "4 length"]:
        mean = tilted_mean(measure, direction)
        powers = Powers.of(measure, direction, mean, float(lengths.max()))
        (output, weights), (whole, _) = (
            _along(measure, ScoreLine(direction, projection, mean), powers, lengths)
            for projection in (values, identity)
        )
        on_line = np.full(len(lengths), np.nan)
        if len(direction) == 1:
            on_line = covariance_error(measure, float(direction[0]), lengths)
        return np.stack([output, len(values) * whole, (values**2).sum() * on_line, weights])

    output, value_gradient, score_gradient, weights = _for_each_query(z @ U.T, lengths, 4, of)
    return MeasureError(output, value_gradient, (z**2).sum(-1) * score_gradient, weights)


def measure_output_error(
    measure: Measure,
    head: AttentionHead,
    query: Float[ArrayLike, "*batch e"],
    length: ArrayLike,
) -> Float[np.ndarray, "..."]:
    """Returns the expected squared error of the output alone, at less than half the cost.

    Arguments and errors are those of ``measure_error``.
    """
    U, values, z, lengths = _checked(measure, head, query, length)

    def of(
        direction: Float[np.ndarray, "d"], lengths: Float[np.ndarray, "length"]
    ) -> Float[np.ndarray, "1 length"]:
        mean = tilted_mean(measure, direction)
        powers = Powers.of(measure, direction, mean, float(lengths.max()))
        return _along(measure, ScoreLine(direction, values, mean), powers, lengths)[0][None]

    (output,) = _for_each_query(z @ U.T, lengths, 1, of)
    return output


def _along(
    measure: Measure, line: ScoreLine, powers: Powers, lengths: Float[np.ndarray, "length"]
) -> tuple[Float[np.ndarray, "length"], Float[np.ndarray, "length"]]:
    """``E || P (m_hat - m) ||^2`` and ``E sum_l p_l^2``."""
    there, at_whole = (generated(measure, line, q) for q in (powers.q, powers.whole[:, None] + 0j))

    center = np.linalg.norm(line.projection @ line.center)  # a rounding error of f is one of this

    def moments(name: str, around: np.ndarray | float = 0.0) -> Moments:
        here, whole = (
            getattr(one, name).reshape(-1, *one.value.shape) for one in (there, at_whole)
        )
        return Moments(there.log_scale, here, at_whole.log_scale, whole[..., 0].real, around)

    # Between one token and two the averages are those of no prompt: they are interpolated.
    over_prompts = PromptIntegral.of(powers, moments("value"), np.maximum(lengths, 2.0))
    vector = powers.average(moments("vector", center * np.abs(there.value)), 1, vanishing=True)
    off_center = center * np.linalg.norm(there.vector, axis=0)
    square = powers.average(moments("square", off_center), 2)
    squared = (vector.values**2).sum(0)
    error = over_prompts(1, square.values[0]) + over_prompts(2, squared)
    rounding = over_prompts.rounding(1, square.values[0], square.rounding)
    rounding += over_prompts.rounding(2, squared, 2 * np.sqrt(squared) * vector.rounding)
    over_prompts.check(rounding, error)
    once = powers.average(moments("value"), 2)
    weights = over_prompts(1, once.values[0])
    over_prompts.check(over_prompts.rounding(1, once.values[0], once.rounding), weights)
    alone = float(at_whole.square[0, 0].real * np.exp(at_whole.log_scale[0]))
    share = np.maximum(2 - lengths, 0.0)
    return share * alone + (1 - share) * error, share + (1 - share) * weights


def _for_each_query(
    directions: Float[np.ndarray, "*batch d"],
    lengths: Float[np.ndarray, "..."],
    count: int,
    compute: Callable[[np.ndarray, np.ndarray], Float[np.ndarray, "value length"]],
) -> Float[np.ndarray, "value ..."]:
    """Computes some values for every pair, with one call for all lengths of a direction."""
    shape = np.broadcast_shapes(directions.shape[:-1], lengths.shape)
    flat = np.broadcast_to(directions, (*shape, directions.shape[-1])).reshape(
        -1, directions.shape[-1]
    )
    different, group = np.unique(flat, axis=0, return_inverse=True)
    wanted = np.broadcast_to(lengths, shape).ravel()
    found = np.empty((count, len(wanted)))
    for place, direction in enumerate(different):
        members = np.flatnonzero(group.ravel() == place)
        own, where = np.unique(wanted[members], return_inverse=True)
        found[:, members] = compute(direction, own)[:, where]
    return found.reshape(count, *shape)


def _checked(
    measure: Measure, head: AttentionHead, query: Float[ArrayLike, "*batch e"], length: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Score matrix, value matrix, queries and lengths, checked as ``measure_error`` says."""
    check_kinds(measure=(measure, Measure), head=(head, AttentionHead))
    U, V = (
        as_float64("head", one, largest=LARGEST) for one in (head.score_matrix, head.value_matrix)
    )
    if measure.dimension != len(U):
        raise InvalidInputError(
            "head",
            f"its score matrix is for tokens with {len(U)} entries",
            f"Give one with {measure.dimension} rows, the dimension of the measure",
        )
    z, lengths = check_queries(query, U.shape[1], length)
    measure.admissible(z @ U.T)
    return U, V, z, lengths
