"""Data sets to try things on: random unit tokens and handwritten digits."""

from attractor.datasets.digits import DigitPatches, digit_patches
from attractor.datasets.unit_tokens import unit_tokens

__all__ = ["DigitPatches", "digit_patches", "unit_tokens"]
