"""The entries of an attention head that matter in in-context regression, and where they start."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.support.checks import check_count, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64, as_shaped


class Blocks(NamedTuple):
    """The entries of ``U`` and ``V`` that the prediction depends on, of one head or several.

    Tokens are ``(x, y)``, the query is ``(x_q, 0)``, the prediction the last entry of the output.
    So only the first ``d`` columns of the score matrix ``U`` and the last row of the value matrix
    ``V`` ever matter: ``U = [[A, *], [c^T, *]]`` and ``V = [[*, *], [v^T, b]]``. Axes in front
    count heads, whose predictions add up. Arrays may be of NumPy or of JAX.

    Attributes:
        key_query: ``A``, which scores inputs.
        label_row: ``c``, which scores labels.
        value_inputs: ``v``, what inputs add to the prediction.
        value_label: ``b``, what labels add to the prediction.
    """

    key_query: Float[Any, "*head d d"]
    label_row: Float[Any, "*head d"]
    value_inputs: Float[Any, "*head d"]
    value_label: Float[Any, "*head"]

    @classmethod
    def of(
        cls,
        score_matrix: Float[ArrayLike, "*head d+1 d+1"],
        value_matrix: Float[ArrayLike, "*head r d+1"],
    ) -> Blocks:
        """Takes the blocks out of the matrices of one head or several.

        Args:
            score_matrix: ``U``; a token ``x`` scores ``x^T U z`` for the query ``z``.
            value_matrix: ``V``, whose last row predicts.

        Raises:
            InvalidInputError: If the shapes do not fit one another.
        """
        score = as_float64("score_matrix", score_matrix, largest=LARGEST)
        value = as_float64("value_matrix", value_matrix, largest=LARGEST)
        if score.ndim < 2 or score.shape[-1] != score.shape[-2] or score.shape[-1] < 2:
            raise InvalidInputError(
                "score_matrix",
                f"its shape is {score.shape}",
                "Give a square matrix for each head, one row more than there are inputs",
            )
        heads, tokens = score.shape[:-2], score.shape[-1]
        if (
            0 in value.shape
            or value.ndim != score.ndim
            or value.shape[:-2] != heads
            or value.shape[-1] != tokens
        ):
            raise InvalidInputError(
                "value_matrix",
                f"its shape is {value.shape}, that of score_matrix {score.shape}",
                f"Give {tokens} columns, and the same axes of heads in front",
            )
        return cls(
            score[..., :-1, :-1], score[..., -1, :-1], value[..., -1, :-1], value[..., -1, -1]
        )

    def matrices(
        self,
    ) -> tuple[Float[np.ndarray, "*head d+1 d+1"], Float[np.ndarray, "*head d+1 d+1"]]:
        """Score matrix ``U`` and value matrix ``V`` with these blocks and zeros elsewhere."""
        blocks = Blocks(*(np.asarray(block, dtype=np.float64) for block in self))
        shape = tuple(n + 1 for n in blocks.key_query.shape[-2:])
        score = np.zeros((*blocks.key_query.shape[:-2], *shape))
        value = np.zeros_like(score)
        score[..., :-1, :-1], score[..., -1, :-1] = blocks.key_query, blocks.label_row
        value[..., -1, :-1], value[..., -1, -1] = blocks.value_inputs, blocks.value_label
        return score, value

    @property
    def namespace(self) -> ModuleType:
        """NumPy or ``jax.numpy``, whichever the arrays are of."""
        return self.key_query.__array_namespace__()

    @property
    def balance(self) -> Float[Any, "*head"]:
        """``||A||_F^2 + |c|^2 - |v|^2 - b^2`` of each head.

        Gradient flow keeps it where the prediction is linear in ``U``: with a prompt of infinite
        length, and in linear attention of any length.
        """
        scores = (self.key_query**2).sum(axis=(-2, -1)) + (self.label_row**2).sum(axis=-1)
        return scores - (self.value_inputs**2).sum(axis=-1) - self.value_label**2

    def flat_heads(self, dimension: int) -> Blocks:
        """These blocks with exactly one axis of heads.

        Raises:
            InvalidInputError: If they are not those of a task of this dimension.
        """
        d = check_count("dimension", dimension)
        heads = np.shape(self.key_query)[:-2]
        expected = ((*heads, d, d), (*heads, d), (*heads, d), heads)
        for name, block, shape in zip(self._fields, self, expected, strict=True):
            if np.shape(block) != shape:
                raise InvalidInputError(
                    name,
                    f"its shape is {np.shape(block)} where the task has {d} inputs",
                    f"Give the shape {shape}, with the same axes of heads in every block",
                )
        xp = self.namespace
        shapes = ((-1, d, d), (-1, d), (-1, d), (-1,))
        return Blocks(*(xp.reshape(xp.asarray(b), s) for b, s in zip(self, shapes, strict=True)))


def balanced_initialization(
    covariance: Float[ArrayLike, "d d"],
    scale: float,
    theta: Float[ArrayLike, "d r"] | None = None,
) -> Blocks:
    """One head with ``A = scale Theta Theta^T``, ``b = scale`` and ``c = v = 0``.

    ``Theta Theta^T`` is divided by its Frobenius norm, so that ``||A||_F = b``.

    Args:
        covariance: Covariance of the inputs, for its size.
        scale: Positive.
        theta: ``Theta``; the identity if not given.

    Raises:
        InvalidInputError: If the scale is not positive, or ``theta`` is zero or has not a row for
            each input.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784), and Zhang, Frei, Bartlett, "Trained Transformers Learn Linear Models
        In-Context" (JMLR 25, 2024): their initializations.
    """
    scale = check_number("scale", scale, above=0.0, example=0.1)
    d = len(as_shaped("covariance", covariance, ("d", "d"), largest=LARGEST))
    root = np.eye(d) if theta is None else as_float64("theta", theta)
    if root.ndim != 2 or len(root) != d or not root.any():
        raise InvalidInputError(
            "theta", f"its shape is {root.shape}, or it is zero", f"Give {d} rows, not all zero"
        )
    root = root / np.abs(root).max()
    product = root @ root.T
    zeros = np.zeros(d)
    return Blocks(scale * product / np.linalg.norm(product), zeros, zeros, np.array(float(scale)))
