"""The numbers of an audit for other programs: one object for each head."""

from __future__ import annotations

from typing import Any

from attractor.audit.heads import heads
from attractor.audit.result import Audit
from attractor.audit.words import sentences


def summary(audit: Audit) -> dict[str, Any]:
    """The findings as JSON takes them: sentences, counts, settings, and an object a head.

    Args:
        audit: What was found.
    """
    data = audit.data
    findings = sentences(data)
    settings = {key: _plain(value) for key, value in data.attrs.items()}
    return {
        "sentence": findings[0],
        "findings": findings,
        "counts": audit.counts,
        "settings": settings,
        "heads": heads(data),
    }


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
