"""Where floating point ends for mirror descent: mirror images of weights, and steps among them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class MirrorLimits:
    """Range and spacing of the mirror images ``|W|^(p - 1)`` of floating-point weights.

    Attributes:
        p: The exponent.
        smallest: The image of the smallest positive weight: below about that, weights are zero.
        largest: The image of the largest finite weight: above it, weights are infinite.
        epsilon: The distance from one to the next larger number that an image can be.
    """

    p: float
    smallest: float
    largest: float
    epsilon: float

    @property
    def spacing(self) -> float:
        """The factor between weights of neighboring images, ``(1 + epsilon)^(1 / (p - 1))``."""
        return _exp(math.log1p(self.epsilon) / (self.p - 1))

    def problem(self, step: float, size: float = 1.0) -> str | None:
        """Says why steps cannot be followed by weights of this precision; None if they can.

        They cannot if the weights of neighboring images are a factor of two or more apart; if a
        step is below rounding, ``step <= epsilon size / 4``, so that it changes no image of that
        size or more; or if it is longer than ``largest - smallest``, the range of the images of
        all positive weights, so that it takes any weight of moderate size to zero, to infinity,
        or to the other sign.

        Args:
            step: The largest absolute value of what is added to an image.
            size: The smallest absolute value of an image that it is added to.
        """
        if self.spacing >= 2:
            return (
                f"neighboring mirror images stand for weights that differ by a factor of "
                f"{self.spacing:.3g}, as p = {self.p!r} is so close to 1"
            )
        if 0 < step <= self.epsilon * size / 4:
            return (
                f"the longest step, {step:.3g}, is below the rounding of mirror images, none of "
                f"which is smaller than {size:.3g}: no weight moves"
            )
        if step > self.largest - self.smallest:
            return (
                f"a step of {step:.3g} is longer than the whole range from {self.smallest:.3g} to "
                f"{self.largest:.3g} of mirror images of positive weights with p = {self.p!r}: "
                "weights become zero or infinite in a few steps"
            )
        return None


def mirror_limits(p: float, *, smallest: float, largest: float, epsilon: float) -> MirrorLimits:
    """The limits for an exponent and a floating-point type.

    Args:
        p: The exponent, more than 1 and finite.
        smallest: The smallest positive number that a weight can be, subnormal ones included.
        largest: The largest finite number that a weight can be.
        epsilon: The distance from one to the next larger number of the type of the images.
    """
    images = [_exp((p - 1) * math.log(weight)) for weight in (smallest, largest)]
    return MirrorLimits(p, images[0], images[1], epsilon)


def _exp(logarithm: float) -> float:
    """The exponential, infinite beyond the largest number."""
    return math.exp(logarithm) if logarithm < math.log(1.797e308) else math.inf
