"""How long a prompt must be for attention to act as its limit, and the limit itself."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompt.length.affine import AffineLimit
    from attractor.prompt.length.defect import NonGaussianDefect, non_gaussian_defect
    from attractor.prompt.length.diagrams import error_quantiles, phase_diagram
    from attractor.prompt.length.how_long import prompt_length, required_length
    from attractor.prompt.length.replacement import ReplacementError, replacement_error
    from attractor.prompt.length.result import PromptLength

__all__ = [
    "AffineLimit",
    "NonGaussianDefect",
    "PromptLength",
    "ReplacementError",
    "error_quantiles",
    "non_gaussian_defect",
    "phase_diagram",
    "prompt_length",
    "replacement_error",
    "required_length",
]

import_on_first_use(__name__)
