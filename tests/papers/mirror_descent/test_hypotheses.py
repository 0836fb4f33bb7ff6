"""Where training starts, how long it goes on, and when a statement does not apply."""

import numpy as np
import pytest

from attractor.analysis import directional_bregman_divergence
from attractor.attention import LinearHead
from attractor.geometry import Lp
from attractor.margin import check_local_optimality, label_problem, solve
from attractor.papers import Case, Outcome, examine
from attractor.papers.measurements.attended import keeping
from attractor.papers.mirror_descent.claims._examples import (
    examples,
    next_to_selection,
    other_tokens,
    with_exponent,
)
from attractor.papers.mirror_descent.claims.convergence import (
    LOCAL_CONVERGENCE,
    RATE,
    STAYS_IN_CONE,
)
from attractor.papers.mirror_descent.claims.paths import ATTENTION_ELSEWHERE_COSTS, JOINT_PATH
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import CLOSE_START, MIRROR_DESCENT
from attractor.papers.mirror_descent.training import (
    STARTS,
    Steps,
    cone_of,
    imbalance,
    in_cone,
    own_solution,
    starts,
    starts_at,
    steps_of,
)
from attractor.tokens import Tokens

pytestmark = pytest.mark.usefixtures("optimized")  # they train for long


def scaled(case, factor):
    tokens = case.tokens
    return case.replace(tokens=Tokens(factor * tokens.keys, tokens.queries, tokens.labels))


def test_the_optimizer_of_the_data_says_p():
    case = random_case(0)
    assert steps_of(case) == Steps(1.75, 0.1)
    assert steps_of(with_exponent(case, 3)) == Steps(3.0, 0.1)
    assert steps_of(case.replace(optimizer="ngd:learning_rate=0.3")) == Steps(2.0, 0.3)
    assert steps_of(case.replace(optimizer="muon:learning_rate=0.3")) is None
    assert not MIRROR_DESCENT.check(case.replace(optimizer="sign descent:learning_rate=1")).met


def test_steps_are_in_the_units_of_the_keys():
    small = steps_of(scaled(random_case(0), 2.0**-10))
    assert small.learning_rate == pytest.approx(0.1 * 2.0 ** (10 * 0.75))


@pytest.mark.parametrize("case", examples(0), ids=lambda case: f"{case.about} {case.optimizer}")
def test_starts_lie_in_the_cone(case):
    places = starts(case, 0)
    assert places.shape == (1, STARTS, 4, 4)
    cone, solution = cone_of(case), own_solution(case)
    others = case.tokens.mask & ~case.selection.mask
    higher = others & (case.scores > (case.scores * case.selection.mask).sum(-1, keepdims=True))
    for W in places[0]:
        assert in_cone(case, W) and not in_cone(case, -W) and not in_cone(case, W / 1.01)
        assert solution.geometry.norm(W) == pytest.approx(cone.norm)
        scores = case.tokens.scores(W)
        lead = (scores * case.selection.mask).sum(-1, keepdims=True) - scores
        assert lead[others].min() > 9.9
        if higher.any():  # their attention is nothing beside that of support tokens
            assert lead[higher].min() > lead[others].min() + 5


@pytest.mark.parametrize("case", examples(0), ids=lambda case: f"{case.about} {case.optimizer}")
def test_starts_at_a_divergence_lie_there(case):
    places = starts_at(case, 0, 0.003)[0]
    solution = own_solution(case)
    found = directional_bregman_divergence(places, solution.W, solution.geometry)
    np.testing.assert_allclose(found, 0.003, rtol=1e-6)
    assert all(in_cone(case, W) for W in places)
    assert not np.isclose(places, starts_at(case, 1, 0.003)[0]).any()


def test_a_run_from_inside_the_cone_may_rise_far_above_its_own_start():
    """From a tenth of the edge, by ten times for p = 3, yet stays within twice the edge."""
    found = examine(STAYS_IN_CONE, examples(0)[3])
    assert found.outcome is Outcome.HOLDS and 1.2 < found.measured.value < 2
    details = found.measured.details
    assert details["largest of a run over its own start, at a tenth of it"] > 5
    assert details["runs that rise, on the edge"] == STARTS


