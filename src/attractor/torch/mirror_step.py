"""A step of mirror descent on lists of PyTorch tensors."""

# PyTorch's own optimizers are made of these functions; it exports them under no other name.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attractor.torch.signed_powers import signed_powers


def unit_in_dual_norm(gradients: Sequence[Tensor], p: float) -> list[Tensor]:
    """Every gradient by its norm ``||.||_q``, ``q = p / (p - 1)``; zero stays zero.

    It is divided by its largest entry first, so that no power underflows or overflows.
    """
    found = []
    for gradient in gradients:
        largest = gradient.abs().amax()
        shrunk = gradient / torch.where(largest != 0, largest, 1)
        (powers,) = signed_powers([shrunk.abs()], p / (p - 1))
        norm = powers.sum() ** ((p - 1) / p)
        found.append(shrunk.div_(torch.where(norm != 0, norm, 1)))
    return found


def mirror_step(
    weights: Sequence[Tensor],
    duals: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    p: float,
    rate: float | Tensor,
    shrinkage: float | Tensor,
) -> None:
    """``Y <- (1 - shrinkage) Y - rate M`` and ``W = sign(Y) |Y|^(1 / (p - 1))``, in place.

    A weight that is not the image of its ``Y`` was changed by other code, or has never moved
    since ``Y`` was first taken from it; ``Y`` is taken from it again. A weight whose ``Y`` then
    does not move keeps its value.
    """
    inverse = 1 / (p - 1)
    images = signed_powers(duals, inverse)
    differ = [
        image.to(weight.dtype) != weight for image, weight in zip(images, weights, strict=True)
    ]
    wide = [weight.to(dual.dtype) for weight, dual in zip(weights, duals, strict=True)]
    before = [
        torch.where(other, image, dual)
        for other, image, dual in zip(differ, signed_powers(wide, p - 1), duals, strict=True)
    ]
    torch._foreach_copy_(list(duals), before)
    plain_step(duals, steps, rate=rate, shrinkage=shrinkage)
    after = signed_powers(duals, inverse)
    for weight, dual, old, new in zip(weights, duals, before, after, strict=True):
        weight.copy_(torch.where(dual == old, weight, new.to(weight.dtype)))


def plain_step(
    weights: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    rate: float | Tensor,
    shrinkage: float | Tensor,
) -> None:
    """``W <- (1 - shrinkage) W - rate M``, in place: the same for p = 2, where ``Y`` is ``W``."""
    weights, steps = list(weights), list(steps)
    if isinstance(shrinkage, Tensor) or shrinkage != 0:
        torch._foreach_mul_(weights, 1 - shrinkage)
    if isinstance(rate, Tensor):
        torch._foreach_sub_(weights, torch._foreach_mul(steps, rate))
    else:
        torch._foreach_add_(weights, steps, alpha=-rate)
