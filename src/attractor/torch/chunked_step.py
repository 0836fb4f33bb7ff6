"""A step of mirror descent on a processor, in pieces that stay in its cache."""

from __future__ import annotations

import torch
from torch import Tensor

from attractor.torch.mirror_step import plain_step
from attractor.torch.signed_powers import signed_power_into, signed_powers

CHUNK = 2**16
"""Entries of a piece."""


class ChunkedStep:
    """Takes the same step as ``mirror_step``, with a memory of a few pieces for scratch."""

    def __init__(self, p: float, rate: float | Tensor, shrinkage: float | Tensor) -> None:
        self.p, self.rate, self.shrinkage = p, rate, shrinkage
        self.scratch: dict[torch.dtype, tuple[Tensor, ...]] = {}

    def __call__(self, weight: Tensor, dual: Tensor, step: Tensor) -> None:
        """Moves one weight and its dual variable in place."""
        if dual.dtype not in self.scratch:
            self.scratch[dual.dtype] = tuple(torch.empty(CHUNK, dtype=dual.dtype) for _ in "ab")
        if weight.is_contiguous() and dual.is_contiguous() and step.is_contiguous():
            pieces = (tensor.view(-1).split(CHUNK) for tensor in (weight, dual, step))
            for piece in zip(*pieces, strict=True):
                self._move(*piece)
        else:
            flat = weight.reshape(-1).clone(), dual.reshape(-1).clone(), step.reshape(-1)
            self(*flat)
            weight.copy_(flat[0].view(weight.shape))
            dual.copy_(flat[1].view(dual.shape))

    def _move(self, weight: Tensor, dual: Tensor, step: Tensor) -> None:
        inverse = 1 / (self.p - 1)
        image, spare = (buffer[: dual.numel()] for buffer in self.scratch[dual.dtype])
        signed_power_into(dual, inverse, image, spare)
        narrow = weight.dtype != dual.dtype
        stands = image.to(weight.dtype) if narrow else image
        # Differences and their largest size take a quarter of the time of a comparison.
        if torch.sub(stands, weight, out=None if narrow else spare).abs_().amax() == 0:
            plain_step([dual], [step], rate=self.rate, shrinkage=self.shrinkage)
            if narrow:
                weight.copy_(signed_power_into(dual, inverse, image, spare))
            else:
                signed_power_into(dual, inverse, weight, spare)
            return
        places = (stands != weight).nonzero().flatten()
        kept = weight[places]
        (before,) = signed_powers([kept.to(dual.dtype)], self.p - 1)
        dual[places] = before
        plain_step([dual], [step], rate=self.rate, shrinkage=self.shrinkage)
        weight.copy_(signed_power_into(dual, inverse, image, spare))
        rests = dual[places] == before
        weight[places[rests]] = kept[rests]
