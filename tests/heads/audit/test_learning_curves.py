"""Learning curves inside the bands of their nulls."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from made_heads import gaussian_heads, matching_heads, rows_of

import attractor as at
from attractor.heads import learning_curves
from attractor.heads.audit.result import Audit
from attractor.heads.checkpoints._learning_curves import _nested
from attractor.heads.statistics.learnability import learn
from attractor.heads.statistics.nulls import Null, draw_maps

DRAWS = 19


@pytest.fixture(scope="module")
def audited():
    return at.audit_heads(matching_heads(0), draws=DRAWS, sink_positions=0)


@pytest.fixture(scope="module")
def curves(audited):
    return learning_curves(matching_heads(0), audited, [(0, 1), (0, 0)], draws=7)


def test_with_all_documents_numbers_are_those_of_the_audit(curves, audited):
    last = curves.isel(size=-1)
    assert last["head"].to_numpy().tolist() == [1, 0]
    of_audit = audited.data.sel(layer=0, head=[1, 0])
    for name in ("accuracy", "accuracy_low", "accuracy_high", "accuracy_offset", "chance",
                 "accuracy_query_free", "learnable"):  # fmt: skip
        np.testing.assert_array_equal(last[name], of_audit[name], err_msg=name)
    draws = of_audit["accuracy_null"].sel(null="rotation").isel(draw=slice(7))
    np.testing.assert_array_equal(last["accuracy_null"], draws)


def test_a_matching_head_leaves_its_band_and_one_of_random_weights_does_not(curves):
    above = (curves["accuracy"] > curves["accuracy_null"].max("draw")).to_numpy()
    assert above[1, -3:].all() and not above[0, -1]
    assert curves["accuracy"][1, 0] < curves["accuracy"][1, -1] - 0.3


def test_a_curve_does_not_depend_on_others_and_its_draws_not_on_their_number(curves, audited):
    alone = learning_curves(matching_heads(0), audited, [(0, 0)], draws=5)
    shared = curves.isel(curve=[1], draw=slice(5))
    xr.testing.assert_equal(alone, shared)


def test_each_point_is_a_rule_of_its_documents_alone(curves):
    rows = rows_of(matching_heads(0))
    count, learned = _nested(rows, 0)[2]
    maps = draw_maps(Null.ROTATION, rows, 7, (0, 0, 0))
    one = learn(rows, maps, learned)
    assert curves["documents"][1, 2] == count
    np.testing.assert_array_equal(curves["accuracy_null"][1, 2], one.accuracy[1:])
    assert curves["accuracy"][1, 2] == one.accuracy[0]


def test_documents_are_nested_halves_with_all_of_their_rows():
    rows = rows_of(gaussian_heads(0, document=np.arange(128) // 2))
    found = _nested(rows, 3)
    every = len(np.unique(rows.document[rows.learned]))
    assert [count for count, _ in found] == [every // 2**n for n in (4, 3, 2, 1, 0)]
    for (count, some), (_, more) in pairwise(found):
        assert not (some & ~more).any()
        documents = np.unique(rows.document[some])
        assert len(documents) == count
        np.testing.assert_array_equal(some, np.isin(rows.document, documents))
    np.testing.assert_array_equal(found[-1][1], rows.learned)
    others = _nested(rows, 4)
    assert (others[0][1] != found[0][1]).any()


def test_a_document_keeps_its_place_whatever_others_there_are():
    rows = rows_of(gaussian_heads(0))
    half = dict(_nested(rows, 0))
    first = np.unique(rows.document[half[min(half)]])
    fewer = np.isin(rows.document, first) | (rows.document % 3 == 0) | ~rows.learned
    names = ("keys", "queries", "content", "document", "position", "row", "learned")
    left = dataclasses.replace(rows, **{name: getattr(rows, name)[fewer] for name in names})
    again = dict(_nested(left, 0))
    smallest = np.unique(left.document[again[min(again)]])
    assert set(smallest) <= set(first)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"heads": [(0, 2)]}, "heads: head 0.2 was not tested in the audit"),
        ({"heads": [(1, 0)]}, "head 1.0 was not tested"),
        ({"heads": [3]}, "no pair of a layer and a head"),
        ({"heads": []}, "heads: it has 0 items"),
        ({"draws": 0}, "draws"),
        ({"captured": 1}, "captured"),
        ({"audit": 1}, "audit"),
        ({"captured": gaussian_heads(0, document=np.arange(1, 129))}, "audit: .*documents differ"),
    ],
)
def test_bad_input_is_refused(audited, given, message):
    arguments = {"captured": matching_heads(0), "audit": audited, "heads": [(0, 0)]} | given
    with pytest.raises(at.InvalidInputError, match=message):
        learning_curves(**arguments)


def test_heads_without_an_accuracy_are_refused(audited):
    untested = Audit(audited.data.drop_vars("accuracy"))
    with pytest.raises(at.InvalidInputError, match=r"head 0\.0 was not tested"):
        learning_curves(matching_heads(0), untested, [(0, 0)])
