"""Results of classifiers that claims are examined on: kept in files, and told apart."""

import numpy as np
import pytest

from attractor.files import load
from attractor.papers import ClassifierCase, Outcome, get_claim
from attractor.papers.hypotheses_table import check_hypotheses
from attractor.papers.ledger.check import check_claim
from attractor.support.errors import InvalidInputError


@pytest.fixture
def case():
    return get_claim("mirror-descent/text-selection").example()


def test_a_file_gives_back_the_same_case(case, tmp_path):
    case.save(tmp_path / "results.nc")
    (again,) = load(tmp_path / "results.nc").data_sets()
    assert isinstance(again, ClassifierCase) and again.kind is ClassifierCase
    assert again.hash == case.hash and again.about == "results.nc"
    assert again.size == case.size == 15
    assert again.size_in_words == case.size_in_words == "p = 1.1, p = 2, p = 3; 5 seeds each"


def test_it_is_kept_in_no_other_kind_of_file(case, tmp_path):
    with pytest.raises(InvalidInputError):
        case.save(tmp_path / "results.npz")


def test_the_hash_tells_cases_apart(case):
    data = case.data
    others = [
        data,
        data.assign(test_accuracy=data["test_accuracy"] + 0.01),
        data.drop_vars("hoyer"),
        data.assign_coords(seed=data["seed"] + 1),
        data.assign_coords(optimizer=["p = 1.1", "p = 2", "Adam"]),
        data.assign(at_edge=("optimizer", [True, False, False])),
        data.assign_attrs(chance=0.4),
        data.assign_attrs(data="image"),
    ]
    assert len({case.replace(data=other).hash for other in others}) == len(others)
    assert case.replace(about="something else").hash == case.hash
    assert case.replace(data=data.assign_attrs(title="runs of May")).hash == case.hash


def test_a_counterexample_stays_whole(case):
    reversed_order = case.data.assign(test_accuracy=1 - case.data["test_accuracy"] / 2)
    found = check_claim(
        get_claim("mirror-descent/text-generalization"), [case.replace(data=reversed_order)]
    )
    assert found.outcome is Outcome.FAILS
    assert found.counterexample is not None and found.counterexample.case.size == case.size


def test_hypotheses_of_results_are_reported(case):
    met = {name: met for name, met, _ in check_hypotheses(case).rows}
    assert met == {"learning rates": True, "own starts": True, "learned": True}
    lost = case.data.copy(deep=True)
    lost["test_accuracy"][0, 2] = np.nan
    rows = {row[0]: row for row in check_hypotheses(case.replace(data=lost)).rows}
    assert rows["learned"][1] and "p = 1.1, seed 2, has no accuracy" in rows["learned"][2]
