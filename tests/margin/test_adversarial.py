"""500 problems made to break solvers: nothing raises, nothing is wrong, hardly any stays open.

Each answer is written as a certificate and checked by ``tools/verify_certificate.py``, in exact
arithmetic and with no code of the library.
"""

import collections

import pytest
from adversarial_problems import KINDS, adversarial_problems
from certificate_examples import GEOMETRIES, load_checker, through_json

from attractor.margin import solve
from attractor.margin.certificates.certificate_file import contents
from attractor.support.errors import Status

EACH = 46
checker = load_checker()


@pytest.fixture(scope="module")
def answers():
    """Kind, geometry, status, claim and proven statement of each problem."""
    found = []
    for seed, geometry in enumerate(GEOMETRIES):
        named = adversarial_problems(seed, EACH)
        solutions = solve([problem for _, problem in named], geometry)
        for (kind, _), solution in zip(named, solutions, strict=True):
            file = through_json(contents(solution))
            proved = checker.verify(file)
            found.append((kind, geometry.name, solution.status, file["claim"], proved))
    return found


@pytest.mark.long
def test_every_answer_is_proved(answers):
    assert len(answers) >= 500
    assert {kind for kind, *_ in answers} == {kind.__name__ for kind in KINDS}
    for _, _, status, claim, proved in answers:
        if status is Status.OPTIMAL:
            assert claim["gap"] <= 1.001e-9
            assert proved.startswith("optimal to ")
        elif status is Status.INFEASIBLE:  # not to rounding: with no rounding at all
            assert proved.startswith("infeasible, ")
        else:
            assert status is Status.STOPPED_EARLY
            assert claim["kind"] == "lower bound" or claim["gap"] > 1e-9


@pytest.mark.long
def test_both_kinds_of_answers_occur(answers):
    states = collections.Counter((kind, status) for kind, _, status, _, _ in answers)
    assert states["contradictory", Status.INFEASIBLE] == 5 * len(GEOMETRIES)
    for kind in ("near_infeasible", "badly_scaled", "badly_scaled_entries", "with_equalities"):
        assert states[kind, Status.INFEASIBLE] == 0  # all of them are feasible by construction
    for kind in KINDS[2:]:
        assert states[kind.__name__, Status.OPTIMAL] > 0


def test_hardly_any_stays_open(answers):
    early = [
        (kind, name, claim)
        for kind, name, status, claim, _ in answers
        if status is Status.STOPPED_EARLY
    ]
    assert len(early) <= 0.05 * len(answers), early
    for kind, _, claim in early:  # where W itself, in float64, can be no better
        assert kind == "near_infeasible"
        assert claim["kind"] == "optimal"
        assert claim["gap"] < 1e-6
