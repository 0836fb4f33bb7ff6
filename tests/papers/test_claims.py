"""Every claim on data where it holds, on data that break each assumption, on its control."""

import dataclasses

import pytest
from questions import ask, example_of

from attractor.papers import PAPERS, Measurement, Outcome, all_claims, examine
from attractor.papers._examine import Finding
from attractor.papers.check import ClaimResult
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
OWN_WRONG_ONE = {
    "max-margin/local-path-converse": "the path leaves nearly every direction",
    "max-margin/local-path-elsewhere": "the path leaves nearly every direction",
    **{
        f"large-prompt/sub-gaussian-{part}-concentration{end}": "a bound with the constants of a "
        "proof, of which twice is one as well"
        for part in ("output", "value-gradient", "score-gradient")
        for end in ("", "-repaired")
    },
    "next-token/attention-direction-bound": "an upper bound, of which twice is one as well",
    "next-token/attention-loss": "twice the published rate is 4 |W_ov*| / 2 times below the true",
    "next-token/attention-norm": "twice either bound is one: the norm is t eta to one per cent",
    "next-token/feed-forward-direction-bound": "an upper bound, of which twice is one as well",
    "next-token/feed-forward-loss-bound": "the true rate is four times the published one",
    "next-token/feed-forward-norm": "twice either bound is one: from zero the norm is t eta",
    "next-token/logit-gaps-from-below": "gaps are 4 |W*| times the bound, and |W*| is 1 or more",
    "next-token/optimal-attention-bound": "the true rate is 4 L |W*| times the published one",
    "transformers-as-svms/wide-is-global": "one dimension fewer is wide as well",
    "large-prompt/order-of-predictors": "it names an order, whose only neighbors are exchanges",
    "large-prompt/sub-gaussian-decay": "draws of sigma; a vector turned is no draw of anything",
    "large-prompt/two-heads-beat-one": "a risk that is larger than that of one head is beaten too",
    "mirror-descent/rate": "a bound far from sharp: its square is measured",
    "mirror-descent/text-generalization": "an order of optimizers; results have no further ones",
    "mirror-descent/text-selection": "an order of optimizers; results have no further ones",
    "mirror-descent/vision-sparsity": "an order of optimizers; results have no further ones",
    "mirror-descent/weight-sparsity": "an order of optimizers; results have no further ones",
}
"""Claims of which no false object is made, but the wrong one that they bring, and why."""
TURNED_BY = {"max-margin/no-stationary-point": 2.1}
"""Angles by which to turn directions where all near the right one have what is claimed."""
ONE_SIDED = {
    "transformers-as-svms/concave-head",
    *(
        f"large-prompt/{part}-concentration{end}"
        for part in ("output", "value-gradient", "score-gradient")
        for end in ("", "-repaired")
    ),
    "mirror-descent/divergence-bounds-distance",
    "mirror-descent/norm-growth",
}
"""Claims of bounds, so that of two neighbors the laxer one is right as well."""
MEASURED_APART = {
    "large-prompt/balance-kept": "the wrong one is the flow on finite prompts",
    "mirror-descent/vision-accuracy": "the wrong one is of models early in training",
}
"""Claims that have no object to exchange, and what their wrong conclusion is measured on."""
BROKEN = [(name, assumption) for name, claim in CLAIMS.items() for assumption in claim.broken]


def check_claim(name):
    false = None if name in {*OWN_WRONG_ONE, *MEASURED_APART} else TURNED_BY.get(name, 0.5)
    ask(CLAIMS[name], false, one_sided=name in ONE_SIDED)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
        for name in CLAIMS
        if name not in TRAINING_LONG
    ],
)
def test_holds_where_it_should_and_its_control_fails(name):
    check_claim(name)


@pytest.mark.parametrize("name", TRAINING_LONG)
def test_claim_that_trains_for_long_holds_and_its_control_fails(name, optimized):
    check_claim(name)


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
    data = ADVERSARIAL[name](example_of(claim))
    with seeded(0, purpose=f"claim {name}", alone=False):
        found = claim.control.measure(data, 0)
    assert found.checked and claim.control.met_by(found), found


def test_every_claim_has_adversarial_data_or_a_reason():
    assert not {*ADVERSARIAL} & {*WITHOUT}
    assert {*ADVERSARIAL} | {*WITHOUT} == {*CLAIMS}


def test_all_others_name_what_can_be_exchanged():
    assert {name for name, claim in CLAIMS.items() if claim.comparison is None} == {*MEASURED_APART}
    assert {*OWN_WRONG_ONE, *TURNED_BY, *ONE_SIDED} <= {*CLAIMS} - {*MEASURED_APART}


@pytest.mark.parametrize(("name", "assumption"), BROKEN)
def test_asks_for_each_of_its_assumptions(name, assumption):
    found = examine(CLAIMS[name], CLAIMS[name].broken[assumption]())
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET
    assert found.reason.startswith(f"{assumption}: ")


@pytest.mark.parametrize("name", CLAIMS)
def test_breaks_every_assumption_it_names(name):
    claim = CLAIMS[name]
    assert list(claim.broken) == [assumption.name for assumption in claim.assumptions]


@pytest.mark.parametrize("name", CLAIMS)
def test_says_what_it_is(name):
    claim = CLAIMS[name]
    assert name.split("/")[0] in PAPERS
    assert type(example_of(claim)) is claim.takes
    assert claim.summary and len(claim.summary) < 110 and not claim.summary.endswith(".")
    assert claim.conclusion.reason and claim.statement
    right, wrong = claim.conclusion, claim.control
    assert (right.quantity, right.bound, right.sense) != (wrong.quantity, wrong.bound, wrong.sense)


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
    stricter = dataclasses.replace(claim.conclusion, bound=2.0)
    found = examine(dataclasses.replace(claim, conclusion=stricter), claim.example())
    assert found.outcome is Outcome.FAILS


def test_a_control_that_passes_makes_it_vacuous():
    claim = CLAIMS["max-margin/no-stationary-point"]
    blind = dataclasses.replace(claim, control=claim.conclusion)
    assert examine(blind, claim.example()).outcome is Outcome.VACUOUS


@pytest.mark.parametrize("measured", [Measurement(float("nan")), Measurement(1.0, checked=0)])
def test_a_control_that_is_not_measured_makes_it_vacuous(measured):
    claim = CLAIMS["max-margin/no-stationary-point"]
    missing = dataclasses.replace(claim.control, measure=lambda case, seed: measured)
    found = examine(dataclasses.replace(claim, control=missing), claim.example())
    assert found.outcome is Outcome.VACUOUS and "no wrong claim" in found.reason
