"""The numbers of an audit for other programs, and what the words of an audit mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attractor.heads.audit._audit_heads import Pattern
from attractor.heads.audit.columns import (
    HEADS,
    LAYERS,
    NULLS,
    PROMPT,
    Column,
    control_columns,
    control_table,
    margin_columns,
    prompt_columns,
)
from attractor.heads.audit.result import Audit, Learnable, Margin, Prompt, heads
from attractor.heads.audit.words import control_sentence, sentences
from attractor.heads.captured.captured import CaptureStatus, Word
from attractor.heads.checkpoints.checkpoint_result import (
    MOVEMENTS,
    CheckpointAudit,
    Direction,
    movement_sentences,
    movements_of,
)
from attractor.heads.statistics.multiple import calibration
from attractor.heads.statistics.nulls import Null

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


Entry = tuple[str, str]
"""A word, and what it means in a line."""

_PLAIN: dict[str, str] = {
    "audit": "questions asked of every head, with tests that can say no",
    "head": "one of the attentions side by side in a layer: 1.8 is head 8 of layer 1, both from 0",
    "query": "the place in a text that attends: one is drawn from each document",
    "selects": "of the tokens that a query may attend to, those of content: the one with the most",
    "pairing": "which directions of queries meet which directions of keys",
    "content": "all tokens but special ones, padding, and first tokens that serve as sinks",
    "rule": "what predicts selections from keys and queries, learned from half of the documents",
    "draw": "the head with its pairing drawn at random, and a rule learned from what that selects",
    "null": "a way to draw pairings; what is compared with its draws might be one of them",
    "told apart": "beyond all draws, for all heads together: learnable, positional or query-free",
    "all heads together": "in each draw the head that deviates most decides, so that many heads "
    "do not make one of them look like more than chance",
    "alpha": "how often chance alone may pass for more, for all heads together",
    "interval": "95 %, over documents drawn again with replacement",
    "standard deviations": "how far the accuracy is above the mean of the head's own draws, in "
    "theirs",
    "clear": "by p for all heads together, then by those standard deviations",
}
"""Words that sentences and captions use."""
_OF_MARGINS: dict[str, str] = {
    "margin": "by how much the token selected scores higher than the others, at least",
    "margin solution": "the matrix of least norm that selects the same tokens with a margin of 1: "
    "where gradient descent takes a saturated head",
    "certified": "with a bound from below that meets it: the relative gap is what may be missing",
}


def glossary(
    *, margins: bool = True, checkpoints: bool = True, prompts: bool = True
) -> dict[str, list[Entry]]:
    """The words by what they are about, each with a plain line.

    Args:
        margins: Whether those of margin solutions and their control are wanted.
        checkpoints: Whether those of movements are.
        prompts: Whether those of lengths of prompts are.
    """
    found = {
        "Words of the findings and captions": [*_PLAIN.items()],
        "Verdicts on the pairing": _words(Learnable),
        "What a head selects": _words(Pattern),
        "Columns of heads and layers": _columns([*HEADS, *LAYERS]),
        "Nulls": [*_columns(NULLS[1:]), *_words(Null)],
        "Heads that are not asked about": _words(CaptureStatus),
    }
    if prompts:
        found["How long prompts must be"] = [
            *_columns([PROMPT, *prompt_columns(["1"])]),
            *_words(Prompt),
        ]
    if margins:
        found["Margin solutions"] = [
            *_OF_MARGINS.items(),
            *_words(Margin),
            *_columns(margin_columns(["of a norm"])[2:]),
        ]
        found["The positive control"] = _columns(control_columns(["of a norm"]))
    if checkpoints:
        found["Which way heads move"] = [
            *_words(Direction),
            *_columns(MOVEMENTS),
        ]
    return found


def explained(word: str, entries: Iterable[Entry]) -> bool:
    """Whether a heading or verdict has an entry: its own, or that of the words it begins with.

    Args:
        word: The heading, or the verdict with what follows it: a norm, a number, a reason.
        entries: The entries.
    """
    return any(
        word == one or word.startswith((f"{one} ", f"{one}, ", f"{one}:")) for one, _ in entries
    )


def _words(kind: type[Word]) -> list[Entry]:
    return [(str(word), word.message) for word in kind]


def _columns(columns: Iterable[Column]) -> list[Entry]:
    return list(dict(column.entry for column in columns).items())
