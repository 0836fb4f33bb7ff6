"""Data sets to try things on: random unit tokens, handwritten digits, docstrings, heads."""

from attractor.datasets.digits import DigitPatches, digit_patches
from attractor.datasets.docstrings import docstring_sentences
from attractor.datasets.random_head import random_head
from attractor.datasets.unit_tokens import unit_tokens

__all__ = ["DigitPatches", "digit_patches", "docstring_sentences", "random_head", "unit_tokens"]
