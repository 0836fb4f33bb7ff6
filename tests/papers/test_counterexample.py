"""Counterexamples made smaller, and kept in files."""

import numpy as np
import pytest
from made_up_claims import made_up

from attractor.files import load
from attractor.margin.selection import Selection
from attractor.papers import Case, Measurement, Outcome, examine, get_claim
from attractor.papers.ledger.check import shrink
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.max_margin.claims.descent import random_equal_scores
from attractor.papers.max_margin.data import joint_training, trapped_sequence

CONVERGENCE = get_claim("max-margin/global-convergence")


def claim(measure, *assumptions):
    return made_up(Case, measure, *assumptions)


def choices(case):
    """Rows that choose, and tokens they choose between."""
    counts = case.tokens.mask.sum(-1)
    return counts[counts > 1]


def random_case(n=6, T=5, d=3, **other):
    random = np.random.default_rng(4)
    return Case.from_scores(
        random.standard_normal((n, T, d)), random.standard_normal((n, T)), **other
    )


def test_only_what_is_needed_is_left():
    case = random_case()
    large = case.tokens.keys[2, 3, 1]

    def measure(case, seed):  # needs one number, and two rows with a choice
        found = bool((np.abs(case.tokens.keys - large) < 0.5)[case.tokens.mask[:, 0]].any())
        return Measurement(float(found and len(choices(case)) >= 2))

    found = shrink(claim(measure), case)
    assert found.tokens.keys.shape == (2, 2, 3)
    assert measure(found, 0).value == 1
    assert found.about == "data, made smaller"
    decimals = np.abs(found.tokens.keys * 10 - np.round(found.tokens.keys * 10))
    assert decimals.max() < 1e-9


def test_rows_of_different_lengths_are_told_by_a_mask():
    case = random_case()

    def measure(case, seed):
        return Measurement(float(choices(case).max() >= 4 and len(choices(case)) >= 2))

    found = shrink(claim(measure), case)
    assert found.tokens.keys.shape == (2, 4, 3)
    assert sorted(found.tokens.mask.sum(-1).ravel()) == [2, 4]


def test_assumptions_stay_met_and_chosen_tokens_stay_chosen():
    case = random_case()
    index = np.array([0, 1, 2, 3, 4, 0])
    case = case.replace(chosen=Selection.from_index(case.tokens, index))
    enough = Assumption(
        "enough", "Three rows.", lambda case: Check(len(choices(case)) >= 3, "as many as there are")
    )
    found = shrink(claim(lambda case, seed: Measurement(1.0), enough), case)
    assert found.tokens.keys.shape == (3, 2, 3)
    kept = np.take_along_axis(found.tokens.keys, found.chosen.index[:, None, None], 1)[:, 0]
    originals = np.take_along_axis(case.tokens.keys, index[:, None, None], 1)[:, 0]
    distance = np.abs(kept[:, None] - originals).max(-1).min(-1)
    assert distance.max() < 0.51  # rounded to no digits


def test_a_head_that_is_trained_sees_fewer_labels():
    case = joint_training(all_labels_support=False)
    shapes = []

    def measure(case, seed):
        shapes.append(case.tokens.keys.shape)
        return Measurement(float(len(case.tokens.labels) >= 2))

    found = shrink(claim(measure), case)
    assert found.tokens.keys.shape == (2, 2, 2)
    assert (1, 2, 2) in shapes


def test_the_budget_is_kept():
    counted = []

    def measure(case, seed):
        counted.append(case)
        return Measurement(1.0)

    shrink(claim(measure), random_case(n=20, T=8), most=12)
    assert len(counted) <= 13  # and the case itself


def test_nothing_happens_where_the_claim_holds_or_nothing_can_go():
    holding = trapped_sequence((0.0, 0.0))
    assert shrink(CONVERGENCE, holding) is holding
    smallest = trapped_sequence()
    assert shrink(CONVERGENCE, smallest) is smallest


@pytest.mark.slow
def test_a_trapped_run_in_a_file(tmp_path):
    case = random_equal_scores(14)
    found = shrink(CONVERGENCE, case, most=25)
    assert found.tokens.keys.size < case.tokens.keys.size
    assert found.initial is not None  # the start from which it fails
    path = tmp_path / "counterexample.npz"
    found.save(path)
    (again,) = Case.read(path)
    first, second = examine(CONVERGENCE, found), examine(CONVERGENCE, again)
    assert first.outcome is second.outcome is Outcome.FAILS
    assert first.measured.value == second.measured.value
    loaded = load(path)
    assert loaded.parameterization == "p" and loaded.from_scores
    np.testing.assert_array_equal(loaded.initial, found.initial)
