"""What fails where an assumption of a claim does not hold, and where a bound is nearly reached."""

import numpy as np
import pytest

from attractor.papers import Case, Outcome, examine, get_claim
from attractor.tokens import Tokens


def claim_of(name):
    return get_claim(f"transformers-as-svms/{name}")


def test_in_the_plane_other_selections_than_the_best_are_locally_optimal():
    claim = claim_of("only-the-best-attracts")
    case = claim.example()
    tokens = case.tokens
    plane = Tokens(
        tokens.keys[..., :2], tokens.queries[..., :2], tokens.labels, values=tokens.values
    )
    assert claim.measured(case.replace(tokens=plane), 0).value > 0


def test_one_query_of_two_sequences_leaves_selections_without_a_solution():
    claim = claim_of("feasible-when-wide")
    assert claim.measured(claim.broken["general position"](), 0).value > 0


@pytest.mark.parametrize(("length", "rows"), [(2, 1), (3, 1), (2, 2), (4, 1)])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_half_of_a_few_dimensions_may_be_none_in_which_nothing_is_separated(length, rows, size):
    keys = size * np.tile(np.eye(length, 4), (rows, 1, 1))
    scores = np.tile(np.arange(float(length)), (rows, 1))
    case = Case.from_scores(keys, scores, queries=np.eye(rows, 4), parameterization="W")
    claim = claim_of("feasible-when-wide")
    found = examine(claim, case)
    assert found.outcome is Outcome.HOLDS, found.reason
    if (length, rows) == (2, 1):
        assert found.control.value == found.control.checked == 51


def test_the_constant_of_the_gradient_is_four_times_too_large_at_best():
    # Two tokens of scores v and -v at distance 2: the loss has the second derivative v^2 / 4 at
    # W = 0, and the constant is v^2 + 6 sqrt(2) v.
    claim = claim_of("smooth-gradient")
    v = 100.0
    expected = (v**2 / 4) / (v**2 + 6 * np.sqrt(2) * v)
    assert claim.measured(claim.example(), 0).value == pytest.approx(expected, rel=2e-3)


def test_any_coupling_of_orthogonal_pairs_up_to_rank_one_has_the_smallest_nuclear_norm():
    claim = claim_of("nuclear-solutions-not-unique")
    case = claim.example()
    for c, outside in ((0.0, False), (-0.7, False), (1.0, False), (-1.2, True)):
        matrix = np.array([[1, c], [c, 1]])
        measured = claim.about((np.eye(2), matrix)).measured(case, 0)
        assert measured.value == pytest.approx(max(abs(c), 1) - 1, abs=1e-9)
        assert claim.met_by(measured) is not outside
