"""How long a prompt must be for attention to act as its limit, and the limit itself."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompts.length.defect import (
        AffineLimit as AffineLimit,
        NonGaussianDefect as NonGaussianDefect,
        non_gaussian_defect as non_gaussian_defect,
    )
    from attractor.prompts.length.how_long import (
        prompt_length as prompt_length,
        required_length as required_length,
    )
    from attractor.prompts.length.result import PromptLength as PromptLength

import_on_first_use(__name__)
