"""The checker can fail: each thing wrong with an answer is found, by the check meant for it."""

import dataclasses
import functools

import numpy as np
import pytest

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten
from attractor.margin import MarginProblem, solve
from fuzzing.exact_check import (
    INFEASIBLE,
    NOT_UNIQUE,
    OPTIMAL,
    UNIQUE,
    Known,
    Problem,
    contradicts,
    disagreements,
    faults,
    meets,
    solution_fault,
)
from fuzzing.margin_problems import answer_of


@functools.cache
def example(kind):
    """A problem, the answer to it, and what is known; nothing is wrong with any."""
    rng = np.random.default_rng(3)
    left, right, W = rng.normal(size=(8, 3)), rng.normal(size=(8, 3)), rng.normal(size=(3, 3))
    margins = np.einsum("md,de,me->m", left, W, right)
    left *= np.sign(margins)[:, None]
    bounds, equality, geometry, known = np.ones(8), np.zeros(8, bool), Frobenius(), Known()
    if kind in ("nuclear", "power", "plain"):
        geometry = {"nuclear": Nuclear(), "power": Schatten(1.5), "plain": Frobenius()}[kind]
        known = Known(feasible=2 * W / np.abs(margins).min())
    if kind == "equalities":
        bounds, equality = np.abs(margins), np.arange(8) < 3
    if kind == "infeasible":
        left[1], right[1] = -2 * left[0], right[0]
        known = Known(contradiction=np.array([2.0, 1, 0, 0, 0, 0, 0, 0]))
    if kind == "many":
        left, right = np.array([[1.0, 2.0]]), np.array([[1.0, 1.0]])
        bounds, equality, geometry = np.ones(1), np.zeros(1, bool), Lp(1)
    if kind == "vector":
        left, right, geometry = left[:1], np.ones((1, 1)), Nuclear()
        bounds, equality = bounds[:1], equality[:1]
    problem = Problem(left, right, bounds, equality)
    return problem, answer_of(solve(MarginProblem(left, right, bounds, equality), geometry)), known


def other(answer, **changes):
    return dataclasses.replace(answer, **changes)


def evidence(answer, **changes):
    return other(answer, rank_evidence={**answer.rank_evidence, **changes})


def heaviest(answer, factor):
    x = answer.multipliers.copy()
    x[np.argmax(np.abs(x))] *= factor
    return other(answer, multipliers=x)


def moved(answer, far):
    return other(answer, W=answer.W + far * np.arange(answer.W.size).reshape(answer.W.shape))


CORRUPTIONS = {
    "flip a multiplier": ("plain", lambda a: heaviest(a, -1.0), "multipliers"),
    "lose a multiplier": ("plain", lambda a: heaviest(a, np.nan), "multipliers"),
    "double a multiplier": ("plain", lambda a: heaviest(a, 2.0), "bound"),
    "shorten W": (
        "plain", lambda a: other(a, W=a.W * (1 - 1e-8), norm=a.norm * (1 - 1e-8)),
        "margins",
    ),
    "shorten W, and hide it": (
        "plain", lambda a: other(a, W=a.W * 0.9, norm=a.norm * 0.9),
        "margin",
    ),
    "move W": ("plain", lambda a: moved(a, 1e-6), "tolerance"),
    "move W off an equality": ("equalities", lambda a: moved(a, 1e-9), "margins"),
    "lose W": ("plain", lambda a: other(a, W=a.W * np.nan), "matrix"),
    "another status": ("plain", lambda a: other(a, status="solved"), "status"),
    "a norm too small": ("plain", lambda a: other(a, norm=a.norm * (1 - 1e-9)), "norm"),
    "a value too small": ("plain", lambda a: other(a, value=a.value * (1 - 1e-12)), "value"),
    "a value too large": ("plain", lambda a: other(a, value=a.value * (1 + 1e-8)), "value"),
    "a margin too large": ("plain", lambda a: other(a, margin=a.margin * (1 + 1e-12)), "margin"),
    "a bound too large": (
        "plain", lambda a: other(a, dual_value=a.dual_value * (1 + 1e-12)),
        "bound",
    ),
    "a gap too small": ("plain", lambda a: other(heaviest(a, 1 + 1e-7), gap=1e-16), "gap"),
    "a gap too large": ("plain", lambda a: other(a, gap=2e-9), "tolerance"),
    "a residual too small": ("plain", lambda a: other(a, kkt_residual=-1.0), "kkt residual"),
    "equalities too good": (
        "equalities", lambda a: other(a, equality_residual=-1.0),
        "equality residual",
    ),
    "too little to contradict": (
        "plain", lambda a: other(a, farkas_residual=0.9 * a.farkas_residual),
        "farkas residual",
    ),
    "no support": ("plain", lambda a: other(a, support=a.support & False), "support"),
    "infeasible though planted": (
        "plain", lambda a: other(a, status=INFEASIBLE, W=a.W * np.nan),
        "planted",
    ),
    "optimal though contradictory": ("infeasible", lambda a: other(a, status=OPTIMAL), "planted"),
    "a bound above what is planted": ("plain", lambda a: other(a, dual_value=1e9), "planted"),
    "a matrix though infeasible": ("infeasible", lambda a: other(a, W=np.ones((3, 3))), "matrix"),
    "no contradiction": ("infeasible", lambda a: heaviest(a, 1 + 1e-9), "contradiction"),
    "a sum of bounds below zero": (
        "infeasible", lambda a: other(a, multipliers=0 * a.multipliers),
        "contradiction",
    ),
    "unique though infeasible": (
        "infeasible", lambda a: other(a, uniqueness=UNIQUE),
        "uniqueness",
    ),
    "a rank too high": ("power", lambda a: other(a, rank=a.rank + 4), "rank"),
    "a nuclear rank too high": ("nuclear", lambda a: other(a, rank=a.rank + 1), "rank"),
    "a multiplicity too low": ("nuclear", lambda a: evidence(a, multiplicity=1), "rank"),
    "a separation too wide": (
        "nuclear", lambda a: evidence(a, separation=a.rank_evidence["separation"] + 1e-6),
        "rank",
    ),
    "no tail": ("nuclear", lambda a: evidence(a, tail_bound=0.0), "rank"),
    "another smallest kept": ("nuclear", lambda a: evidence(a, smallest_kept=1.0), "rank"),
    "a witness moved": (
        "many", lambda a: other(a, other_solution=a.other_solution * (1 - 1e-8)),
        "witness",
    ),
    "a witness too long": (
        "many", lambda a: other(a, other_solution=a.other_solution * (1 + 1e-8)),
        "witness",
    ),
    "a witness that is W": ("many", lambda a: other(a, other_solution=a.W), "witness"),
    "no witness": ("many", lambda a: other(a, other_solution=a.W * np.nan), "witness"),
    "a witness though unique": ("many", lambda a: other(a, uniqueness=UNIQUE), "witness"),
    "not unique though a vector": (
        "vector", lambda a: other(a, uniqueness=NOT_UNIQUE, other_solution=a.W),
        "uniqueness",
    ),
    "not unique though convex": (
        "plain", lambda a: other(a, uniqueness=NOT_UNIQUE, other_solution=a.W),
        "uniqueness",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in CORRUPTIONS.values()}))
