"""Calls of ``attractor.heads.audit``: audits of heads that were captured."""

from __future__ import annotations

from collections.abc import Iterator

from attractor import heads
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call


def calls() -> Iterator[Call]:
    """One call of each."""
    yield Call(heads.planted_heads, documents=3)
    yield Call(
        heads.audit_heads, captured=ex.PLANTED_HEADS, draws=19, layers=[1], heads=None,
        takes={"layers": "sequence array objects none", "norms": "array"}, nan=True,
        blames={"draws": "alpha", "alpha": "draws", "heads": "layers"},
    )  # fmt: skip
    yield Call(
        heads.audit_checkpoints, checkpoints=ex.CHECKPOINTS, draws=19, layers=[0], heads=None,
        takes={"layers": "sequence array objects none"}, nan=True,
        blames={"draws": "alpha", "alpha": "draws", "heads": "layers"},
    )  # fmt: skip
    yield Call(
        heads.learning_curves, captured=ex.TESTED_HEADS, audit=ex.TESTED_AUDIT, heads=[(1, 0)],
        draws=1, takes={"heads": "sequence array objects"}, blames={"captured": "audit"},
    )  # fmt: skip
    yield Call(heads.ControlSizes, width=2, tokens=4, sequences=2, blames={"width": "sequences"})
    yield Call(heads.ControlSizes.of, captured=ex.PLANTED_HEADS)
    yield Call(heads.Audit.save, self=ex.AUDIT, path="audit.nc")
    yield Call(heads.load_audit, path=given.AUDIT_FILE)
    yield Call(heads.CheckpointAudit.save, self=ex.CHECKPOINT_AUDIT, path="audit.nc")
    yield Call(heads.load_checkpoint_audit, path=given.CHECKPOINT_AUDIT_FILE)
