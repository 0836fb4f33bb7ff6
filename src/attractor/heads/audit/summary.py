"""The numbers of an audit for other programs: one object for each head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor.heads.audit.columns import control_table
from attractor.heads.audit.heads import heads
from attractor.heads.audit.result import Audit
from attractor.heads.audit.words import control_sentence, sentences
from attractor.heads.checkpoints.checkpoint_result import CheckpointAudit
from attractor.heads.checkpoints.checkpoint_words import movement_sentences, movements_of
from attractor.heads.statistics.calibration import calibration

if TYPE_CHECKING:
    import xarray as xr


def summary(
    audit: Audit,
    control: xr.Dataset | None = None,
    checkpoints: CheckpointAudit | None = None,
) -> dict[str, Any]:
    """The findings as JSON takes them: sentences, counts, settings, and an object a head.

    Args:
        audit: What was found.
        control: What ``positive_control`` found, if it was asked for.
        checkpoints: What ``audit_checkpoints`` found, if it was asked for.
    """
    data = audit.data
    findings = sentences(data)
    settings = {key: _plain(value) for key, value in data.attrs.items()}
    asked: dict[str, Any] = {}
    if control is not None:
        findings = [*findings, control_sentence(control)]
        header, rows = control_table(control)
        asked |= {"control": [dict(zip(header, row, strict=True)) for row in rows]}
    if checkpoints is not None:
        findings = [*findings, *movement_sentences(checkpoints.data)]
        moved = {key: _plain(value) for key, value in checkpoints.data.attrs.items()}
        asked |= {"checkpoints": {"settings": moved, "heads": movements_of(checkpoints.data)}}
    return {
        "sentence": findings[0],
        "findings": findings,
        **asked,
        "counts": audit.counts,
        "settings": settings,
        "calibration": _calibration(data),
        "heads": heads(data),
    }


def curve_numbers(curves: xr.Dataset) -> list[dict[str, Any]]:
    """Learning curves as JSON takes them: an object a head.

    Args:
        curves: What ``learning_curves`` returns.
    """
    found = curves.assign(largest_draw=curves["accuracy_null"].max("draw"))
    kept = ["layer", "head", "documents", "accuracy", "accuracy_query_free", "accuracy_offset",
        "largest_draw"]  # fmt: skip
    return [
        {name: found[name].isel(curve=curve).to_numpy().tolist() for name in kept}
        for curve in range(found.sizes["curve"])
    ]


def _calibration(data: xr.Dataset) -> dict[str, Any]:
    """Draws of each null taken for the heads in turn; empty without any."""
    if "accuracy_null" not in data:
        return {}
    found = calibration(data)
    return {
        null: {str(name): _plain(found[name].sel(null=null)) for name in found}
        for null in found["null"].to_numpy().tolist()
    }


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
