import json

import pytest
from made_checkpoints import made_checkpoint_audit

from attractor.audit.checkpoint_words import (
    movement_sentences,
    movement_summary,
    movements_of,
)


def test_every_head_is_an_object_that_json_can_hold():
    audit = made_checkpoint_audit(2, 3, 4)
    found = json.loads(json.dumps(movement_summary(audit.data), allow_nan=False))
    assert found["settings"] == {"draws": 19, "alpha": 0.05, "seed": 0, "last": "2"}
    assert len(found["heads"]) == 24
    toward, not_asked = found["heads"][1], found["heads"][-1]
    assert (toward["checkpoint"], toward["layer"], toward["head"]) == ("0", 0, 1)
    assert toward["direction"] == "toward" and toward["cosine"] == {"frobenius": 0.5}
    draws = toward["cosine_null"]
    assert draws["smallest"] < draws["mean"] < draws["largest"]
    assert toward["deviations_from_draws"] == pytest.approx(
        (0.5 - draws["mean"]) / draws["deviation"]
    )
    assert not_asked["cosine"] == {"frobenius": None} and not_asked["cosine_null"]["mean"] is None


def test_heads_that_were_not_asked_about_are_left_out():
    data = made_checkpoint_audit(1, 2, 3).data
    data["direction"][0, 0, 0] = ""
    assert len(movements_of(data)) == 5


def test_sentences_count_every_head_once():
    first, second, *rest = movement_sentences(made_checkpoint_audit(2, 3, 4).data)
    assert len(rest) == 2
    assert first.startswith("From 0 to 2, of 12 heads ") and "shrink" in first
    assert "shrinks" not in first.replace("1 shrinks", "") and "median norm ratio 0.9" in first
    assert second.endswith("19 draws of turned heads (5 % for all together): 10 elsewhere, "
        "1 toward, 1 away.")  # fmt: skip
    assert rest[1].endswith("11 elsewhere, 1 not asked.")
