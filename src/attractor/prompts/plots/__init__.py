"""Figures of long prompts and of in-context learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.plots.design.arguments import with_checked_arguments
from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompts.plots.in_context import (
        experiment_figure as experiment_figure,
        lengths_figure as lengths_figure,
    )
    from attractor.prompts.plots.prompt_length import (
        error_by_length_figure as error_by_length_figure,
    )

import_on_first_use(__name__, with_checked_arguments)
