import json

import pytest
from made_checkpoints import made_checkpoint_audit

from attractor.heads.checkpoints.checkpoint_result import (
    by_direction,
    movement_sentences,
    movement_table,
    movements_of,
)


def test_every_head_is_an_object_that_json_can_hold():
    audit = made_checkpoint_audit(2, 3, 4)
    found = json.loads(json.dumps(movements_of(audit.data), allow_nan=False))
    assert len(found) == 24
    toward, not_asked = found[1], found[-1]
    assert (toward["checkpoint"], toward["layer"], toward["head"]) == ("0", 0, 1)
    assert toward["direction"] == "toward" and toward["cosine"] == {"frobenius": 0.5}
    draws = toward["cosine_null"]
    assert draws["smallest"] < draws["mean"] < draws["largest"]
    assert toward["deviations_from_draws"] == pytest.approx(
        (0.5 - draws["mean"]) / draws["deviation"]
    )
    assert not_asked["cosine"] == {"frobenius": None} and not_asked["cosine_null"]["mean"] is None
    assert not_asked["deviations_from_draws"] is None


def test_heads_that_were_not_asked_about_are_left_out():
    data = made_checkpoint_audit(1, 2, 3).data
    data["direction"][0, 0, 0] = ""
    assert len(movements_of(data)) == 5


def test_sentences_count_every_head_once():
    first, second = movement_sentences(made_checkpoint_audit(2, 3, 4).data)
    assert first.startswith("From 0 to 2, directions of 12 heads")
    assert first.endswith("19 draws of turned heads (5 % for all together): 10 elsewhere, "
        "1 toward, 1 away.")  # fmt: skip
    assert second.endswith("11 elsewhere, 1 not asked.")


def test_the_table_has_a_row_for_each_head_those_with_a_direction_first():
    header, rows = movement_table(by_direction(movements_of(made_checkpoint_audit(2, 3, 4).data)))
    assert len(rows) == 24 and all(len(row) == len(header) for row in rows)
    first, second, *_, last = (dict(zip(header, row, strict=True)) for row in rows)
    assert (first["head"], first["direction"], first["cosine"]) == ("0.1", "toward", "0.50")
    assert second["direction"] == "away"
    assert last["direction"] == "not asked: keys are rotated by position"
    assert last["cosine"] == last["from draws"] == "-"


def test_of_many_heads_the_first_are_printed():
    shown = str(made_checkpoint_audit(1, 12, 12))
    assert "toward" in shown and shown.endswith("more are in its data.")
