"""What the statements on next-token prediction say of single corpora."""

import dataclasses

import numpy as np
import pytest
from scipy.special import softmax

from attractor.corpora.two_stages.two_stage import train_two_stages
from attractor.corpora.two_stages.two_stage_measures import measure_two_stages
from attractor.files import load
from attractor.papers import Outcome, examine, get_claim
from attractor.papers.ledger.check import check_claim
from attractor.papers.measurements.near_misses import turned
from attractor.papers.next_token.data import grammar, missing_relations, outnumbered
from attractor.papers.next_token.training import (
    attention_solution,
    feed_forward_solution,
    feed_forward_weights,
    first_stage,
)


def test_the_closed_form_fails_where_relations_are_missing(tmp_path):
    claim, case = get_claim("next-token/closed-form"), missing_relations()
    assert examine(claim, case).outcome is Outcome.FAILS
    # a over c, d, e: 3/4; b over q: 1/2; a over q costs nothing then. The formula: 2 * 4 / (2 + 4).
    assert float(attention_solution(case).value) == pytest.approx(np.sqrt(5 / 4), rel=1e-9)
    assert examine(claim, case).measured.details["norm stated"] == pytest.approx(np.sqrt(4 / 3))

    result = check_claim(claim, [case])
    smallest = result.counterexample.case
    assert result.outcome is Outcome.FAILS
    # one optimal token with three others, one with the query alone: nothing smaller fails
    assert smallest.corpus.vocabulary_size == 5 and smallest.size < case.size
    smallest.save(tmp_path / "counterexample.npz")
    (again,) = load(tmp_path / "counterexample.npz").data_sets()
    first, second = examine(claim, smallest), examine(claim, again)
    assert second.outcome is Outcome.FAILS and first.measured == second.measured


def test_with_complete_orders_it_says_nothing_of_them():
    claim = get_claim("next-token/closed-form-of-complete-orders")
    found = examine(claim, missing_relations())
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET
    assert found.reason.startswith("complete orders: 3 relations")


def test_the_upper_bound_of_logit_gaps_fails_for_orthonormal_embeddings():
    claim = get_claim("next-token/logit-gaps-from-above")
    found = examine(claim, grammar())
    assert found.outcome is Outcome.FAILS
    # from zero the gap over the bound is 4 |W*| / 3 at every number of steps, |W*|^2 = V - 1
    assert found.measured.value == pytest.approx(4 * np.sqrt(3) / 3, rel=1e-9)
    assert found.measured.details["gap"] == pytest.approx(found.measured.details["T eta/|W*|"])
    assert examine(claim, claim.example()).outcome is Outcome.HOLDS
    below = examine(get_claim("next-token/logit-gaps-from-below"), grammar())
    assert below.outcome is Outcome.HOLDS


def test_printed_bounds_on_directions_are_far_from_binding():
    found = examine(get_claim("next-token/attention-direction-bound"), grammar())
    assert found.outcome is Outcome.HOLDS and found.measured.details["bound in the end"] > 1e5
    assert found.measured.details["least constant that would do"] < 54 / 1e7
    found = examine(get_claim("next-token/feed-forward-direction-bound"), grammar())
    assert found.outcome is Outcome.HOLDS and found.measured.details["bound in the end"] > 1
    assert 0.005 < found.measured.details["least constant that would do"] < 0.05


def test_the_gradient_of_the_feed_forward_layer_needs_no_correction():
    claim = get_claim("next-token/feed-forward-gradient")
    assert examine(claim, grammar()).measured.details["largest a needed"] < 1e-12
    # with the published one, directions at a small angle do as well, and not without
    turned_little = claim.about(turned(feed_forward_solution(grammar()).W, 0.1, 0))
    assert examine(turned_little, grammar()).outcome is Outcome.HOLDS
    exact = get_claim("next-token/feed-forward-gradient-without-correction")
    assert examine(exact.about(turned(feed_forward_solution(grammar()).W, 0.1, 0)),
                   grammar()).outcome is Outcome.FAILS  # fmt: skip


@pytest.mark.slow
def test_outnumbered_optimal_tokens_lose_attention_at_first():
    claim = get_claim("next-token/optimal-attention-grows")
    name = "optimal token as frequent as any"
    assert examine(claim, outnumbered()).reason.startswith(name)
    without = [each for each in claim.given if each.name != name]
    found = examine(dataclasses.replace(claim, assumptions=without), outnumbered())
    assert found.checks["zero start"].met
    assert found.outcome is Outcome.FAILS and found.measured.value > 1e-6


def test_from_zero_the_first_stage_is_the_closed_form():
    case = grammar()
    run = first_stage(case, 0)
    W = feed_forward_weights(run)[-1]
    # columns: one at what follows, less one over the vocabulary
    labels = case.structure.collocation.next_token
    expected = np.eye(4)[labels].T - 1 / 4
    np.testing.assert_allclose(feed_forward_solution(case).W, expected, atol=1e-9)
    np.testing.assert_allclose(W / np.linalg.norm(W), expected / np.sqrt(3), atol=1e-12)


def predicted(case, run, sentence):
    """Attention on the tokens of a sentence, and the logits of the next one."""
    context = [case.corpus.vocabulary.index(word) for word in sentence]
    W, W_ov = run.attention.W()[0, 0], run.feed_forward.W()[0, 0]
    attention = softmax(W[context, context[-1]])
    return attention, W_ov[:, context] @ attention


def test_the_worked_example_with_the_published_steps():
    case = grammar()
    names = case.corpus.vocabulary
    assert case.structure.collocation.words() == {"S": "V", "V": "O", "O": "P", "P": "S"}
    orders = {
        f"{names[first]} >_{names[query]} {names[second]}"
        for query, first, second in case.structure.orders.edges
    }
    assert orders == {"S >_S P", "V >_V S", "O >_O S", "O >_O V", "O >_P P"}
    run = train_two_stages(case.corpus, record=[900])
    found = measure_two_stages(run).isel(instance=0, step=-1)
    assert float(found["norm"]) == pytest.approx(22.48, abs=0.01)
    assert float(found["correlation"]) == pytest.approx(0.9995, abs=5e-5)
    follower = run.feed_forward.W()[0, 0][names.index("V"), names.index("S")]
    other = run.feed_forward.W()[0, 0][names.index("P"), names.index("S")]
    assert follower - other == pytest.approx(900 * 0.1 / np.sqrt(3), rel=1e-9)
    for sentence, explaining, follower in (("SP", "S", "V"), ("OSP", "O", "P"), ("VP", "V", "O")):
        attention, logits = predicted(case, run, sentence)
        assert names[int(np.argmax(logits))] == follower
        assert attention[sentence.index(explaining)] == pytest.approx(0.9995, abs=5e-4)
    attention, logits = predicted(case, run, "SVP")  # two tokens that no relation under P names
    np.testing.assert_allclose(attention[:2], 0.4999, atol=2e-4)
    assert {names[place] for place in np.argsort(logits)[-2:]} == {"V", "O"}
    highest = np.sort(logits)[-2:]
    assert highest[1] - highest[0] < 1e-9
