"""Three laws of tokens in four dimensions, and a head, for experiments on finite prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

if TYPE_CHECKING:
    import xarray as xr

DIMENSION = 4
REGIMES = ("identity", "Toeplitz", "rotated")
"""Covariances of tokens: the identity, ``0.5^|i - j|``, and variances 1/4 to 2 on random axes."""
TARGET = 0.18
"""The target output, as a share of the query."""
_HEAD_SEED, _ROTATION_SEED = 2026, 91
_SCORE_NORM, _VALUE_NORM = 0.22, 0.75


def covariances() -> Float[np.ndarray, "regime d d"]:
    """The covariances of the regimes."""
    places = np.arange(DIMENSION)
    toeplitz = 0.5 ** np.abs(places[:, None] - places)
    normals = np.random.default_rng(_ROTATION_SEED).standard_normal((DIMENSION, DIMENSION))
    rotation = np.linalg.qr(normals)[0]
    rotated = rotation @ np.diag(np.geomspace(0.25, 2, DIMENSION)) @ rotation.T
    return np.stack([np.eye(DIMENSION), toeplitz, rotated])


def random_head() -> tuple[Float[np.ndarray, "d d"], Float[np.ndarray, "d d"]]:
    """Score and value matrix: random, of spectral norms 0.22 and 0.75."""
    draws = np.random.default_rng(_HEAD_SEED)
    scores, values = (draws.standard_normal((DIMENSION, DIMENSION)) for _ in range(2))
    scores *= _SCORE_NORM / np.linalg.norm(scores, 2)
    return scores, values * (_VALUE_NORM / np.linalg.norm(values, 2))


def softmax_mean(
    tokens: Float[np.ndarray, "*batch token d"], directions: Float[np.ndarray, "*batch query d"]
) -> tuple[Float[np.ndarray, "*batch query d"], Float[np.ndarray, "*batch query token"]]:
    """The mean of a prompt under softmax weights, for each of some directions, and the weights."""
    weights = softmax(directions @ np.swapaxes(tokens, -1, -2), axis=-1)
    return weights @ tokens, weights


def prompts(
    draws: np.random.Generator,
    count: tuple[int, ...],
    length: int,
    covariance: Float[np.ndarray, "*count d d"],
) -> tuple[Float[np.ndarray, "*count token d"], Float[np.ndarray, "*count d"]]:
    """Prompts of independent tokens, and a standard normal query for each."""
    root = np.linalg.cholesky(covariance)
    tokens = draws.standard_normal((*count, length, DIMENSION)) @ np.swapaxes(root, -1, -2)
    return tokens, draws.standard_normal((*count, DIMENSION))


def risk_gradient(
    scores: Float[np.ndarray, "*batch d d"],
    tokens: Float[np.ndarray, "*batch prompt token d"],
    queries: Float[np.ndarray, "*batch prompt d"],
) -> Float[np.ndarray, "*batch d d"]:
    """Gradient in the score matrix of the mean of ``|output - 0.18 query|^2`` over prompts."""
    directions = queries @ np.swapaxes(scores, -1, -2)
    mean, weights = softmax_mean(tokens, directions[..., None, :])
    residual = mean[..., 0, :] - TARGET * queries
    # With a = U z the output is the softmax mean, whose derivative is the covariance of the tokens
    # under the weights: dR/da = 2 sum_l w_l (r^T x_l - r^T m) x_l.
    along = np.einsum("...pld,...pd->...pl", tokens, residual)
    weights = weights[..., 0, :]
    centered = weights * (along - np.sum(weights * along, axis=-1, keepdims=True))
    of_direction = np.einsum("...pl,...pld->...pd", centered, tokens)
    return 2 * np.swapaxes(of_direction, -1, -2) @ queries / queries.shape[-2]


def infinite_gradient(
    scores: Float[np.ndarray, "*batch d d"], covariance: Float[np.ndarray, "*batch d d"]
) -> Float[np.ndarray, "*batch d d"]:
    """Gradient of the risk of infinite prompts, ``||Gamma U - 0.18 I||_F^2``."""
    return 2 * covariance @ (covariance @ scores - TARGET * np.eye(DIMENSION))


def by_regime(values: xr.DataArray, form: str, between: str = ", ") -> str:
    """The numbers of every regime in words: ``"identity 0.1, 0.2; Toeplitz 0.3, 0.4; ..."``.

    Args:
        values: Numbers over ``regime`` and one other dimension.
        form: Format of each number.
        between: Separator of those of a regime.
    """
    return "; ".join(
        f"{regime} {between.join(f'{value:{form}}' for value in values.sel(regime=regime).values)}"
        for regime in REGIMES
    )
