import dataclasses

import numpy as np
import pytest

from attractor.attention import LinearHead
from attractor.files.case import Case
from attractor.papers import hypotheses_table
from attractor.papers.hypotheses_table import check_hypotheses
from attractor.papers.max_margin.data import joint_training
from attractor.papers.transformers_as_svms.data import SMALL, random_unit_tokens
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


def met_and_found(case):
    summary = check_hypotheses(case).summary()["hypotheses"]
    return {name: (each["met"], each["found"]) for name, each in summary.items()}


@pytest.mark.parametrize(("seed", "good"), [(18, True), (1, False)])
def test_says_whether_the_first_gradient_is_good(seed, good):
    met, found = met_and_found(random_unit_tokens(seed))["good first gradient"]
    assert met == good
    assert found.startswith("the smallest margin of the first step is " + ("0." if good else "-"))


def test_the_first_gradient_of_keys_and_queries_is_not_asked_for():
    met, found = met_and_found(random_unit_tokens(18, SMALL, "KQ"))["good first gradient"]
    assert not met and "what is trained is KQ" in found


@pytest.mark.long
def test_says_how_much_label_margin_leaks():
    told = met_and_found(joint_training(all_labels_support=True))
    assert told["labels separable"][0] and told["all labels support"][0]
    met, found = told["pure selection is best"]
    assert met and "loses 0.5" in found
    told = met_and_found(joint_training(all_labels_support=False))
    assert not told["all labels support"][0]
    assert not told["pure selection is best"][0]
    assert told["pure selection is best at the margin"][0]


def test_a_hypothesis_that_cannot_be_checked_leaves_the_others(monkeypatch):
    def refuse(case):
        raise InvalidInputError("keys", "there are none", "Give some")

    first, *others = hypotheses_table.HYPOTHESES
    known = [dataclasses.replace(first, check=refuse), *others]
    monkeypatch.setitem(hypotheses_table._HYPOTHESES, Case, known)
    told = met_and_found(random_unit_tokens(0))
    assert told[first.name] == (False, "it cannot be checked: keys: there are none")
    assert len(told) == len(known)


MASK = np.array([[True, True], [True, False]])


def degenerate():
    ones = np.ones((2, 1))
    head = LinearHead(np.array([1.0, 0]))
    two = np.array([[[1.0, 0], [0, 1]], [[-1, 0], [0, 1]]])
    yield "one token in a row", Tokens(two, ones, np.array([1.0, -1]), mask=MASK), head
    yield "one row", Tokens(two[:1], ones[:1], np.array([1.0])), head
    yield "zero tokens", Tokens(0 * two, ones, np.array([1.0, -1])), head
    yield "duplicates", Tokens(two[:, [0, 0]], ones, np.array([1.0, -1])), head
    yield "other labels", Tokens(two, ones, np.array([2.0, -0.5])), head
    yield "huge", Tokens(1e120 * two, ones, np.array([1.0, -1])), head
    yield "tiny", Tokens(1e-120 * two, ones, np.array([1.0, -1])), head


@pytest.mark.parametrize(("tokens", "head"), [given[1:] for given in degenerate()])
@pytest.mark.parametrize("parameterization", ["W", "p"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_degenerate_data_are_told_apart_and_not_refused(tokens, head, parameterization):
    for met, found in met_and_found(Case(tokens, head, parameterization)).values():
        assert isinstance(met, bool) and found and "nan" not in found


@pytest.mark.long
def test_large_data_are_looked_at_in_seconds_not_hours(rng):
    keys = rng.normal(size=(100, 10, 20))
    tokens = Tokens(keys, rng.normal(size=(100, 20)), np.ones(100))
    told = met_and_found(Case(tokens, LinearHead(np.ones(20))))
    assert told["labels separable"][0] and "nan" not in told["pure selection is best"][1]
