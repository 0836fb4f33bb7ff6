"""The ridge estimator, which no predictor from prompts beats: its risk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_count, check_kinds, check_number
from attractor.support.precision import as_integers
from attractor.support.randomness import check_seed

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
