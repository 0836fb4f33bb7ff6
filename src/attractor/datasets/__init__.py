"""Data sets to try things on: random unit tokens, handwritten digits, docstrings."""

from attractor.datasets.digits import DigitPatches, digit_patches
from attractor.datasets.docstrings import docstring_sentences
from attractor.datasets.unit_tokens import unit_tokens

__all__ = ["DigitPatches", "digit_patches", "docstring_sentences", "unit_tokens"]
