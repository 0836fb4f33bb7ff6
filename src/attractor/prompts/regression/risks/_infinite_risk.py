"""The exact risk of attention on a prompt of infinite length."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks.quadratics import Quadratic, TaskArrays, TokenForms
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_kinds


def infinite_risk(task: RegressionTask, blocks: Blocks) -> Float[Any, ""]:
    """Risk of softmax attention on a prompt of infinite length, exactly.

    The prediction is ``sum_h V_h Gamma_w U_h (x_q, 0)``: affine in the query, quadratic in the
    weights ``w``. With ``k = sum_h A^T S v + n b c``, ``M = sum_h b A^T S + c v^T S - I`` and
    ``q = sum_h b c``, where ``n`` is the variance of the label noise, ``t`` that of the weights and
    ``|u|^2 = u^T S_q u``, ``2 R = |k + t tr(S) q|^2 + t tr(M^T S_q M) + 2 t^2 tr(S^2) |q|^2``.

    Linear attention, whose scores are divided by the length in place of the softmax, has the same
    limit.

    Args:
        task: The law of prompts and queries.
        blocks: The heads. JAX arrays may be traced, so that this can be differentiated and
            compiled; it then has the precision of the blocks.

    Returns:
        The risk, ``E (prediction - w^T x_q)^2 / 2``.

    Raises:
        InvalidInputError: If the blocks have another dimension than the task.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784), in-context linear regression, for ``c = v = 0``.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    flat = blocks.flat_heads(task.dimension)
    return infinite_risk_of(TaskArrays.of(task), flat)


def infinite_risk_of(law: TaskArrays, blocks: Blocks) -> Float[Any, ""]:
    """The same of a law that may be traced, and blocks with one axis of heads."""
    forms = TokenForms(law, blocks)
    residual = limit_residual(forms)
    return forms.mean_product(residual, residual).sum() / 2


def limit_residual(forms: TokenForms) -> Quadratic:
    """Prediction on an infinite prompt less the target, for each coordinate of the query."""
    heads = forms.covariance(forms.values[:, None, :], forms.scores)
    prediction = Quadratic(*(part.sum(axis=0) for part in heads))
    return Quadratic(*(p - t for p, t in zip(prediction, forms.target, strict=True)))


def limit_horizon(task: RegressionTask, blocks: Blocks) -> Float[np.ndarray, "*head"]:
    """Horizon of each head, the largest standard deviation of scores over standard queries.

    ``H = ||S^{1/2} A S_q^{1/2}||``, the spectral norm. Beyond ``1/sqrt(2)`` the error of a finite
    prompt no longer falls as one over its length. A head that scores labels too (``c`` not zero)
    has a horizon that depends on the weights of the prompt, and this is its part from inputs.

    Args:
        task: The law of prompts and queries.
        blocks: The heads.

    Raises:
        InvalidInputError: If the blocks have another dimension than the task.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    blocks.flat_heads(task.dimension)
    left = np.linalg.cholesky(task.covariance)
    scores = left.T @ np.asarray(blocks.key_query, dtype=np.float64) @ task.query_factor
    return np.asarray(np.linalg.norm(scores, ord=2, axis=(-2, -1)))
