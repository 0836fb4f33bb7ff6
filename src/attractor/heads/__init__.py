"""Heads of real models: captured from them, audited on texts, watched while they train."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.heads.audit._audit_heads import audit_heads as audit_heads
    from attractor.heads.audit.control import (
        ControlSizes as ControlSizes,
        positive_control as positive_control,
    )
    from attractor.heads.audit.result import (
        Audit as Audit,
        Learnable as Learnable,
        Margin as Margin,
        load_audit as load_audit,
    )
    from attractor.heads.captured.captured import (
        Captured as Captured,
        CapturedLayer as CapturedLayer,
        CaptureStatus as CaptureStatus,
        Projections as Projections,
    )
    from attractor.heads.captured.captured_file import load_captured as load_captured
    from attractor.heads.checkpoints._audit_checkpoints import (
        audit_checkpoints as audit_checkpoints,
    )
    from attractor.heads.checkpoints._learning_curves import learning_curves as learning_curves
    from attractor.heads.checkpoints.checkpoint_result import (
        CheckpointAudit as CheckpointAudit,
        load_checkpoint_audit as load_checkpoint_audit,
    )
    from attractor.heads.example import planted_heads as planted_heads
    from attractor.heads.monitor._watched_heads import (
        trainer_callback as trainer_callback,
        watched_heads as watched_heads,
    )
    from attractor.heads.monitor.head import WatchedHead as WatchedHead
    from attractor.heads.monitor.head_monitor import (
        HeadMonitor as HeadMonitor,
        load_records as load_records,
    )
    from attractor.heads.monitor.record import (
        HeadRecord as HeadRecord,
        RecordStatus as RecordStatus,
    )
    from attractor.heads.statistics.nulls import Null as Null

import_on_first_use(__name__)