def test_slopes_are_said_for_two_windows_and_two_kinds_of_start():
    found = examine(RATE, with_exponent(random_case(1), 1.5))
    details = found.measured.details
    slopes = [value for name, value in details.items() if name.startswith("slope")]
    assert len(slopes) == 4 and np.allclose(slopes, -1, atol=0.05)
    assert found.measured.value == pytest.approx(details["slope"] + 0.5)
    assert details["normal starts that end on locally optimal tokens"] == STARTS


def test_a_token_of_higher_score_next_to_the_margin_leaves_no_room():
    case = random_case(12)
    case = case.replace(chosen=keeping(case, np.array([[1], [0], [1]])))
    found = check_local_optimality(case.tokens, case.head, case.selection, geometry=Lp(1.75))
    check = CLOSE_START.check(case)
    assert bool(found.holds) and cone_of(case).slack < 0.05
    assert not check.met and "0.0067 beyond the margin" in check.found


def test_rows_that_pull_unequally_need_longer():
    case = random_case(0)
    assert imbalance(case) == 1
    assert imbalance(scaled(case, 1000.0)) > 50
    claim = examine(LOCAL_CONVERGENCE, scaled(case, 1000.0))
    assert claim.outcome is Outcome.VACUOUS
    assert claim.measured.details["steps needed"] > 100_000


def test_a_selection_one_token_away():
    for case in (random_case(0), other_tokens()):
        for wanted in (True, False):
            found = next_to_selection(case, locally_optimal=wanted)
            assert (found.mask != case.selection.mask).any((-1, -2)).sum() == 1
            solution = case.solution(Lp(1.75), found)
            optimality = check_local_optimality(case.tokens, case.head, found, solution)
            assert bool(optimality.holds) is wanted


def test_several_queries_masks_and_rows_without_a_choice(rng):
    mask = np.array([[[1, 1, 1, 1], [1, 1, 0, 0]], [[1, 0, 0, 0], [1, 1, 1, 0]]], bool)
    keys, queries = rng.normal(size=(2, 4, 4)), rng.normal(size=(2, 2, 3))
    tokens = Tokens(keys, queries, rng.choice([-1.0, 1.0], size=(2, 2)), mask)
    case = Case(tokens, LinearHead(rng.normal(size=4)))
    for claim in (LOCAL_CONVERGENCE, STAYS_IN_CONE):
        found = examine(claim, case)
        assert found.outcome is Outcome.HOLDS, found.reason


@pytest.mark.parametrize("p", [1.75, 3.0])
def test_attention_elsewhere_costs_what_the_multipliers_say(p, rng):
    """Label margins of random attention, against ``margin (1 - nu max_i (1 - s_i))``."""
    case = with_exponent(JOINT_PATH.data(0)[0], p)
    case = case.replace(chosen=keeping(case, np.array([[1 if p < 2 else 0], [0]])))
    check = ATTENTION_ELSEWHERE_COSTS.check(case)
    assert check.met
    nu = 1 - float(check.found.split()[3])
    margin = 1 / float(solve(label_problem(case.tokens, case.selection), Lp(p)).value)
    tokens = case.tokens
    for concentration in (0.05, 0.3, 1.0):
        for _ in range(10):
            weights = rng.dirichlet(np.full(3, concentration), size=2)
            mixed = np.einsum("nt,ntd->nd", weights, tokens.keys)[:, None]
            single = Tokens(
                np.concatenate([mixed, mixed + 1], axis=1), tokens.queries, tokens.labels
            )
            problem = label_problem(
                single, keeping(case.replace(tokens=single), np.zeros((2, 1), int))
            )
            value = float(solve(problem, Lp(p)).value)
            kept = (weights * case.selection.mask[:, 0]).sum(-1).min()
            assert 1 / value <= margin * (1 - nu * (1 - kept)) + 1e-4 * nu
