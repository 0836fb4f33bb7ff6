"""Claims on in-context tasks of any kind, on all of their data and on tasks they do not admit."""

import numpy as np
import pytest

from attractor.papers import Outcome, all_claims, examine
from attractor.papers.large_prompt.in_context import COMPARED_LENGTHS, FAMILIES, family, small
from attractor.prompts import InContextCase
from attractor.prompts.in_context import negative_controls

CLAIMS = {name: claim for name, claim in all_claims().items() if claim.takes is InContextCase}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("claim", CLAIMS)
def test_holds_on_every_family(claim, name):
    found = examine(CLAIMS[claim], family(name))
    assert found.outcome is Outcome.HOLDS, found.reason


@pytest.mark.parametrize("name", ["Cauchy weights", "Student weights"])
def test_the_decay_fails_on_weights_of_heavy_tails(name):
    case = InContextCase.of_task(negative_controls(3)[name], 16, 16, (4, 8), sigmas=2**18)
    found = examine(CLAIMS["large-prompt/sub-gaussian-decay"], case)
    assert found.outcome is Outcome.FAILS and found.measured.interval[1] < 8
    assert found.measured.details["like a power"]


def test_a_tail_near_the_index_asked_for_is_not_settled():
    sigma = np.random.default_rng(0).pareto(8.0, 8192) + 1
    found = examine(CLAIMS["large-prompt/sub-gaussian-decay"], small().replace(sigma=sigma))
    assert found.outcome is Outcome.NOT_SETTLED


def test_paths_on_short_prompts_of_few_tasks_approach_that_on_infinite_ones():
    claim = CLAIMS["large-prompt/general-trajectory-stability"]
    found = examine(claim, small())
    assert found.outcome is Outcome.HOLDS, found.reason
    assert found.measured.details["gap at 64 tokens"] < found.measured.details["gap at 4 tokens"]


def test_lengths_are_compared_where_they_and_the_longest_prompts_are_far_apart():
    case = small().replace(token_covariance=None)
    assert case.prompts.shape[1] == 256
    for lengths, met in (((4, 16, 64), True), ((4, 16, 128), False), ((16, 32, 64), False)):
        assert COMPARED_LENGTHS.check(case.replace(lengths=lengths)).met == met, lengths
