"""Linear attention on a prompt of finite length: its risk, optimum and limit; and ridge."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attractor.prompts.finite_length.functions import LARGEST_LENGTH
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks.infinite_prompts import (
    TaskArrays,
    TokenForms,
    limit_residual,
)
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import as_number, check_count, check_kinds, check_number, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_integers
from attractor.support.randomness import check_seed


def linear_attention_risk(task: RegressionTask, blocks: Blocks, length: float) -> Float[Any, ""]:
    """Risk of linear attention on a prompt of any length, exactly.

    Scores are divided by the length in place of the softmax, so that the prediction is
    ``sum_h V_h G U_h (x_q, 0)`` with the second moments ``G = (1/L) sum_l z_l z_l^T`` of the
    tokens. Given the weights ``L G`` is Wishart: with ``u = U (x_q, 0)`` and the last row ``v`` of
    each ``V``, ``2 R_L = 2 R_inf + (1/L) sum_{hk} E[(v_h^T Gamma v_k)(u_h^T Gamma u_k) +
    (v_h^T Gamma u_k)(u_h^T Gamma v_k)]``.

    Args:
        task: The law of prompts and queries.
        blocks: The heads; traced JAX arrays are welcome.
        length: Number of tokens of a prompt; ``math.inf`` gives the infinite risk.

    Returns:
        The risk, ``E (prediction - w^T x_q)^2 / 2``.

    Raises:
        InvalidInputError: If the length is not positive, or the blocks have another dimension than
            the task.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    check_length(length)
    flat = blocks.flat_heads(task.dimension)
    return linear_attention_risk_of(TaskArrays.of(task), flat, 1 / length)


def linear_attention_risk_of(
    law: TaskArrays, blocks: Blocks, inverse_length: Float[Any, ""]
) -> Float[Any, ""]:
    """The same of a law that may be traced, and blocks with one axis of heads."""
    forms = TokenForms(law, blocks)
    residual = limit_residual(forms)
    first = (slice(None), None)
    second = (None, slice(None))
    v, u = forms.values[:, None, :], forms.scores
    cross = forms.covariance(v[first], u[second])
    swapped = forms.covariance(u[first], v[second])
    straight = forms.mean_product(
        forms.covariance(v[first], v[second]), forms.covariance(u[first], u[second])
    )
    variance = straight.sum() + forms.mean_product(cross, swapped).sum()
    return (forms.mean_product(residual, residual).sum() + inverse_length * variance) / 2


class LinearOptimum(NamedTuple):
    """The best that one head of linear attention can do.

    Attributes:
        product: ``b A``, the product of its blocks.
        risk: Its risk, ``E (prediction - w^T x_q)^2 / 2``.
    """

    product: Float[np.ndarray, "d d"]
    risk: float


def linear_attention_optimum(task: RegressionTask, length: float) -> LinearOptimum:
    """The best head of linear attention for a length, among those with ``c = v = 0``.

    ``b A = (G + n/(L t) I)^{-1}`` with ``G = (1 + 1/L) S + tr(S)/L I``, ``n`` and ``t`` the
    variances of the label noise and of the weights, and ``2 R = t tr((I - b A S) S_q)``.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt; may be ``math.inf``.

    Raises:
        InvalidInputError: If the length is not positive.

    Source:
        Ahn, Cheng, Daneshmand, Sra, "Transformers learn to implement preconditioned gradient
        descent" (arXiv 2306.00297), the global minimizer of one layer, without noise.
    """
    check_kinds(task=(task, RegressionTask))
    check_length(length)
    d, s = task.dimension, task.covariance
    noise = task.label_noise / task.weight_variance
    product = np.linalg.inv((1 + 1 / length) * s + (np.trace(s) + noise) / length * np.eye(d))
    # I - b A S without cancellation: b A (b A)^{-1} - b A S.
    rest = product @ (s + (np.trace(s) + noise) * np.eye(d)) / length
    risk = task.weight_variance * float(np.trace(rest @ task.query_covariance)) / 2
    return LinearOptimum(product, risk)


