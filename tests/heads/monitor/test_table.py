import dataclasses

import numpy as np
import pytest

import attractor as at
from attractor.heads import HeadMonitor, HeadRecord, RecordStatus, WatchedHead
from attractor.heads.monitor.record import latest_table, notes, reading, records_seen
from attractor.support.errors import InvalidInputError

RNG = np.random.default_rng(0)
KEYS, QUERIES = RNG.normal(size=(4, 5, 6)), RNG.normal(size=(4, 6))
W = RNG.normal(size=(6, 2)) @ RNG.normal(size=(2, 6))


def record(probability, **numbers):
    selected, shape = np.array([[2], [2], [0], [-1]]), (4, 1)
    numbers = {"margin_ratio": 0.02, "ties": 1.0, "gap": 1e-9, "constraints": 12.0} | numbers
    weights = np.full(shape, probability)
    return HeadRecord(3, 3, RecordStatus.OPTIMAL, "cold", selected, weights, numbers)


def cells(found, words=None, draws=None):
    draws = {} if draws is None else {"head": np.array(draws)}
    table = latest_table({"head": found}, at.Frobenius(), {"head": words}, draws)
    return {str(column.header): next(iter(column.cells)) for column in table.columns}


def test_a_ratio_says_nothing_before_attention_is_saturated():
    assert reading(record(0.25), None) == "not saturated yet"
    assert reading(record(0.25), np.array([0.001])) == "not saturated yet"
    assert reading(record(0.995), None) == "saturated"
    assert reading(record(0.995), np.array([0.001, 0.019])) == "above random"
    assert reading(record(0.995), np.array([0.001, 0.021])) == "no more than random"
    postponed = HeadRecord(3, 3, RecordStatus.POSTPONED)
    assert reading(postponed, None) == "postponed"
    assert any("not saturated yet" in line for line in notes({"head": record(0.25)}, {}))
    assert not any("saturated" in line for line in notes({"head": record(0.995)}, {}))


def test_heads_at_different_steps_are_not_to_be_compared():
    first, later = record(0.995), dataclasses.replace(record(0.995), step=1200)
    said = "Heads are shown at different steps, 3 to 1,200: do not compare them with each other. "
    assert any(line.startswith(said) for line in notes({"a": first, "b": later}, {}))
    assert not any("different steps" in line for line in notes({"a": first, "b": first}, {}))


def test_tokens_have_their_texts_or_else_their_positions():
    found = cells(record(0.25))
    assert found["selects most often"] == "position 2 in 2 of 3; 1 tie"
    assert found["highest weight, mean"] == "25.0 %"
    assert found["margin ratio"] == "0.0200"
    words = (*[("[CLS]", "a", "b")] * 2, ("b", "c", "d"), ("e", "f", "g"))
    assert cells(record(1.0), words)["selects most often"] == '"b" in 3 of 3; 1 tie'
    assert cells(record(1.0), words[:1])["selects most often"].startswith("position")
    assert cells(record(1.0), draws=[0.5, 0.25])["largest of random"] == "0.5000"
    assert set(cells(None).values()) == {"head", "-"}


def test_a_picture_of_records_says_what_is_seen_in_it():
    monitor = HeadMonitor(WatchedHead("a", lambda W: W, (KEYS, QUERIES)), every=1, budget=None)
    assert records_seen(monitor.to_xarray()) == "No records yet."
    for step in range(2):
        monitor(step, W * (1 + step))
    said = records_seen(monitor.to_xarray())
    assert said.startswith("Steps 0 to 1. a: highest weight rises from ")
    assert "margin ratio stays near " in said and said == monitor._seen()


def test_random_matrices_are_held_against_what_they_select_themselves():
    tokens = at.Tokens(KEYS, QUERIES)
    monitor = HeadMonitor([WatchedHead(name, lambda W: W, tokens) for name in ("a", "b")])
    assert monitor.compare_with_random(3) == {}  # nothing has been recorded
    monitor.record(0, W)
    found = monitor.compare_with_random(3, seed=5)
    assert found.keys() == monitor.random_ratios.keys() == {"a", "b"}
    np.testing.assert_array_equal(found["a"], monitor.random_ratios["a"])
    assert "random: 3 matrices" in str(monitor)
    rng = at.support.randomness.generator(5, 1, purpose="random matrices in place of heads")
    for ratio in monitor.random_ratios["b"]:
        R = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 6))  # of the rank of the head
        selection = at.attended_tokens(tokens, R)
        problem = at.MarginProblem.from_selection(tokens, selection)
        solution = at.solve(problem, at.Frobenius())
        expected = problem.margins(R).min() / np.linalg.norm(R) * solution.norm
        assert ratio == pytest.approx(expected, rel=1e-8)
    assert not np.array_equal(*monitor.random_ratios.values())
    with pytest.raises(InvalidInputError, match="draws"):
        monitor.compare_with_random(0)


@pytest.mark.parametrize("words", ["text", [["a", 3]], [1], 5, [["a"] * 5] * 3, [["a"] * 6] * 4])
def test_words_are_lists_of_texts_as_many_as_tokens(words):
    with pytest.raises(InvalidInputError, match=r"^words"):
        WatchedHead("a", lambda W: W, (KEYS, QUERIES), words=words)
    ragged = WatchedHead("a", lambda W: W, lambda W: (KEYS, QUERIES), words=[["a", "b"], ["c"]])
    assert ragged.words == (("a", "b"), ("c", ""))
    assert hash(ragged)
