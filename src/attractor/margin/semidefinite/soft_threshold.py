"""The soft threshold with its corners rounded off to hyperbolas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Threshold:
    """The soft threshold of x at a level, its corners rounded off to hyperbolas.

    Attributes:
        x: Arguments; singular values, none negative.
        level: The level, one an instance.
        near: ``sqrt((x - level)^2 + 4 area)``.
        far: ``sqrt((x + level)^2 + 4 area)``.
        middle: Both at ``x = 0``.
    """

    x: Float[np.ndarray, "k q"]
    level: Float[np.ndarray, "k 1"]
    near: Float[np.ndarray, "k q"]
    far: Float[np.ndarray, "k q"]
    middle: Float[np.ndarray, "k 1"]

    @classmethod
    def of(cls, x: np.ndarray, level: np.ndarray, area: np.ndarray) -> Threshold:
        """The threshold with a given area under the hyperbolas."""
        near, far = np.sqrt((x - level) ** 2 + 4 * area), np.sqrt((x + level) ** 2 + 4 * area)
        return cls(x, level, near, far, np.sqrt(level**2 + 4 * area))

    @property
    def value(self) -> Float[np.ndarray, "k q"]:
        """The threshold: near 0 below the level, near ``x - level`` above."""
        return self.x + 0.5 * (self.near - self.far)

    @property
    def slope(self) -> Float[np.ndarray, "k q"]:
        """Its derivative."""
        return 1 + 0.5 * ((self.x - self.level) / self.near - (self.x + self.level) / self.far)

    def level_slopes(
        self, flattest: Float[np.ndarray, "k 1"]
    ) -> tuple[Float[np.ndarray, "k q"], Float[np.ndarray, "k"]]:
        """Derivatives in the level of what the threshold leaves of x, and of its own sum.

        Args:
            flattest: Least slope to divide by.
        """
        near, far = (self.x - self.level) / self.near, (self.x + self.level) / self.far
        steep = np.maximum(self.slope, flattest)
        return 0.5 * (near + far) / steep, ((1 - far) * (1 + near) / steep).sum(-1)

    def ratios(self) -> Float[np.ndarray, "k q n"]:
        """Divided differences between ``x_i`` and all of ``x_j``, ``-x_j`` and 0; in [0, 1]."""
        below, above = self.x - self.level, self.x + self.level
        # At -x the two hyperbolas change places.
        others_below = np.concatenate([below, -above, -self.level], axis=-1)[:, None]
        others_above = np.concatenate([above, -below, self.level], axis=-1)[:, None]
        others_near = np.concatenate([self.near, self.far, self.middle], axis=-1)[:, None]
        others_far = np.concatenate([self.far, self.near, self.middle], axis=-1)[:, None]
        ratios = (below[..., None] + others_below) / (self.near[..., None] + others_near)
        ratios -= (above[..., None] + others_above) / (self.far[..., None] + others_far)
        return 1 + 0.5 * ratios
