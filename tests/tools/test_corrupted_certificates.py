"""Certificates with one thing wrong: every one is refused."""

import copy
import math

import pytest
from certificate_examples import (
    GEOMETRIES,
    certificate,
    contradictory,
    inequalities,
    load_checker,
    mixed,
)
from corruptions import (
    ANY,
    FACTORED,
    PARTS,
    change_entry_of_W,
    change_exponent,
    change_exponent_slightly,
    change_family,
    claim_contradiction,
    double_multiplier,
    ease_bound,
    flip_multiplier,
    flip_row,
    lengthen_W,
    reverse_multipliers,
    shorten_W,
    swap_rows,
    turn_W_around,
    zero_multiplier,
)
from margin_examples import thin_problem

from attractor.geometry import Frobenius, Lp, Nuclear
from attractor.support.errors import Status

checker = load_checker()
REFUSALS = (TypeError, ValueError)


@pytest.fixture(scope="module")
def optimal():
    """A certificate of optimality for each geometry."""
    return {g.name: certificate(inequalities(seed), g) for seed, g in enumerate(GEOMETRIES)}


@pytest.fixture(scope="module")
def with_equalities():
    return [certificate(mixed(seed), g) for seed, g in enumerate((Frobenius(), Nuclear(), Lp(3)))]


@pytest.fixture(scope="module")
def infeasible():
    return [certificate(contradictory(seed), status=Status.INFEASIBLE) for seed in range(3)]


@pytest.fixture(scope="module")
def bounded():
    """Contradictions to working precision alone: exactly, the rows share a direction."""
    thin = [thin_problem(1e-15, seed, 40, 14) for seed in range(3)]
    return [certificate(problem, status=Status.OUT_OF_REACH) for problem in thin]


def count_refused(files, corruptions):
    """How many corruptions of how many files were refused; fails if one was not."""
    count = 0
    for file in files:
        assert checker.verify(file)  # as it was written
        for corrupt in corruptions:
            wrong = copy.deepcopy(file)
            corrupt(wrong)
            assert wrong != file, corrupt.__name__
            with pytest.raises(REFUSALS):
                pytest.fail(f"{corrupt.__name__} of {file['norm']}: {checker.verify(wrong)}")
            count += 1
    return count


def test_certificates_of_optimality(optimal):
    assert count_refused(optimal.values(), ANY) >= 250
    factored = [file for file in optimal.values() if file["factors"]]
    assert count_refused(factored, FACTORED) >= 20


def free_inequality(file):  # multipliers of equalities may be negative, those of others not
    j = next(j for j, x in enumerate(file["multipliers"]) if x < 0)
    file["equality"][j] = False


def move_equality(file):  # by more than rounding, however little
    file["bounds"][file["equality"].index(True)] += 1e-9


def test_certificates_with_equalities(with_equalities):
    keep = {change_exponent, change_exponent_slightly, change_family, change_entry_of_W}
    corruptions = [*keep, lengthen_W, shorten_W, turn_W_around, flip_row, swap_rows, move_equality]
    files = [file for file in with_equalities if min(file["multipliers"]) < 0]
    assert len(files) >= 2
    assert count_refused(files, [*corruptions, free_inequality]) >= 20


def used(file):
    return next(j for j, x in enumerate(file["multipliers"]) if int(x, 16))


def add_one(file):  # rows are not zero: the sum cannot vanish with both
    j = used(file)
    file["multipliers"][j] = hex(int(file["multipliers"][j], 16) + 1)


def negate_one(file):
    file["multipliers"][used(file)] = "-" + file["multipliers"][used(file)]


def negate_all(file):
    file["multipliers"] = [hex(-int(x, 16)) for x in file["multipliers"]]


def zero_all(file):
    file["multipliers"] = ["0x0" for _ in file["multipliers"]]


def round_all(file):
    file["multipliers"] = [hex(int(float(int(x, 16) >> 60))) for x in file["multipliers"]]


def nudge_entry(file):  # by the last bit
    row = file["left"][used(file)]
    row[0] = math.nextafter(row[0], math.inf)


def drop_used_constraint(file):
    j = used(file)
    for name in PARTS:
        file[name].pop(j)


def turn_bounds_around(file):  # zero meets all of them
    file["bounds"] = [-c for c in file["bounds"]]


def claim_optimality(file):
    file["claim"] = {"kind": "optimal", "gap": 0.5}


def claim_bound(file):
    file["claim"] = {"kind": "lower bound", "norm_at_least": 1.0}


def test_certificates_of_infeasibility(infeasible):
    corruptions = [
        add_one, negate_one, negate_all, zero_all, round_all, nudge_entry, drop_used_constraint,
        turn_bounds_around, claim_optimality, claim_bound,
    ]  # fmt: skip
    assert count_refused(infeasible, corruptions) == 30


def claim_more(file):
    file["claim"]["norm_at_least"] *= 1 + 1e-9


@pytest.mark.long
def test_certificates_of_lower_bounds(bounded):
    corruptions = [
        claim_more, double_multiplier, flip_multiplier, zero_multiplier, reverse_multipliers,
        ease_bound, turn_bounds_around, flip_row, swap_rows, claim_contradiction, claim_optimality,
    ]  # fmt: skip
    assert count_refused(bounded, corruptions) == 33
