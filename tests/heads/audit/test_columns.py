from made_audit import judged, made_audit

from attractor.heads.audit.columns import (
    head_table,
    layer_table,
    limits_in_reach,
    null_table,
    prompt_table,
)
from attractor.heads.audit.result import by_clearness, heads


def test_a_row_for_each_head():
    data = judged("learnable", "not told apart")
    data["accuracy"][0], data["accuracy_low"][0] = [0.51, 0.3], [0.4, 0.2]
    data["accuracy_high"][0], data["sink_share"][0] = [1.0, 0.4], [0.204, 1.0]
    header, rows = head_table(heads(data), without=["no query", "offset", "ahead"])
    assert header[:6] == ("head", "pairing", "accuracy", "nulls", "chance", "p")
    assert [row[:3] for row in rows] == [
        ("0.0", "learnable", ".51 [.40, 1]"),
        ("0.1", "not told apart", ".30 [.20, .40]"),
    ]
    assert [row[header.index("sinks")] for row in rows] == ["20 %", "100 %"]


def test_columns_of_which_nothing_is_known_are_left_out():
    data = judged("too few queries", "too few queries")
    for variable in [
        one for one in data if one.startswith(("accuracy", "advantage", "p", "chance"))
    ]:
        if data[variable].dtype.kind == "f":
            data[variable][:] = float("nan")
    assert head_table(heads(data))[0] == ("head", "pairing", "selects", "sinks", "prompt")


def test_prompts_have_a_column_where_a_length_brings_a_head_near_its_limit():
    data = judged("learnable", "learnable")
    data["prompt"][0] = ["no limit in reach", "not asked: one token"]
    assert limits_in_reach(heads(data)) == [] and "prompt" not in head_table(heads(data))[0]
    data["prompt"][0, 1] = "short"
    header, rows = head_table(heads(data))
    assert [row[header.index("prompt")] for row in rows] == ["no limit in reach", "short"]
    header, rows = prompt_table(limits_in_reach(heads(data)))
    assert header[-3:] == ("tokens for 30 %", "tokens for 10 %", "prompt") and len(rows) == 1


def test_counts_of_each_layer_add_up():
    data = made_audit().data
    header, rows = layer_table(heads(data))
    assert header[0] == "layer" and header[-1] == "clearest head"
    assert [sum(map(int, row[1:-1])) for row in rows] == [12] * 6
    clearest = by_clearness([one for one in heads(data) if one["layer"] == 3])[0]
    assert rows[3][-1].startswith(f"3.{clearest['head']} (")


def test_every_null_is_counted_for_itself():
    header, rows = null_table(judged("learnable", "not told apart", "too few queries"))
    assert [row[0] for row in rows] == ["rotation (the verdict)", "pairing", "signs"]
    assert rows[2][1] == "0 of 2" and header[1] == "heads beyond it"
    assert null_table(judged("too few queries"))[1] == []


def test_heads_without_a_test_have_no_clearest():
    data = judged("too few queries", "too few queries")
    data["accuracy"][:] = float("nan")
    assert layer_table(heads(data))[1][0][-1] == "-"
