"""Probabilities that random sequences can be selected: Cover's theorem, counting and programs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from attractor.errors import InvalidInputError
from attractor.margin import feasibility_probability, selection_capacity
from attractor.margin.capacity import pooled_tokens


@pytest.mark.parametrize(("n", "unknowns"), [(1, 1), (5, 3), (18, 9), (30, 16), (2100, 1024)])
def test_pairs_follow_covers_theorem(n, unknowns):
    cover = Fraction(2 * sum(math.comb(n - 1, i) for i in range(min(n, unknowns))), 2**n)
    assert feasibility_probability(n, 2, unknowns) == pytest.approx(float(cover), rel=1e-9)


def test_capacities_of_two_and_three_tokens():
    assert selection_capacity(2) == pytest.approx(2, rel=1e-12)
    assert selection_capacity(3) == pytest.approx(6 / 5, rel=1e-12)


@pytest.mark.parametrize("T", [2, 3, 7, 64, 1000, 10_000])
def test_pooled_tokens_are_a_distribution(T):
    """That they add up, evens as odds, is Gauss and Bonnet's theorem for intrinsic volumes."""
    found = pooled_tokens(T)
    assert found.sum() == pytest.approx(1, abs=1e-9)
    assert found[::2].sum() == pytest.approx(0.5, abs=1e-9)
    assert found[0] == pytest.approx(1 / T, rel=1e-9)


def test_pooled_tokens_are_those_of_drawn_scores(rng):
    T, draws = 9, 20_000
    scores = rng.normal(size=(draws, T))
    others = -np.sort(-scores[:, 1:], axis=1)
    before = np.cumsum(np.column_stack([scores[:, 0], others[:, :-1]]), axis=1)
    pooled = (others > before / np.arange(1, T)).sum(1)
    for k, probability in enumerate(pooled_tokens(T)):
        spread = math.sqrt(probability * (1 - probability) / draws)
        assert abs((pooled == k).mean() - probability) < 4.5 * spread + 1e-4


def test_three_tokens_are_feasible_as_often_as_linear_programs_say(rng):
    n, T, unknowns, draws = 6, 3, 5, 300
    feasible = 0
    for _ in range(draws):
        tokens = rng.normal(size=(n, T, unknowns))
        rows = (tokens[:, 1:] - tokens[:, :1]).reshape(-1, unknowns)
        answer = linprog(np.zeros(unknowns), rows, -np.ones(len(rows)), bounds=(None, None))
        feasible += answer.status == 0
    probability = feasibility_probability(n, T, unknowns)
    assert 0.3 < probability < 0.7
    spread = math.sqrt(probability * (1 - probability) / draws)
    assert abs(feasible / draws - probability) < 4 * spread


def test_half_of_the_data_sets_are_feasible_at_the_capacity():
    for T in (3, 16):
        n = round(selection_capacity(T) * 1024)
        assert feasibility_probability(n, T, 1024) == pytest.approx(0.5, abs=0.05)
        assert feasibility_probability(round(0.8 * n), T, 1024) > 0.999


def test_refusals():
    with pytest.raises(InvalidInputError, match="T"):
        selection_capacity(1)
    with pytest.raises(InvalidInputError, match="unknowns"):
        feasibility_probability(3, 2, 0)
