"""Every question of the contract to every claim, in the tier that its work is for."""

import dataclasses

import pytest

from attractor.papers import Measurement, Outcome, all_claims, examine, questions
from attractor.papers.ledger import contract
from attractor.papers.ledger.check import ClaimResult, Finding
from attractor.papers.ledger.packs import get_claim
from attractor.support.randomness import seeded
from tests.papers.adversarial import ADVERSARIAL, WITHOUT

CLAIMS = all_claims("attractor")
LONG = (
    "max-margin/finite-offset",
    "max-margin/global-path",
    "max-margin/joint-path",
    "max-margin/local-path",
    "max-margin/matrix-and-prompt-equivalence",
    "transformers-as-svms/global-path",
    "transformers-as-svms/key-query-path",
    "transformers-as-svms/only-local-optima-attract",
    "transformers-as-svms/sequence-path",
    "mirror-descent/joint-path",
    "mirror-descent/relaxed-joint-path",
    "mirror-descent/regularization-path",
    "large-prompt/general-risk-limit",
    "large-prompt/heavy-tail-exponent",
    "large-prompt/risk-falls",
    "large-prompt/trained-limit",
    "large-prompt/trained-risk-limit",
    "large-prompt/trajectory-stability",
)
"""Claims that take several seconds, and whose paths and runs other tests look at more closely."""
TRAINING_LONG = (
    "max-margin/global-convergence",
    "max-margin/gradient-descent-norm",
    "max-margin/gradient-descent-rate",
    "max-margin/selected-direction",
    "transformers-as-svms/local-convergence",
    "transformers-as-svms/wide-is-global",
    "mirror-descent/stays-in-cone",
)
"""Claims that take longer without optimizations than it takes to compile them optimized."""
LATER = {"keeps its numbers", "survives files", "fails as it says"}
"""Questions that examine the example again."""


def of_claims(training):
    """The questions to those claims that train for long, or to the others, with their tiers."""
    for ask in questions("attractor"):
        if ask.find is not get_claim or (ask.name in TRAINING_LONG) is not training:
            continue  # figures, some of which have the name of a claim, are asked elsewhere
        marks = []
        if ask.words == "holds" or ask.words in LATER:
            slow = ask.name in LONG or (training and ask.words in LATER)
            marks = [pytest.mark.slow] if slow else [] if training else [pytest.mark.long]
        yield pytest.param(ask, id=str(ask), marks=marks)


@pytest.mark.parametrize("ask", [*of_claims(training=False)])
def test_claim_answers(ask, tmp_path):
    ask(tmp_path)


@pytest.mark.parametrize("ask", [*of_claims(training=True)])
def test_claim_that_trains_for_long_answers(ask, tmp_path, optimized):
    ask(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in (*LONG, *TRAINING_LONG) else ())
        for name in ADVERSARIAL
    ],
)
def test_its_control_passes_on_adversarial_data(name):
    claim = CLAIMS[name]
    data = ADVERSARIAL[name](contract.example_of(claim))
    with seeded(0, purpose=f"claim {name}", alone=False):
        found = claim.exchanged().measured(data)
    assert found.checked and claim.met_by(found), found


def test_every_claim_has_adversarial_data_or_a_reason():
    assert not {*ADVERSARIAL} & {*WITHOUT}
    assert {*ADVERSARIAL} | {*WITHOUT} == {*CLAIMS}


@pytest.mark.parametrize(
    ("found", "together"),
    [
        (("HOLDS", "NOT_SETTLED", "NOT_SETTLED"), "NOT_SETTLED"),
        (("HOLDS", "HOLDS", "NOT_SETTLED"), "NOT_SETTLED"),
        (("NOT_SETTLED", "HOLDS", "FAILS"), "FAILS"),
        (("VACUOUS", "HOLDS", "ASSUMPTION_NOT_MET"), "HOLDS"),
        (("VACUOUS", "NOT_SETTLED"), "NOT_SETTLED"),
        (("VACUOUS", "ASSUMPTION_NOT_MET"), "VACUOUS"),
    ],
)
def test_the_outcome_on_several_data_sets_is_the_weakest_on_one(found, together):
    claim = CLAIMS["max-margin/no-stationary-point"]
    found = [Finding(claim, claim.example(), Outcome[each], "made up", {}) for each in found]
    assert ClaimResult(claim, tuple(found)).outcome is Outcome[together]


def test_an_outcome_comes_from_the_data_and_not_from_the_claim():
    claim = CLAIMS["max-margin/no-stationary-point"]
    found = examine(dataclasses.replace(claim, bound=2.0), claim.example())
    assert found.outcome is Outcome.FAILS


def test_a_control_that_passes_makes_it_vacuous():
    claim = CLAIMS["max-margin/no-stationary-point"]
    blind = dataclasses.replace(claim, wrong=claim.right)
    assert examine(blind, claim.example()).outcome is Outcome.VACUOUS


@pytest.mark.parametrize("measured", [Measurement(float("nan")), Measurement(1.0, checked=0)])
def test_a_control_that_is_not_measured_makes_it_vacuous(measured):
    claim = CLAIMS["max-margin/no-stationary-point"]
    case = claim.example()
    right, named = claim.measured(case), claim.object(case)

    def measure(case, of):
        return right if of is named else measured

    found = examine(dataclasses.replace(claim, measure=measure, right=lambda case: named), case)
    assert found.outcome is Outcome.VACUOUS and "no wrong claim" in found.reason
