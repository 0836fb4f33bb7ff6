"""PyTorch's stream of normal numbers on the CPU, drawn without PyTorch.

The published experiments draw their data with ``torch.randn`` and a seeded CPU generator, and no
other stream gives the same data sets. Both libraries use the Mersenne Twister MT19937 seeded with
one 32-bit integer; what differs is how its words become normal numbers.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float32

from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed

_BLOCK = 16


class TorchNormalStream:
    """Draws what ``torch.randn(..., generator=torch.Generator().manual_seed(seed))`` draws.

    Pairs of uniform numbers become pairs of normal ones by Box and Muller,
    ``sqrt(-2 log(1 - u)) (cos 2 pi w, sin 2 pi w)``. An array of 16 numbers or more is drawn in
    single precision, in blocks of 16; a smaller one in double precision, a number at a time, the
    second of each pair kept for the next small array. Agrees with PyTorch to the rounding of its
    vectorized logarithm and cosine, about 5e-7.
    """

    def __init__(self, seed: int) -> None:
        """Starts the stream of one seed.

        Raises:
            InvalidInputError: If the seed is not an integer in [0, 2^32).
        """
        self._generator = np.random.MT19937()
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Starts the stream of another seed, in a sixtieth of the time of a new object.

        Raises:
            InvalidInputError: If the seed is not an integer in [0, 2^32).
        """
        if check_seed("seeds", seed) >= 2**32:
            raise InvalidInputError(
                "seeds", f"{seed} is out of range", "MT19937 takes one in [0, 2^32)"
            )
        self._generator._legacy_seeding(seed)  # the one-word seeding that PyTorch shares
        self._kept: float | None = None

    def normal(self, *shape: int) -> Float32[np.ndarray, "..."]:
        """Returns the next array of standard normal numbers."""
        size = math.prod(shape)
        numbers = self._draw_one_by_one(size) if size < _BLOCK else self._draw_in_blocks(size)
        return numbers.astype(np.float32).reshape(shape)

    def _draw_in_blocks(self, size: int) -> np.ndarray:
        uniform = self._uniform32(size)
        numbers = np.empty(size, np.float32)
        whole = size - size % _BLOCK
        numbers[:whole] = _box_muller(uniform[:whole])
        if whole < size:
            # PyTorch draws the last sixteen anew, overwriting part of the block before.
            numbers[-_BLOCK:] = _box_muller(self._uniform32(_BLOCK))
        return numbers

    def _draw_one_by_one(self, size: int) -> np.ndarray:
        numbers = []
        for _ in range(size):
            if self._kept is None:
                angle, u = 2 * math.pi * self._uniform64(), self._uniform64()
                radius = math.sqrt(-2 * math.log1p(-u))
                numbers.append(radius * math.cos(angle))
                self._kept = radius * math.sin(angle)
            else:
                numbers.append(self._kept)
                self._kept = None
        return np.array(numbers)

    def _uniform32(self, size: int) -> np.ndarray:
        words = self._generator.random_raw(size)
        return ((words & (2**24 - 1)) / 2**24).astype(np.float32)

    def _uniform64(self) -> float:
        high, low = (int(word) for word in self._generator.random_raw(2))
        return ((high << 32 | low) & (2**53 - 1)) / 2**53


def _box_muller(uniform: np.ndarray) -> np.ndarray:
    """Turns blocks of sixteen: the first eight give the radii, the last eight the angles."""
    u, w = uniform.reshape(-1, 2, _BLOCK // 2).swapaxes(0, 1)
    radius = np.sqrt(np.float32(-2) * np.log(1 - u))
    angle = np.float32(2 * np.pi) * w
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()
