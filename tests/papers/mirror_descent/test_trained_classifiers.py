"""Claims about trained classifiers: what they measure, and when results settle nothing."""

import numpy as np
import pytest
import xarray as xr

from attractor.papers import Outcome, all_claims, examine
from attractor.papers.ledger.check import check_claim
from attractor.papers.mirror_descent.claims import trained_classifiers as claims
from attractor.papers.mirror_descent.claims.trained_classifiers import trained_texts
from attractor.papers.results import ClaimResults
from attractor.support.errors import TrialStatus

GENERALIZATION, SELECTION = claims.TEXT_GENERALIZATION, claims.TEXT_SELECTION
SPARSITY, VISION = claims.WEIGHT_SPARSITY, claims.VISION_ACCURACY
ALL = (GENERALIZATION, SELECTION, SPARSITY, VISION, claims.VISION_SPARSITY)


def with_accuracies(claim, first, second):
    """A third optimizer, where there is one, is a little behind the first."""
    case = claim.example()
    data = case.data.isel(seed=slice(len(first)))
    both = [first, second, np.subtract(first, 0.01)][: data.sizes["optimizer"]]
    return case.replace(data=data.assign(test_accuracy=(("optimizer", "seed"), both)))


def test_they_are_claims_of_the_paper():
    assert {claim.name for claim in ALL} <= set(all_claims("mirror-descent"))


def test_differences_are_paired_by_seed():
    """Seeds differ by far more than optimizers do, and a small difference is seen all the same."""
    second, more = np.array([0.60, 0.70, 0.80, 0.90]), np.array([0.01, 0.02, 0.01, 0.02])
    found = examine(GENERALIZATION, with_accuracies(GENERALIZATION, second + more, second))
    assert found.outcome is Outcome.HOLDS
    assert found.measured.value == pytest.approx(0.015)
    low, high = found.measured.details["test accuracy, 95 % interval of the difference"]
    half = 3.182446 * np.std(more, ddof=1) / 2  # Student's, 3 degrees
    assert (low, high) == pytest.approx((0.015 - half, 0.015 + half), rel=1e-5)


@pytest.mark.parametrize(
    ("differences", "outcome"),
    [
        ((0.05, 0.06, 0.05), Outcome.HOLDS),
        ((0.05, -0.06, 0.05), Outcome.NOT_SETTLED),
        ((-0.05, -0.06, -0.05), Outcome.FAILS),
        ((0.05, 0.05, 0.05), Outcome.HOLDS),
        ((0.0, 0.0, 0.0), Outcome.NOT_SETTLED),
        ((0.05,), Outcome.NOT_SETTLED),
    ],
)
def test_an_order_is_settled_only_where_the_interval_leaves_out_none(differences, outcome):
    second = np.full(len(differences), 0.75)
    found = examine(GENERALIZATION, with_accuracies(GENERALIZATION, second + differences, second))
    assert found.outcome is outcome


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ([0.80, 0.69, 0.80], "is 0.01333 (-0.144 to 0.171), which does not leave out 0"),
        ([0.80], "is 0.05 (too few for an interval), which does not leave out 0"),
    ],
)
def test_the_interval_is_said_in_words(first, words):
    case = with_accuracies(GENERALIZATION, first, np.full(len(first), 0.75))
    said = (
        f"mean over seeds of test accuracy of p = 1.1 less that of p = 2 {words}: more data or "
        "a longer run would"
    )
    assert examine(GENERALIZATION, case).reason == said


def test_an_interval_stands_in_the_table_and_among_the_numbers():
    case = with_accuracies(GENERALIZATION, [0.80, 0.69, 0.80], [0.75, 0.75, 0.75])
    results = ClaimResults((check_claim(GENERALIZATION, [case]),))
    assert "not settled" in str(results) and "0.0133 (-0.14 to 0.17)" in str(results)
    (found,) = results.summary()["claims"][GENERALIZATION.name]["data"]
    assert found["outcome"] == "not settled"
    assert found["measured"]["interval"] == pytest.approx([-0.14443, 0.17110], abs=1e-5)


@pytest.mark.parametrize(
    ("gap", "outcome"),
    [
        (0.3, Outcome.HOLDS),
        (-0.01, Outcome.HOLDS),
        (-0.02, Outcome.NOT_SETTLED),
        (-0.03, Outcome.FAILS),
    ],
)
def test_a_vision_transformer_may_be_a_little_less_accurate(gap, outcome):
    second = np.full(3, 0.6)
    first = second + gap + [0.001, -0.001, 0]
    assert examine(VISION, with_accuracies(VISION, first, second)).outcome is outcome


STUCK = "models that have learned nothing"


def test_a_model_at_chance_counts_in_accuracy_and_in_nothing_else():
    first, second = [0.85, 0.86, 0.87, 0.88, 0.89], [0.80, 0.81, 0.82, 0.52, 0.84]
    found = examine(GENERALIZATION, with_accuracies(GENERALIZATION, first, second))
    assert found.outcome is Outcome.NOT_SETTLED and found.measured.checked == 5  # a wide interval
    case = with_accuracies(SPARSITY, first, second)
    case.data["hoyer"][1, 3] = 0.99
    found = examine(SPARSITY, case)
    assert found.outcome is Outcome.HOLDS and found.measured.checked == 4
    assert found.measured.details[STUCK] == ["p = 2, seed 3, is at 0.52"]


