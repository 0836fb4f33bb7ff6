import numpy as np
import pytest

from attractor.papers import Case, Outcome, examine, get_claim
from attractor.papers.transformers_as_svms.claims.heads import (
    CONCAVE_HEAD_KEEPS_SEVERAL,
    kept_by_projection,
)
from attractor.papers.transformers_as_svms.random_data import trapped
from attractor.support.errors import InvalidInputError

pytestmark = pytest.mark.usefixtures("optimized")  # they train for long


def test_a_start_far_out_fails_as_a_token_file_and_the_start_at_zero_holds(tmp_path):
    claim = get_claim("transformers-as-svms/global-convergence")
    for start, expected in ((8.0, Outcome.FAILS), (0.0, Outcome.HOLDS)):
        trapped(start).save(tmp_path / "case.npz")
        (case,) = Case.read(tmp_path / "case.npz")
        found = examine(claim, case)
        assert found.outcome is expected, found.reason
        assert all(check.met for check in found.checks.values())


def test_the_trapped_start_has_no_stationary_point_to_blame():
    found = examine(get_claim("transformers-as-svms/no-stationary-point"), trapped(8.0))
    assert found.outcome is Outcome.HOLDS


@pytest.mark.parametrize("seed", range(5))
def test_the_tokens_kept_are_those_of_the_projection_on_the_simplex(seed):
    random = np.random.default_rng(seed)
    scores, penalty = np.sort(random.standard_normal(7))[::-1], random.uniform(0.1, 2)
    level = 2 * penalty  # the threshold at which the weights add up to one, by bisection
    low, high = scores[0] - level, scores[0]
    for _ in range(100):
        middle = (low + high) / 2
        enough = np.maximum(scores - middle, 0).sum() >= level
        low, high = (middle, high) if enough else (low, middle)
    assert kept_by_projection(scores, penalty) == (scores > low).sum()


def test_equal_scores_are_all_kept():
    assert kept_by_projection(np.ones(4), 0.1) == 4


def test_a_case_of_another_head_is_not_written(tmp_path):
    with pytest.raises(InvalidInputError, match="concave"):
        CONCAVE_HEAD_KEEPS_SEVERAL.example().save(tmp_path / "case.npz")
