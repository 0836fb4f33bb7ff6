"""The error of replacing a head by its affine limit."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from attractor.checks import check_kinds, naming
from attractor.prompt.finite_length import error_of_output
from attractor.prompt.finite_length.monte_carlo import check_prompts
from attractor.prompt.head import AttentionHead
from attractor.prompt.length.affine import AffineLimit
from attractor.prompt.length.defect import FEWEST_EFFECTIVE
from attractor.prompt.length.scales import check_queries
from attractor.prompt.measures.contract import Measure
from attractor.prompt.operator import output
from attractor.randomness import generator


@dataclasses.dataclass(frozen=True, eq=False)
class ReplacementError:
    """Errors of the output before and after a head is replaced by its affine limit.

    They are root-mean-square norms over prompts, one for each query, in units of the output.

    Attributes:
        before: Attention over sampled prompts less attention over infinitely many tokens.
        after: The affine limit less the same; zero for Gaussian tokens.
        change: Attention over the sampled prompts less the affine limit.
        exact_change: The same for Gaussian tokens of this mean and covariance, without sampling.
        before_standard_error: Standard error of ``before``, between prompts.
        change_standard_error: Likewise of ``change``.
        output: Norm of the output over infinitely many tokens.
        resolved: Whether sampling suffices: ``L exp(-s^2)`` is at least 10. Elsewhere
            prompts too rare to be drawn dominate, and sampled errors are too small.
    """

    before: Float[np.ndarray, "query"]
    after: Float[np.ndarray, "query"]
    change: Float[np.ndarray, "query"]
    exact_change: Float[np.ndarray, "query"]
    before_standard_error: Float[np.ndarray, "query"]
    change_standard_error: Float[np.ndarray, "query"]
    output: Float[np.ndarray, "query"]
    resolved: Bool[np.ndarray, "query"]


def replacement_error(
    head: AttentionHead,
    tokens: Measure,
    queries: Float[ArrayLike, "m e"],
    length: int,
    *,
    prompts: int = 100,
    seed: int = 0,
) -> ReplacementError:
    """Samples prompts, and compares attention over them with the affine limit.

    Args:
        head: The head.
        tokens: The law of the tokens. Prompts are drawn from the points of an ``Empirical`` with
            replacement, and attention over infinitely many tokens is that over all its points.
        queries: Queries ``z``, ``(m, e)``.
        length: Tokens of a prompt.
        prompts: Number of prompts to sample, at least 2.
        seed: Names the prompts.

    Raises:
        InvalidInputError: If shapes do not fit, a count is too small, a query has scores of a
            standard deviation beyond 32, or attention over infinitely many tokens does not exist.
    """
    check_kinds(head=(head, AttentionHead), tokens=(tokens, Measure))
    z = check_queries(head, queries)
    length, prompts = check_prompts(length, prompts, each=24.0 * len(z))
    limit = AffineLimit(head, tokens)(z)
    infinite = np.asarray(output(tokens, head, z))
    U, V = np.asarray(head.score_matrix), np.asarray(head.value_matrix)
    covariance = np.asarray(tokens.covariance)
    with naming(query="queries"):
        exact = error_of_output(covariance, U, V, z, length)
    variance = (((z @ U.T) @ covariance) * (z @ U.T)).sum(-1)

    seeds = generator(seed, purpose="prompts that meet the affine limit").integers(
        2**63, size=prompts
    )
    squares = np.empty((2, prompts, len(z)))
    for place, own in enumerate(seeds):
        prompt = np.asarray(tokens.sample(length, seed=int(own)))
        scores = z @ U.T @ prompt.T
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        sampled = weights @ (prompt @ V.T) / weights.sum(-1, keepdims=True)
        for kind, reference in enumerate((infinite, limit)):
            squares[kind, place] = ((sampled - reference) ** 2).sum(-1)
    before, change = np.sqrt(squares.mean(1))
    noise = squares.std(1, ddof=1) / np.sqrt(prompts)
    before_noise, change_noise = noise / np.maximum(2 * np.stack([before, change]), 1e-300)
    return ReplacementError(
        before,
        np.linalg.norm(limit - infinite, axis=-1),
        change,
        np.sqrt(exact),
        before_noise,
        change_noise,
        np.linalg.norm(infinite, axis=-1),
        length * np.exp(-variance) >= FEWEST_EFFECTIVE,
    )
