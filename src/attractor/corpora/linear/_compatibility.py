"""Compatibility: whether a linear decoder can have the odds of all tokens that follow a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.corpora.linear._support_space import support_space
from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.support.checks import check_kinds

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Compatibility:
    """Whether some matrix has every log-odds within supports, and which contexts prevent it.

    Attributes:
        compatible: Whether ``residual`` is at most 1e-9, ``(*instances)``.
        residual: The largest ``|(e_z - e_z')^T W* h_j - log(p_jz / p_jz')|``, relative to one plus
            the largest log-odds, ``(*instances)``.
        context: The context that has it, or -1 where data are compatible, ``(*instances)``.
        residuals: That of each context, not relative, ``(*instances, m)``.
        solution: ``W*``: the matrix of smallest norm that lacks least in the sense of least
            squares, ``(*instances, V, d)``.
    """

    compatible: Bool[np.ndarray, "*instances"]
    residual: Float[np.ndarray, "*instances"]
    context: Int[np.ndarray, "*instances"]
    residuals: Float[np.ndarray, "*instances m"]
    solution: Float[np.ndarray, "*instances V d"]

    @property
    def reason(self) -> Any:
        """Why data are not compatible, in words, empty where they are; for instances, a list."""
        if np.ndim(self.context):
            pairs = zip(self.context, self.residuals, strict=True)
            return [_reason(int(context), lacking) for context, lacking in pairs]
        return _reason(int(self.context), self.residuals)

    def __repr__(self) -> str:
        if np.ndim(self.context):
            met = int(self.compatible.sum())
            return f"Compatibility({met} of {self.compatible.size} instances compatible)"
        answer = "compatible" if self.compatible else f"not compatible: {self.reason}"
        return f"Compatibility({answer}; relative residual {self.residual:.2g})"


def compatibility(contexts: EmbeddedContexts) -> Compatibility:
    """Decides whether there is W with ``(e_z - e_z')^T W h_j = log(p_jz / p_jz')`` in supports.

    Where there is none, the cross-entropy stays away from the entropy of the contexts. Linearly
    independent embeddings always are compatible.

    Args:
        contexts: The data sets.

    Raises:
        InvalidInputError: If the system of equations is too large; see ``support_space``.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), compatible data.
    """
    check_kinds(contexts=(contexts, EmbeddedContexts))
    space = support_space(contexts)
    logs = np.log(np.where(contexts.support, contexts.probabilities, 1.0))
    most = np.abs(logs - logs.max(-1, keepdims=True, where=contexts.support, initial=-np.inf))
    size = 1 + np.where(contexts.support, most, 0).max((-1, -2))
    residual = np.asarray(space.residuals.max(-1) / size)
    met = residual <= _TOLERANCE
    context = np.where(met, -1, space.residuals.argmax(-1))
    return Compatibility(np.asarray(met), residual, context, space.residuals, space.solution)


def _reason(context: int, residuals: Float[np.ndarray, "m"]) -> str:
    if context < 0:
        return ""
    others = int((residuals > _TOLERANCE).sum()) - 1
    beside = f" and those of {others} other contexts" if others > 0 else ""
    return (
        f"no matrix has the log-odds of context {context}{beside} together: the nearest lacks "
        f"{residuals[context]:.3g} there, as its embedding is a combination of others"
    )