def test_nothing_is_wrong_with_answers_as_they_are(kind):
    assert faults(*example(kind)) == []


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_what_is_wrong_with_an_answer_is_found(name):
    kind, corrupt, check = CORRUPTIONS[name]
    problem, answer, known = example(kind)
    found = faults(problem, corrupt(answer), known)
    assert any(fault.startswith(f"{check}: ") for fault in found), found


def test_a_value_other_than_the_known_one_is_found():
    problem, answer, _ = example("plain")
    right = {("entrywise", 2.0): answer.value}
    assert faults(problem, answer, Known(optimum=right)) == []
    wrong = {("entrywise", 2.0): answer.value * (1 + 1e-8)}
    assert faults(problem, answer, Known(optimum=wrong))[0].startswith("planted: value")


def test_what_is_planted_is_believed_only_exactly():
    problem, _, known = example("plain")
    assert meets(problem, known.feasible)
    short = known.feasible.copy()
    short[0] -= 100
    assert not meets(problem, short)
    problem, _, known = example("infeasible")
    assert contradicts(problem, known.contradiction)
    assert not contradicts(problem, known.contradiction * [1 + 2**-50, 1, 1, 1, 1, 1, 1, 1])
    assert not contradicts(problem, -known.contradiction)


def test_what_once_passed_for_a_solution_is_none():
    left, right = np.array([[0.01], [-0.0001]]), np.array([[-1.0, 0, 0], [-2e5, 0, 1e-4]])
    problem = Problem(left, right, np.ones(2), np.zeros(2, bool))
    W = solve(MarginProblem(left, right), Nuclear()).W
    value = float(np.linalg.norm(W))
    assert solution_fault(problem, "schatten", 1, value, W) is None
    aside = W + 1e-3 * value * np.array([[0.0, 1.0, 0.0]])
    assert "norm" in solution_fault(problem, "schatten", 1, value, aside)
    rounded = W * [1 + 1e-10, 1, 1]
    assert "constraint 1" in solution_fault(problem, "schatten", 1, value, rounded)


def test_answers_that_disagree_are_found():
    problem, plain, _ = example("plain")
    _, nuclear, _ = example("nuclear")
    assert disagreements(problem.shape, [plain, nuclear]) == []
    wrong = other(plain, status=INFEASIBLE)
    assert any("infeasible" in text for text in disagreements(problem.shape, [wrong, nuclear]))
    wrong = other(plain, dual_value=nuclear.value * (1 + 1e-8))
    assert disagreements(problem.shape, [wrong, nuclear])
    twice = other(plain, family="schatten", value=plain.value * (1 - 1e-8))
    assert disagreements(problem.shape, [plain, twice])
    wrong = other(nuclear, dual_value=plain.value * 3**0.5 * (1 + 1e-8))
    assert disagreements(problem.shape, [wrong, plain])
