import pytest
from made_audit import judged, made_audit, made_curves

from attractor.heads.audit.result import Learnable, heads
from attractor.heads.audit.words import (
    calibration_sentence,
    curves_sentence,
    head_line,
    prompt_sentence,
    sentence,
    sentences,
)

NOT_ASKED = (
    "whether any head is at a margin solution was not asked: only its training texts could show it."
)


def test_counts_in_one_sentence():
    assert sentence(judged(*["learnable"] * 2, *["not told apart"] * 3)) == (
        "2 of 5 heads pair keys with queries in a way that 19 random pairings do not (5 % for all "
        f"together); {NOT_ASKED}"
    )


def test_none_and_one():
    assert sentence(judged("not told apart", "not told apart")).startswith(
        "None of 2 heads pairs keys with queries"
    )
    assert sentence(judged("learnable")).startswith("1 of 1 head pairs keys")


def test_simpler_rules_and_heads_without_a_test_are_named():
    data = judged("learnable", "positional", "positional", "query-free", "too few queries")
    told = sentence(data)
    assert told.startswith("4 of 5 heads pair")
    assert "; 2 of those a fixed offset predicts as well; " in told
    assert "; 1 of those a rule that ignores the query predicts as well; " in told
    assert "; 1 could not be tested (too few queries); " in told
    data["learnable"][0, 0], data["capture"][0, 0] = "not asked", "not bilinear"
    assert "; 2 could not be tested (1 not asked: not bilinear, 1 too few queries); " in sentence(
        data
    )


def test_further_findings():
    data = judged("learnable", "learnable")
    data["selection"][0] = ["offset +1", "sink"]
    data["prompt"][0] = ["not asked: one token", "short"]
    assert sentences(data)[1:] == ["What heads select: 1 a fixed offset, 1 sink."]
    said = "Prompts that heads need to be near their limit: 1 short."
    assert prompt_sentence(heads(data)) == said


def test_a_head_in_a_line():
    data = judged("learnable")
    data["accuracy"][0], data["accuracy_low"][0], data["accuracy_high"][0] = 0.51, 0.4, 1.0
    assert head_line(heads(data)[0]).startswith("0.0   learnable: accuracy .51 [.40, 1], nulls .")


@pytest.mark.parametrize("word", list(Learnable))
def test_every_verdict_has_a_sentence(word):
    assert sentence(judged(str(word))).endswith(NOT_ASKED)


def test_from_how_many_documents_on_curves_are_above_their_draws():
    curves = made_curves([(3, 6, 12)] * 3 + [(4, 8, 16)] * 2)
    said = "Above all of their 9 draws: 0.0, 1.2 from 6 documents on; 2.4 from 8 documents on; "
    assert curves_sentence(curves) == f"{said}2 of 5 never or not to the end."
    back = curves.isel(curve=[0])
    back["accuracy"][0, 1] = 0.0  # and above again with all of them
    assert curves_sentence(back) == "Above all of their 9 draws: 0.0 from 12 documents on."
    always = back.assign(accuracy=back["accuracy"] * 0 + 1)
    assert "0.0 from 3 documents on." in curves_sentence(always)
    none = curves.isel(curve=[1])
    assert curves_sentence(none) == "Above all of their 9 draws: 1 of 1 never or not to the end."


def test_draws_taken_for_the_heads_are_counted():
    data = made_audit(2, 3, draws=39).data
    said = calibration_sentence(data)
    assert said.startswith("Each of the 39 draws of rotation was taken for the heads in turn: ")
    assert "2 are told apart; tested head by head, " in said or "1 are told apart" in said
    assert "at most 5 % of them" in said and said.endswith("not that the null is fair to heads.")
