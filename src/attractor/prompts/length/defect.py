"""The distance of attention over infinitely many tokens from affine, of tokens not Gaussian."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from attractor.prompts.head import AttentionHead
from attractor.prompts.length.affine import AffineLimit
from attractor.prompts.length.moments import moments_of, sampled_points
from attractor.prompts.length.scales import check_queries
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.gaussian import Gaussian
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed, generator

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
