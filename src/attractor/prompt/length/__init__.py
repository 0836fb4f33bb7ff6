"""How long a prompt must be for attention to act as its limit, and the limit itself."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompt.length.affine import AffineLimit as AffineLimit
    from attractor.prompt.length.defect import (
        NonGaussianDefect as NonGaussianDefect,
        non_gaussian_defect as non_gaussian_defect,
    )
    from attractor.prompt.length.how_long import (
        prompt_length as prompt_length,
        required_length as required_length,
    )
    from attractor.prompt.length.result import PromptLength as PromptLength

import_on_first_use(__name__)
