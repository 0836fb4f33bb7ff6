"""Heads of pretrained transformers: what they select, whether that is more than chance, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.audit.captured import (
        Captured as Captured,
        CapturedLayer as CapturedLayer,
        CaptureStatus as CaptureStatus,
    )
    from attractor.audit.captured_file import load_captured as load_captured

import_on_first_use(__name__)
