import json
import math

import numpy as np
import pytest
from made_audit import made_audit

from attractor.heads.audit.result import (
    Learnable,
    by_clearness,
    deviations_above_null,
    heads,
    name,
    of_verdict,
    selects,
    verdict,
)


@pytest.fixture
def data():
    return made_audit(2, 3, draws=19).data


def test_every_head_has_its_own_numbers(data):
    found = heads(data)
    assert [name(one) for one in found] == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    one = found[4]
    draws = data["accuracy_null"].sel(layer=1, head=1, null="rotation")
    assert one["accuracy"] == data["accuracy"].sel(layer=1, head=1).item()
    assert one["accuracy_null"]["mean"] == pytest.approx(float(draws.mean()))
    assert one["accuracy_null"]["largest"] == float(draws.max())
    above = (one["accuracy"] - draws.mean()) / draws.std(ddof=1)
    assert one["deviations_above_null"] == pytest.approx(float(above))
    assert one["p"] == of_verdict(data, "p").sel(layer=1, head=1).item()
    assert one["nulls"]["pairing"]["p"] == data["p"].sel(layer=1, head=1, null="pairing").item()
    assert set(one["required_length"]) == {"0.3", "0.1"}
    assert "selected" not in one
    json.dumps(found, allow_nan=False)


def test_the_order_of_axes_does_not_matter(data):
    assert heads(data.transpose(*reversed(list(data.sizes)))) == heads(data)


def test_unknown_numbers_are_none(data):
    last = heads(data)[-1]
    assert last["learnable"] == Learnable.TOO_FEW
    assert last["accuracy"] is last["p"] is last["deviations_above_null"] is None


def test_holes_are_no_heads(data):
    capture = data["capture"].copy()
    capture[0, 1] = ""
    assert [name(one) for one in heads(data.assign(capture=capture))][:2] == ["0.0", "0.2"]


def test_draws_that_agree(data):
    null = data["accuracy_null"] * 0 + 0.25
    above = deviations_above_null(
        data.assign(accuracy=data["accuracy"] * 0 + 0.25, accuracy_null=null)
    )
    assert above[0, 0] == 0
    above = deviations_above_null(data.assign(accuracy_null=null))
    assert above[0, 2] == math.inf and np.isnan(above[1, 2])
    found = heads(data.assign(accuracy_null=null))
    assert found[2]["deviations_above_null"] is None
    assert name(by_clearness(found)[0]) == "0.2"


def test_the_clearest_comes_first_and_what_was_not_tested_last(data):
    ordered = by_clearness(heads(data))
    assert name(ordered[0]) == "0.2" and name(ordered[-1]) == "1.2"
    together = [one["p_together"] for one in ordered[:-1]]
    assert together == sorted(together)


def test_without_any_test(data):
    left = ["accuracy", "accuracy_low", "accuracy_high", "accuracy_null", "p", "p_together", "q"]
    bare = data.drop_vars(left)
    assert np.isnan(deviations_above_null(bare)).all()
    assert all(one["accuracy"] is None and one["nulls"] == {} for one in heads(bare))


def test_words():
    one = {"selection": "offset +2", "offset_share": 0.713, "learnable": "not asked"}
    assert selects(one) == "offset +2 71 %"
    assert selects({"selection": "mixed"}) == "mixed"
    assert verdict(one | {"capture": "not bilinear"}) == "not asked: not bilinear"
    assert verdict(one | {"learnable": "learnable"}) == "learnable"
