from made_checkpoints import made_checkpoint_audit

from attractor.audit.checkpoint_words import movements_of
from attractor.audit.movement_columns import movement_layers, movement_table


def test_movements_have_a_row_for_each_head_or_layer():
    found = movements_of(made_checkpoint_audit(2, 3, 4).data)
    header, rows = movement_table(found)
    assert len(rows) == 24 and all(len(row) == len(header) for row in rows)
    row = dict(zip(header, rows[1], strict=True))
    assert (row["head"], row["direction"], row["cosine"]) == ("0.1", "toward", "0.50")
    last = dict(zip(header, rows[-1], strict=True))
    assert last["direction"] == "not asked: keys are rotated by position" and last["cosine"] == "-"
    assert last["of draws"] == "-"
    header, rows = movement_layers(found)
    assert header[-4:] == ("toward", "away", "elsewhere", "not asked") and len(rows) == 6
    assert rows[0][-4:] == ("1", "1", "2", "0") and rows[-1][-4:] == ("0", "0", "3", "1")
