"""The balanced start of the theorems on trained attention."""

from __future__ import annotations

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.regression.blocks import Blocks
from attractor.support.checks import check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64, as_shaped


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
