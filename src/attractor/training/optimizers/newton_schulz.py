"""Newton-Schulz iterations toward the orthogonal factor of a matrix."""

from __future__ import annotations

from jaxtyping import Array, Float

from attractor.training.optimizers.leaves import square_sum, unit

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def newton_schulz(G: Float[Array, "d e"], iterations: int) -> Float[Array, "d e"]:
    """What Muon takes for ``U V^T`` with ``G = U s V^T``: singular values near one.

    ``X <- a X + b (X X^T) X + c (X X^T)^2 X``, from ``X = G / ||G||_F``. No constant is added to
    that norm, so that the size of the gradient does not matter, however small.

    Source: Jordan et al., *Muon: an optimizer for hidden layers in neural networks* (2024).
    """
    a, b, c = _COEFFICIENTS
    wide = G.T if G.shape[0] > G.shape[1] else G
    X = unit(wide, square_sum, 2)
    for _ in range(iterations):
        gram = X @ X.T
        X = a * X + (b * gram + c * gram @ gram) @ X
    return X.T if G.shape[0] > G.shape[1] else X
