"""The affine map that attention over Gaussian tokens is, and the distance from it of other laws."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from attractor.prompts.finite_length.squared_errors import covariance_factor
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.arithmetic import checked
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.empirical import Empirical
from attractor.prompts.measures.gaussian import Gaussian
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64
from attractor.support.randomness import check_seed, generator


def gaussian_of(argument: str, law: Measure) -> Gaussian:
    """Returns the Gaussian law of the same mean and covariance.

    Raises:
        InvalidInputError: If samples are prompts side by side.
    """
    if isinstance(law, Gaussian):
        return law
    points = sampled_points(argument, law)
    if points is not None:
        return moments_of(points)
    return Gaussian(np.asarray(law.mean), np.asarray(law.covariance))


def moments_of(points: Float[np.ndarray, "n d"]) -> Gaussian:
    """Returns the Gaussian law with the mean and covariance of points of equal weight."""
    mean = points.mean(0)
    centered = points - mean
    return Gaussian(mean, centered.T @ centered / len(points))


def sampled_points(argument: str, law: Measure) -> Float[np.ndarray, "n d"] | None:
    """The points of a sample from a law that is not known: those of ``Empirical`` without weights.

    With weights the points are all that there is, a law like any other: None.

    Raises:
        InvalidInputError: If samples are prompts side by side.
    """
    if not isinstance(law, Empirical):
        return None
    if law.points.ndim != 2:
        raise InvalidInputError(
            argument,
            "they are prompts side by side, not one sample",
            "Give Empirical(points) with points (n, d)",
        )
    return np.asarray(law.points) if law.weights is None else None


class AffineLimit(eqx.Module):
    """``z -> V m + V Gamma U z``: attention over infinitely many Gaussian tokens, as an object.

    It can replace a head: it takes queries with any leading axes, and is a pytree
    that works under ``jit``, ``grad`` and ``vmap``. For tokens that are not Gaussian it is the
    limit for those with their mean and covariance. Source: *Softmax as Linear Attention in the
    Large-Prompt Regime* (arXiv 2512.11784), attention over Gaussian tokens is affine.

    Attributes:
        matrix: ``V Gamma U``, ``(v, e)``.
        offset: ``V m``, ``(v,)``.
    """

    matrix: Float[Any, "v e"]
    offset: Float[Any, "v"]

    def __init__(self, head: AttentionHead, tokens: Measure) -> None:
        """Computes matrix and offset.

        Args:
            head: The head.
            tokens: The law of the tokens, of which mean and covariance alone matter.

        Raises:
            InvalidInputError: If the dimensions of the two differ.
        """
        check_kinds(head=(head, AttentionHead), tokens=(tokens, Measure))
        if tokens.dimension != head.token_dimension:
            raise InvalidInputError(
                "tokens",
                f"their dimension is {tokens.dimension}",
                f"Give {head.token_dimension}, the rows of the score matrix",
            )
        self.matrix = head.value_matrix @ tokens.covariance @ head.score_matrix
        self.offset = head.value_matrix @ tokens.mean

    def __call__(self, query: Float[Any, "*batch e"] | Any) -> Float[Any, "*batch v"]:
        """The output for queries.

        Args:
            query: ``z``, with any leading axes.

        Raises:
            InvalidInputError: If the last axis does not fit, or an entry is not finite.
        """
        query = checked("query", query, ("e",), batched=True)
        if query.shape[-1] != self.matrix.shape[1]:
            raise InvalidInputError(
                "query", f"the shape is {query.shape}", f"Give (..., {self.matrix.shape[1]})"
            )
        return query @ self.matrix.T + self.offset


class Scales(NamedTuple):
    """The spread of the values along the scores of each query and across.

    The expected squared error of the output is ``along E (ghat - s)^2 + across E sum_l p_l^2``.

    Attributes:
        deviation: Standard deviation ``s`` of the scores, ``sqrt(z^T U^T Gamma U z)``.
        along: ``|V Gamma U z|^2 / s^2``.
        across: ``tr(V Gamma V^T)`` less ``along``.
        output: Norm of the affine limit's output, ``|V m + V Gamma U z|``.
        horizon: ``||Gamma^(1/2) U Gamma_z^(1/2)||`` in the operator norm, one number.
    """

    deviation: Float[np.ndarray, "query"]
    along: Float[np.ndarray, "query"]
    across: Float[np.ndarray, "query"]
    output: Float[np.ndarray, "query"]
    horizon: float

    @classmethod
    def of(
        cls,
        head: AttentionHead,
        tokens: Gaussian,
        queries: Float[np.ndarray, "query e"],
        query_covariance: Float[np.ndarray, "e e"],
    ) -> Scales:
        """Computes them for Gaussian tokens.

        Raises:
            InvalidInputError: If dimensions do not fit, or a covariance is not finite.
        """
        queries = check_queries(head, queries)
        U, V = np.asarray(head.score_matrix), np.asarray(head.value_matrix)
        output = np.linalg.norm(AffineLimit(head, tokens)(queries), axis=-1)
        factor = covariance_factor(np.asarray(tokens.covariance), U.shape[0])
        scores = queries @ U.T @ factor
        deviation = np.linalg.norm(scores, axis=-1)
        direction = scores / np.where(deviation > 0, deviation, 1)[:, None]
        seen = V @ factor
        along = ((direction @ seen.T) ** 2).sum(-1)
        across = np.maximum((seen**2).sum() - along, 0)
        of_queries = covariance_factor(query_covariance, U.shape[1], "query_covariance")
        horizon = float(np.linalg.norm(factor.T @ U @ of_queries, 2))
        return cls(deviation, along, across, output, horizon)


def check_queries(head: AttentionHead, queries: ArrayLike) -> Float[np.ndarray, "query e"]:
    """Returns queries as float64, ``(m, e)`` for a head that takes queries in R^e.

    Raises:
        InvalidInputError: If they are not that, or there is none.
    """
    z = as_float64("queries", queries, largest=LARGEST)
    e = head.query_dimension
    if z.ndim != 2 or not len(z) or z.shape[1] != e:
        raise InvalidInputError(
            "queries", f"the shape is {z.shape}", f"Give (m, {e}), one at least"
        )
    return z


_FEWEST_EFFECTIVE = 10
"""The least effective sample size of a tilt of held-out tokens whose mean is used."""

_ENTRIES = 2**22


@dataclasses.dataclass(frozen=True, eq=False)
class NonGaussianDefect:
    """The tilted mean ``m_a`` of the tokens less ``m + Gamma a``, for ``a = U z`` of each query.

    No prompt is long enough for an error below it. It is zero for Gaussian tokens, and known
    without error for any law with a closed form.

    Attributes:
        along: ``a^T (m_a - m) / s^2 - 1``, the excess of the output along the scores, relative to
            the output for Gaussian tokens; NaN where scores do not vary.
        along_standard_error: Its standard error.
        output: ``|V (m_a - m - Gamma a)| / |V m + V Gamma a|``, its square less the mean bias of
            sampling; NaN where the affine limit is zero.
        output_standard_error: Root of that bias: smaller values of ``output`` are noise.
        effective_sample_size: ``1 / sum_l p_l^2`` of the held-out tokens; infinite for a law.
        resolved: Whether the sample is large enough: that size, and ``n exp(-s^2)`` for ``n``
            held-out tokens, are at least 10.
        held_out: Number of tokens held out; 0 for a law.
    """

    along: Float[np.ndarray, "query"]
    along_standard_error: Float[np.ndarray, "query"]
    output: Float[np.ndarray, "query"]
    output_standard_error: Float[np.ndarray, "query"]
    effective_sample_size: Float[np.ndarray, "query"]
    resolved: Bool[np.ndarray, "query"]
    held_out: int


def non_gaussian_defect(
    head: AttentionHead, tokens: Measure, queries: Float[ArrayLike, "query e"], *, seed: int = 0
) -> NonGaussianDefect:
    """Compares attention over infinitely many tokens with its affine limit.

    Of samples, mean and covariance are estimated on one half drawn at random, and the tilted mean
    on the other, so that neither sees the noise of the other; the bias of the tilted mean,
    ``-sum_l p_l^2 (x_l - m_a)`` at first order, is removed. Standard errors are those of the delta
    method, of both halves together.

    Args:
        head: The head.
        tokens: The law of the tokens; ``Empirical`` without weights is taken as a sample from an
            unknown law.
        queries: Queries ``z``, ``(m, e)``.
        seed: Names the halves.

    Raises:
        InvalidInputError: If shapes do not fit, samples are too few, or attention
            over infinitely many tokens does not exist for a query.
    """
    check_kinds(head=(head, AttentionHead), tokens=(tokens, Measure))
    seed = check_seed("seed", seed)
    z = check_queries(head, queries)
    points = sampled_points("tokens", tokens)
    if points is None:
        return _of_law(head, tokens, z)
    fewest = 2 * (points.shape[1] + 1)
    if len(points) < fewest:
        raise InvalidInputError(
            "tokens",
            f"there are {len(points)} of dimension {points.shape[1]}, too few for halves of them "
            "to have a covariance",
            f"Give at least {fewest}",
        )
    order = generator(seed, purpose="halves of sampled tokens").permutation(len(points))
    fitted, held_out = points[order[: len(points) // 2]], points[order[len(points) // 2 :]]
    size = max(1, _ENTRIES // len(held_out))
    parts = [
        _of_samples(head, fitted, held_out, z[start : start + size])
        for start in range(0, len(z), size)
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return NonGaussianDefect(*columns, held_out=len(held_out))  # pyright: ignore[reportCallIssue]


def _of_law(
    head: AttentionHead, tokens: Measure, queries: Float[np.ndarray, "query e"]
) -> NonGaussianDefect:
    limit = AffineLimit(head, tokens)
    directions = queries @ np.asarray(head.score_matrix).T
    mean, covariance = np.asarray(tokens.mean), np.asarray(tokens.covariance)
    straight = mean + directions @ covariance
    # Attention over Gaussian tokens is affine: the difference would be rounding.
    tilted = straight if isinstance(tokens, Gaussian) else tokens.tilted_mean(directions)
    excess = np.asarray(tilted) - straight
    variance = ((directions @ covariance) * directions).sum(-1)
    none = np.zeros(len(queries))
    return NonGaussianDefect(
        _ratio((excess * directions).sum(-1), variance),
        none,
        _ratio(
            np.linalg.norm(excess @ np.asarray(head.value_matrix).T, axis=-1),
            np.linalg.norm(limit(queries), axis=-1),
        ),
        none,
        np.full(len(queries), np.inf),
        variance > 0,
        0,
    )


def _of_samples(
    head: AttentionHead,
    fitted: Float[np.ndarray, "n d"],
    held_out: Float[np.ndarray, "n d"],
    queries: Float[np.ndarray, "query e"],
) -> tuple[np.ndarray, ...]:
    """All columns of the result but the last."""
    V = np.asarray(head.value_matrix)
    directions = queries @ np.asarray(head.score_matrix).T
    limit = AffineLimit(head, moments_of(fitted))
    mean = fitted.mean(0)
    scores, values = (fitted - mean) @ directions.T, (fitted - mean) @ V.T
    variance = (scores**2).mean(0)

    # The tilted mean of the other half, less its bias at first order, and its variance.
    own_scores, own_values = directions @ (held_out - mean).T, (held_out - mean) @ V.T
    weights = np.exp(own_scores - own_scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    squares = weights**2
    total = squares.sum(-1)
    tilted_score = (weights * own_scores).sum(-1)
    score_noise = (squares * (own_scores - tilted_score[:, None]) ** 2).sum(-1)
    tilted_score += (squares * own_scores).sum(-1) - total * tilted_score
    tilted_value = weights @ own_values
    cross = squares @ own_values
    value_noise = squares @ (own_values**2).sum(-1) - 2 * (cross * tilted_value).sum(-1)
    value_noise += total * (tilted_value**2).sum(-1)
    tilted_value += cross - total[:, None] * tilted_value

    # The fitted half adds the variances of its mean and covariance, by the delta method.
    gain = _ratio(tilted_score, variance)
    score_noise += (scores + gain * scores**2).var(0) / len(fitted)
    lifted = 1 + scores
    center = lifted.T @ values / len(fitted)
    spread = (lifted.T**2 @ (values**2).sum(-1)) / len(fitted) - (center**2).sum(-1)
    value_noise += spread / len(fitted)
    excess = ((tilted_value + mean @ V.T - limit(queries)) ** 2).sum(-1)
    norm = np.linalg.norm(limit(queries), axis=-1)
    enough = np.minimum(1 / total, len(held_out) * np.exp(-variance)) >= _FEWEST_EFFECTIVE
    return (
        gain - 1,
        _ratio(np.sqrt(score_noise), variance),
        _ratio(np.sqrt(np.maximum(excess - value_noise, 0)), norm),
        _ratio(np.sqrt(np.maximum(value_noise, 0)), norm),
        1 / total,
        enough & (variance > 0),
    )


def _ratio(
    number: Float[np.ndarray, "query"], scale: Float[np.ndarray, "query"]
) -> Float[np.ndarray, "query"]:
    """The quotient; NaN where the scale is zero."""
    return np.where(scale > 0, number / np.where(scale > 0, scale, 1), np.nan)