def test_results_where_most_models_are_stuck_settle_nothing():
    first, second = [0.85, 0.86, 0.87], [0.80, 0.52, 0.51]  # 2,000 texts: .5335 and more is learned
    found = examine(GENERALIZATION, with_accuracies(GENERALIZATION, first, second))
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET
    assert found.reason == (
        "learned: p = 2, seed 1, is at 0.52; p = 2, seed 2, is at 0.51; "
        "chance is 0.5, and more than 0.5335 is learned"
    )


def test_other_optimizers_may_be_stuck():
    case = SPARSITY.example()
    stuck = case.data.isel(optimizer=[0]).assign_coords(optimizer=["Adam"])
    stuck["test_accuracy"][:] = 0.5
    stuck["at_edge"][:] = True
    both = xr.concat([stuck, case.data], "optimizer")
    assert examine(SPARSITY, case.replace(data=both)).outcome is Outcome.HOLDS


@pytest.mark.parametrize(
    ("claim", "variable"),
    [
        (GENERALIZATION, "test_accuracy"),
        (SELECTION, "attention"),
        (SPARSITY, "hoyer"),
        (claims.VISION_SPARSITY, "hoyer"),
    ],
)
def test_a_third_optimizer_that_does_as_well_leaves_nothing_to_claim(claim, variable):
    case = claim.example()
    data = case.data.copy(deep=True)
    data[variable][2] = data[variable][0]
    found = examine(claim, case.replace(data=data))
    assert found.outcome is Outcome.VACUOUS and found.control.value >= 0


def test_accuracies_of_images_are_told_apart_before_models_are_trained():
    """A tenth of 20 epochs is two; a first optimizer that is ahead then shows no order at all."""
    case = VISION.example()
    data = case.data.copy(deep=True)
    data["validation_accuracy"][0, :, 2:] = 0.0
    assert examine(VISION, case.replace(data=data)).outcome is Outcome.HOLDS
    data["validation_accuracy"][0, :, 1] = data["validation_accuracy"][1, :, 1]
    assert examine(VISION, case.replace(data=data)).outcome is Outcome.VACUOUS


def test_a_seed_that_diverged_is_named():
    case = SPARSITY.example()
    data = case.data.copy(deep=True)
    data["status"][0, 2] = TrialStatus.DIVERGED
    found = examine(SPARSITY, case.replace(data=data))
    assert found.measured.checked == 4
    assert found.measured.details[STUCK] == ["p = 1.1, seed 2, diverged"]


def test_a_number_that_is_missing_for_a_seed_is_named():
    case = SPARSITY.example()
    data = case.data.copy(deep=True)
    data["hoyer"][1, 4] = np.nan
    found = examine(SPARSITY, case.replace(data=data))
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET and "no number for seed 4" in found.reason


@pytest.mark.parametrize(
    ("claim", "change", "words"),
    [
        (GENERALIZATION, lambda data: data.sel(optimizer=["p = 1.1"]), "texts: there is no p = 2"),
        (SPARSITY, lambda data: data.drop_vars("hoyer"), "texts: there is no hoyer"),
        (SPARSITY, lambda data: data.sel(matrix=["values"]), "texts: hoyer is not that of the"),
        (SELECTION, lambda data: data.drop_vars("attention"), "texts: there is no attention"),
        (VISION, lambda data: data.drop_attrs(), "images: the results do not say"),
        (VISION, lambda data: data.drop_vars("at_edge"), "learning rates: the results do not"),
        (
            VISION,
            lambda data: data.assign(at_edge=("optimizer", [False, True])),
            "learning rates: at the edge of those tried: Adam",
        ),
    ],
)
def test_what_results_lack_is_said(claim, change, words):
    case = claim.example()
    found = examine(claim, case.replace(data=change(case.data)))
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET and found.reason.startswith(words)


def test_attention_is_that_of_the_last_block():
    case = SELECTION.example()
    data = case.data.copy(deep=True)
    data["attention"][0, :, 0] = 0.0  # what the first block looks at does not count
    found = examine(SELECTION, case.replace(data=data))
    assert found.outcome is Outcome.HOLDS and found.measured.value == pytest.approx(0.05)
    details = found.measured.details
    assert details["attention of all blocks on telling words of p = 1.1"] == pytest.approx(0.225)
    assert details["attention by chance of p = 2"] == pytest.approx(0.075)
    assert "rescaled attention, the published reading, 95 % interval of the difference" in details


def test_what_only_a_reader_would_want_may_be_missing():
    case = SELECTION.example()
    kept = case.data.drop_vars(["rescaled_attention", "attention_by_chance", "status"])
    assert examine(SELECTION, case.replace(data=kept)).outcome is Outcome.HOLDS


@pytest.mark.slow
def test_small_models_are_trained_where_no_results_are_given(optimized):
    result = check_claim(SPARSITY)
    (found,) = result.findings
    assert found.case is trained_texts(0)  # which the other claims about texts take as well
    assert found.checks["texts"].met and found.checks["learning rates"].met
    keys = found.case.data["hoyer"].sel(matrix="keys").mean(["block", "seed"])
    assert keys.sel(optimizer="p = 1.1") > keys.sel(optimizer="p = 2")
    settled = found.measured.settles(SPARSITY.bound)
    assert result.outcome is (Outcome.HOLDS if settled else Outcome.NOT_SETTLED)
