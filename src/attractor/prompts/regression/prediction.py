"""Predictions on random prompts, and their exact gradients."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from attractor.prompts.regression.attended import Draw
from attractor.prompts.regression.batches import PromptLaw, Prompts, Whitening
from attractor.prompts.regression.blocks import Blocks


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
