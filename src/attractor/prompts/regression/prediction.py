"""Predictions on random prompts, their exact gradients, and the risk on prompts held out."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from attractor.prompts.regression.attended import Draw, of_covariance
from attractor.prompts.regression.batches import (
    PromptLaw,
    Prompts,
    Whitening,
    derived_key,
    draw_prompts,
)
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks.infinite_prompts import infinite_risk_of
from attractor.support.precision import double_precision
from attractor.support.randomness import key


class Predictions(NamedTuple):
    """The predictions of all heads together for each prompt, with derivatives.

    Attributes:
        values: The predictions.
        of_scores: Derivatives in the score vector ``U (x_q, 0)`` of each head.
        of_values: Derivatives in the last row of ``V`` of each head.
    """

    values: Float[Array, "prompt"]
    of_scores: Float[Array, "prompt head d+1"]
    of_values: Float[Array, "prompt head d+1"]


def predict(
    law: PromptLaw,
    blocks: Blocks,
    prompts: Prompts,
    draw: Draw,
    key: UInt32[Array, "2"],
    length: float,
    dtype: str = "float32",
) -> Predictions:
    """Draws the tokens of prompts, or their scores and values, and predicts the labels of queries.

    Args:
        law: Of prompts and queries.
        blocks: The heads, one axis.
        prompts: Weights and queries.
        draw: The way attended means are drawn.
        key: Two words.
        length: Number of tokens of each prompt.
        dtype: Precision within a prompt.
    """
    score_matrices = jnp.concatenate([blocks.key_query, blocks.label_row[:, None, :]], axis=1)
    rows = jnp.concatenate([blocks.value_inputs, blocks.value_label[:, None]], axis=1)
    whitening = Whitening(law, prompts.weights)
    scores = whitening.functional(jnp.einsum("hij,pj->phi", score_matrices, prompts.queries))
    values = whitening.functional(jnp.broadcast_to(rows, (len(prompts.queries), *rows.shape)))
    attended = draw(key, scores, values, length, dtype)
    return Predictions(
        (values * attended.mean).sum((1, 2)),
        whitening.token(attended.slope),
        whitening.token(attended.mean),
    )


def gradient_in_blocks(
    predictions: Predictions,
    queries: Float[Array, "prompt d"],
    multiples: Float[Array, "prompt"],
) -> Blocks:
    """Gradient in the blocks of a sum of multiples of the predictions."""
    scores = jnp.einsum("phi,p,pj->hij", predictions.of_scores, multiples, queries)
    values = jnp.einsum("phi,p->hi", predictions.of_values, multiples)
    return Blocks(scores[:, :-1], scores[:, -1], values[:, :-1], values[:, -1])


_QUERIES, _TOKENS = 0, 1


class HeldOut(NamedTuple):
    """Prompts that no step of training sees, the same wherever the risk is measured.

    Attributes:
        prompts: Their weights, queries and labels.
        key: The key of their tokens.
    """

    prompts: Prompts
    key: UInt32[Any, "2"]

    @classmethod
    def draw(cls, law: PromptLaw, count: int, seed: int) -> HeldOut:
        """Draws prompts.

        Args:
            law: Of prompts and queries.
            count: Number of prompts.
            seed: Names them.
        """
        with double_precision():
            words = jnp.asarray(key_words(seed, "held-out prompts"))
            return jax.tree.map(np.asarray, _drawn(law, count, words))


class Estimate(NamedTuple):
    """A mean over prompts.

    Attributes:
        value: The mean.
        standard_error: Of the mean; zero where it is exact.
    """

    value: Float[Array, ""]
    standard_error: Float[Array, ""]


def held_out_risk(
    law: PromptLaw, blocks: Blocks, held_out: HeldOut, draw: Draw, length: float
) -> Estimate:
    """Risk ``E (prediction - w^T x_q)^2 / 2`` of heads, estimated on held-out prompts.

    The error of the same heads on infinite prompts, whose mean is known exactly, is a control
    variate: the longer the prompts, the more it takes off the variance.

    Args:
        law: Of prompts and queries.
        blocks: The heads, one axis.
        held_out: The prompts.
        draw: The way attended means are drawn.
        length: Number of tokens of each prompt.
    """
    prompts, words = held_out.prompts, jnp.asarray(held_out.key)
    target = (prompts.weights * prompts.queries).sum(-1)

    def errors(draw: Draw, length: float) -> Array:
        return (predict(law, blocks, prompts, draw, words, length).values - target) ** 2 / 2

    found, known = errors(draw, length), errors(of_covariance, math.inf)
    deviation = known - known.mean()
    square = (deviation**2).sum()
    slope = (deviation * found).sum() / jnp.where(square > 0, square, 1)
    corrected = found - slope * (known - infinite_risk_of(law.arrays, blocks))
    return Estimate(corrected.mean(), corrected.std(ddof=1) / math.sqrt(len(target)))


def key_words(seed: int, purpose: str) -> UInt32[np.ndarray, "2"]:
    """The two words of the key that belongs to a seed and a purpose."""
    return np.asarray(jax.random.key_data(key(seed, 0, purpose)))


@functools.partial(jax.jit, static_argnums=1)
def _drawn(law: PromptLaw, count: int, words: UInt32[Array, "2"]) -> HeldOut:
    prompts = draw_prompts(law, derived_key(words, _QUERIES), count)
    return HeldOut(prompts, derived_key(words, _TOKENS))
