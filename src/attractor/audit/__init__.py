"""Heads of pretrained transformers: what they select, whether that is more than chance, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.audit._audit_checkpoints import audit_checkpoints as audit_checkpoints
    from attractor.audit._audit_heads import audit_heads as audit_heads
    from attractor.audit._learning_curves import learning_curves as learning_curves
    from attractor.audit.captured import (
        Captured as Captured,
        CapturedLayer as CapturedLayer,
        CaptureStatus as CaptureStatus,
        Projections as Projections,
    )
    from attractor.audit.captured_file import load_captured as load_captured
    from attractor.audit.checkpoint_result import (
        CheckpointAudit as CheckpointAudit,
        load_checkpoint_audit as load_checkpoint_audit,
    )
    from attractor.audit.control import (
        ControlSizes as ControlSizes,
        positive_control as positive_control,
    )
    from attractor.audit.nulls import Null as Null
    from attractor.audit.planted import planted_heads as planted_heads
    from attractor.audit.result import (
        Audit as Audit,
        Learnable as Learnable,
        Margin as Margin,
        load_audit as load_audit,
    )

import_on_first_use(__name__)