def check_length(length: float) -> None:
    """Refuses a length that is neither a number of tokens, up to 1e60, nor infinity."""
    number = as_number(length)
    if not (1 <= number <= LARGEST_LENGTH or number == math.inf):
        raise InvalidInputError(
            "length",
            f"it is {shown(length)}",
            f"Give the number of tokens of a prompt, from 1 to {LARGEST_LENGTH:g}, or math.inf",
        )


_ENTRIES_AT_ONCE = 2**22


class RidgeRisk(NamedTuple):
    """Risk of the ridge estimator for several lengths, from sampled inputs.

    Attributes:
        risk: ``E (prediction - w^T x_q)^2 / 2``.
        standard_error: Of the risk.
        penalty: The penalty used.
    """

    risk: Float[np.ndarray, "*length"]
    standard_error: Float[np.ndarray, "*length"]
    penalty: float


def ridge_risk(
    task: RegressionTask,
    length: int | Int[np.ndarray, "*length"],
    *,
    penalty: float | None = None,
    samples: int = 20_000,
    seed: int = 0,
) -> RidgeRisk:
    """Risk of ridge regression on the prompt, ``(X^T X + penalty I)^{-1} X^T y``.

    With the penalty ``label_noise / weight_variance`` it is the mean of the weights given the
    prompt, so that its risk is the least of all predictors. Only ``X^T X``, a Wishart matrix, is
    sampled: means over weights and noise are exact.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt; one or more.
        penalty: Positive; that of the best predictor if not given.
        samples: Number of matrices sampled for each length.
        seed: Same seed, same numbers.

    Raises:
        InvalidInputError: If a length is no positive integer, the penalty not positive, or there
            are fewer than two samples.
    """
    check_kinds(task=(task, RegressionTask))
    samples = check_count("samples", samples, 2, 10**7)
    seed = check_seed("seed", seed)
    lengths = as_integers("length", length, ("...",), least=1)
    if penalty is not None:
        penalty = check_number("penalty", penalty, above=0.0, most=1e100, example=1.0)
    used = task.label_noise / task.weight_variance if penalty is None else float(penalty)
    means, errors = np.empty(lengths.shape), np.empty(lengths.shape)
    for place, tokens in np.ndenumerate(lengths):
        rng = np.random.default_rng((seed, int(tokens)))
        risks = _risks(task, int(tokens), used, samples, rng)
        means[place] = risks.mean()
        errors[place] = risks.std(ddof=1) / np.sqrt(samples)
    return RidgeRisk(means, errors, used)


def _risks(
    task: RegressionTask, length: int, penalty: float, samples: int, rng: np.random.Generator
) -> Float[np.ndarray, "sample"]:
    d, pieces = task.dimension, []
    block = max(1, _ENTRIES_AT_ONCE // (d * d))
    factor = np.linalg.cholesky(task.covariance)
    for start in range(0, samples, block):
        scatter = _standard_scatter(d, length, min(block, samples - start), rng)
        values, vectors = np.linalg.eigh(factor @ scatter @ factor.T)
        values = np.clip(values, 0, None)
        values[:, : max(0, d - length)] = 0  # directions that no input has
        regularized = values + penalty
        seen = regularized > 0
        kept = np.divide(penalty, regularized, out=np.ones_like(values), where=seen)
        noise = np.divide(values, regularized**2, out=np.zeros_like(values), where=seen)
        weights = task.weight_variance * kept**2 + task.label_noise * noise
        turned = np.sum(vectors * (task.query_covariance @ vectors), axis=-2)
        pieces.append(np.sum(weights * turned, axis=-1) / 2)
    return np.concatenate(pieces)


def _standard_scatter(
    dimension: int, length: int, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count d d"]:
    """Samples ``X^T X`` of standard normal inputs, by Bartlett's decomposition if it is regular."""
    if length < dimension:
        inputs = rng.standard_normal((count, length, dimension))
        return np.swapaxes(inputs, -1, -2) @ inputs
    triangle = np.tril(rng.standard_normal((count, dimension, dimension)), -1)
    degrees = length - np.arange(dimension)
    diagonal = np.arange(dimension)
    triangle[:, diagonal, diagonal] = np.sqrt(rng.chisquare(degrees, (count, dimension)))
    return triangle @ np.swapaxes(triangle, -1, -2)
