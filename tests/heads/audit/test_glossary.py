import pytest
from made_audit import made_audit, made_control, with_margins
from made_checkpoints import made_checkpoint_audit

from attractor.heads import CaptureStatus, Learnable, Margin, Null
from attractor.heads.audit._audit_heads import Pattern
from attractor.heads.audit.columns import (
    control_table,
    head_table,
    layer_table,
    margin_table,
    null_table,
    prompt_table,
)
from attractor.heads.audit.result import Prompt, heads
from attractor.heads.audit.summary import explained, glossary
from attractor.heads.checkpoints.checkpoint_result import Direction, movement_table, movements_of

ENTRIES = [entry for entries in glossary().values() for entry in entries]


def tables():
    audit = with_margins(made_audit(2, 3))
    found, moved = heads(audit.data), movements_of(made_checkpoint_audit(2, 2, 3).data)
    return {
        "heads": head_table(found),
        "layers": layer_table(found),
        "nulls": null_table(audit.data),
        "margins": margin_table(found),
        "prompts": prompt_table(found),
        "control": control_table(made_control()),
        "movements": movement_table(moved),
    }


@pytest.mark.parametrize("kind", tables())
def test_every_column_is_explained(kind):
    unexplained = [name for name in tables()[kind][0] if not explained(name, ENTRIES)]
    assert unexplained == []


@pytest.mark.parametrize(
    "kind", [CaptureStatus, Direction, Learnable, Margin, Null, Pattern, Prompt]
)
def test_every_verdict_is_explained(kind):
    assert all((str(word), word.message) in ENTRIES and word.message for word in kind)


def test_words_that_an_audit_finds_are_explained():
    data = made_audit(3, 4).data
    for name in ("selection", "prompt", "learnable"):
        words = set(data[name].to_numpy().flat)
        assert words and all(explained(word, ENTRIES) for word in words)
    assert explained("at the margin solution (nuclear)", ENTRIES)
    assert not explained("never heard of", ENTRIES) and not explained("headless", ENTRIES)


def test_what_was_not_asked_is_left_out():
    short = [*glossary(margins=False, checkpoints=False, prompts=False)]
    assert len(short) < len(glossary()) and "Margin solutions" not in short
