"""Data sets to try things on: random unit tokens, digits, docstrings, reviews, images, heads."""

from attractor.datasets._unit_tokens import unit_tokens
from attractor.datasets.digits import DigitPatches, digit_patches
from attractor.datasets.docstrings import docstring_sentences
from attractor.support.settings import all_in_own_settings

__all__ = [
    "DigitPatches",
    "digit_patches",
    "docstring_sentences",
    "unit_tokens",
]

all_in_own_settings(__name__)
