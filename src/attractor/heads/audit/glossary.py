"""What the words of an audit mean: one list for its report and for the documentation."""

from __future__ import annotations

from collections.abc import Iterable

from attractor.heads.audit.attention_pattern import Pattern
from attractor.heads.audit.columns import (
    HEADS,
    LAYERS,
    NULLS,
    PROMPT,
    Column,
    control_columns,
    margin_columns,
    prompt_columns,
)
from attractor.heads.audit.result import Learnable, Margin, Prompt
from attractor.heads.captured.captured import CaptureStatus
from attractor.heads.captured.word import Word
from attractor.heads.checkpoints.checkpoint_result import Direction
from attractor.heads.checkpoints.checkpoint_words import MOVEMENTS
from attractor.heads.statistics.nulls import Null

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
