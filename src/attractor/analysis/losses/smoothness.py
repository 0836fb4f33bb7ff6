"""A Lipschitz constant of the gradient of the training loss, which bounds the step size."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.attention import (
    Exponential,
    Joint,
    KeyQuery,
    Linear,
    LinearHead,
    Logistic,
    Loss,
    Parameterization,
    get_loss,
)
from attractor.attention.multi_head import one_attention_head
from attractor.margin.selection import token_scores
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens
from attractor.training import validation


def smoothness_constant(
    tokens: Tokens,
    head: LinearHead,
    *,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
) -> Float[np.ndarray, "*instances"]:
    """A Lipschitz constant of the gradient of the training loss, everywhere.

    With spectral norms of the keys K_i and the values V_i that a row may attend to, and token
    scores between which predictions lie,

        L = mean_ik  ||K_i||^2 ||z_ik||^2 ( M0 ||v||^2 ||V_i||^2 + 3 M1 ||v|| ||V_i|| ),

    where ``|l''| <= M0`` and ``|l'| <= M1`` between the least and the largest token score: 1/4
    and 1 for the logistic loss, 0 and 1 for the linear one, ``exp(-least score)`` for the
    exponential one. For a prompt vector the query is the number one, and keys are ``X weights``.
    Gradient descent with learning rates up to ``1 / L`` decreases the loss at every step. The
    constant is loose: by a factor of several hundred on random unit tokens.

    Args:
        tokens: Data sets with labels -1 and +1.
        head: A linear head.
        loss: ``"logistic"``, ``"exponential"`` or ``"linear"``.
        parameterization: ``"W"`` or ``"p"``.

    Raises:
        InvalidInputError: If an argument does not fit, or no constant exists: in keys and queries
            together, and in a head that is trained, the gradient grows without bound.

    Source: *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596) and
    *Transformers as Support Vector Machines* (arXiv 2308.16898), Lipschitz gradient.
    """
    loss, layer = get_loss(loss), one_attention_head(parameterization, "the bound on the gradient")
    validation.check_tokens(tokens, loss)
    validation.refuse_weights(tokens, "the bound on the gradient")
    if isinstance(layer, KeyQuery | Joint):
        raise InvalidInputError(
            "parameterization",
            f"no constant bounds how fast the gradient in {layer.name!r} changes everywhere",
            'Use "W" or "p"',
        )
    tokens = layer.prepare(tokens)
    if not isinstance(validation.check_head(head, tokens), LinearHead):
        raise InvalidInputError(
            "head", f"the constant is not known for the head {head!r}", "Give LinearHead(v)"
        )
    slope, curvature = _bounds(loss, token_scores(tokens, head))
    length = np.linalg.norm(np.asarray(head.weight), axis=-1)[..., None, None]
    attended = tokens.mask[..., None]
    keys, values = (
        np.linalg.norm(np.where(attended, array[..., None, :, :], 0.0), ord=2, axis=(-2, -1))
        for array in (tokens.keys, tokens.values)
    )
    queries = np.linalg.norm(tokens.queries, axis=-1)
    reach = length * values
    return np.asarray(
        ((keys * queries) ** 2 * (curvature * reach**2 + 3 * slope * reach)).mean((-2, -1))
    )


def _bounds(loss: Loss, scores: Float[np.ndarray, "*instances n k t"]) -> tuple[Any, Any]:
    """Largest sizes of the first and of the second derivative between the scores of a row."""
    if isinstance(loss, Logistic):
        return 1.0, 0.25
    if isinstance(loss, Linear):
        return 1.0, 0.0
    if isinstance(loss, Exponential):
        steepest = np.exp(-np.where(scores > -np.inf, scores, np.inf).min(-1))
        return steepest, steepest
    raise InvalidInputError(
        "loss",
        f"bounds of the derivatives of the {loss.name} loss are not known",
        "Use the logistic, exponential or linear loss",
    )
