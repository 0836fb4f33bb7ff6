"""Figures of heads: audits, checkpoints, monitors, texts with their attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.plots.design.arguments import with_checked_arguments
from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.heads.plots.audit import (
        audit_accuracy_figure as audit_accuracy_figure,
        audit_curves_figure as audit_curves_figure,
        audit_map_figure as audit_map_figure,
        checkpoint_figure as checkpoint_figure,
        margin_control_figure as margin_control_figure,
    )
    from attractor.heads.plots.marked_text import attention_text_figure as attention_text_figure
    from attractor.heads.plots.monitor import (
        head_curves as head_curves,
        heads_figure as heads_figure,
    )

import_on_first_use(__name__, with_checked_arguments)
