"""The audit of made-up heads, whole."""

import numpy as np
import pytest
import xarray as xr
from made_heads import gaussian_heads, matching_heads

import attractor as at
from attractor.heads import CaptureStatus
from attractor.heads.audit import _audit_heads
from attractor.heads.captured.captured import Captured, CapturedLayer

DRAWS = 19


@pytest.fixture(scope="module")
def found():
    return at.audit_heads(matching_heads(0), draws=DRAWS)


def test_a_matching_head_is_learnable_and_one_of_random_weights_is_not(found):
    assert found.data["learnable"].to_numpy().tolist() == [["learnable", "not told apart"]]
    matching = found.data.sel(layer=0, head=0, null="rotation")
    assert matching["p_together"] == 1 / (DRAWS + 1)
    assert matching["accuracy_low"] < matching["accuracy"] <= matching["accuracy_high"]
    assert matching["accuracy_null"].max() < matching["accuracy"]
    assert np.isnan(matching["q"])  # of 19 draws no rate of false discoveries is known
    assert found.counts == {"learnable": 1, "not told apart": 1}


def test_a_simpler_rule_predicts_as_well_unless_the_same_queries_say_otherwise(found):
    matching = found.data.sel(layer=0, head=0)
    simpler = max(matching["accuracy_offset"], matching["accuracy_query_free"])
    assert matching["advantage"] == pytest.approx(float(matching["accuracy"] - simpler))
    assert 0 < matching["advantage_low"] < matching["advantage"] < matching["advantage_high"]


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.01, 0.06), "learnable"),
        ((0.0, 0.2), "positional"),  # not shown to predict more
        ((-0.1, -0.05), "positional"),
        ((0.01, 0.049), "positional"),  # shown to predict more, and not much more
    ],
)
def test_the_verdict_rests_on_the_interval_of_the_difference(interval, verdict):
    names = ("advantage_low", "advantage_high", "accuracy_offset", "accuracy_query_free")
    for offset, free, simpler in ((0.6, 0.5, "positional"), (0.5, 0.6, "query-free")):
        values = (*interval, offset, free)
        head = xr.Dataset(dict(zip(names, values, strict=True)))
        wanted = simpler if verdict == "positional" else verdict
        assert _audit_heads._verdict(head, 0.05, 0.05) == wanted
        assert _audit_heads._verdict(head, 0.05, 0.06) == "not told apart"


def test_numbers_of_a_head_do_not_depend_on_others(found):
    alone = at.audit_heads(matching_heads(0), draws=DRAWS, heads=[(0, 1)])
    shared = [name for name in found.data.data_vars if name not in ("p_together", "learnable")]
    xr.testing.assert_identical(
        alone.data[shared].drop_attrs(), found.data[shared].sel(head=[1]).drop_attrs()
    )


def test_an_audit_that_was_ended_goes_on_with_the_same_bits(found, tmp_path, monkeypatch):
    ask, asked = _audit_heads._Questions.__call__, []

    def ends(questions, head):
        if len(asked) == 1:
            raise KeyboardInterrupt
        asked.append(head)
        return ask(questions, head)

    store = tmp_path / "store"
    with monkeypatch.context() as patched, at.use_threads(1):
        patched.setattr(_audit_heads._Questions, "__call__", ends)
        with pytest.raises(KeyboardInterrupt):
            at.audit_heads(matching_heads(0), draws=DRAWS, store=store)
    monkeypatch.setattr(
        _audit_heads._Questions,
        "__call__",
        lambda questions, head: asked.append(head) or ask(questions, head),
    )
    again = at.audit_heads(matching_heads(0), draws=DRAWS, store=store)
    assert asked == [0, 1]
    xr.testing.assert_identical(again.data, found.data)
    for other in (
        {"captured": matching_heads(1)},
        {"seed": 1},
        {"draws": DRAWS + 1},
    ):
        given = {"captured": matching_heads(0), "draws": DRAWS} | other
        with pytest.raises(at.InvalidInputError, match="holds another audit"):
            at.audit_heads(**given, store=store)


def test_results_are_saved_and_loaded(found, tmp_path):
    found.save(tmp_path / "audit.nc")
    xr.testing.assert_identical(at.load_audit(tmp_path / "audit.nc").data, found.data)
    gaussian_heads(0).save(tmp_path / "heads.nc")
    with pytest.raises(at.FileFormatError, match="no audit of attention heads"):
        at.load_audit(tmp_path / "heads.nc")


def test_heads_that_cannot_be_asked_say_so():
    layer = gaussian_heads(0, heads=2).layer(0)
    statuses = (CaptureStatus.NOT_BILINEAR, CaptureStatus.NOT_SUPPORTED)
    fields = {name: getattr(layer, name) for name in CapturedLayer.__dataclass_fields__}
    odd = CapturedLayer(**(fields | {"status": statuses}))
    given = gaussian_heads(0, heads=2)
    captured = Captured(
        {3: odd},
        document=given.document,
        position=given.position,
        token=given.token,
        special=given.special,
    )
    data = at.audit_heads(captured, draws=DRAWS).data.sel(layer=3)
    assert data["capture"].to_numpy().tolist() == ["not bilinear", "not supported"]
    assert data["learnable"].to_numpy().tolist() == ["not asked", "not asked"]
    assert data["selection"].to_numpy().tolist()[1] == "not asked"
    assert np.isfinite(data["sink_mass"][0])


def test_few_documents_are_said():
    few = gaussian_heads(0, document=np.arange(128) % 60)
    data = at.audit_heads(few, draws=DRAWS).data
    assert data["learnable"].item() == "too few queries"
    assert "accuracy" not in data


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"draws": 18}, "draws: of 18 no p-value can be below"),
        ({"alpha": 0}, "alpha"),
        ({"layers": [1]}, "layers: layer 1 was not captured"),
        ({"heads": [(0, 2)]}, "layer 0 has no head 2"),
        ({"heads": [3]}, "no pair of a layer and a head"),
        ({"heads": []}, "heads: it has 0 items"),
        ({"heads": [(0, 0)], "layers": [0]}, "beside layers"),
        ({"captured": 1}, "captured"),
        ({"sink_positions": -1}, "sink_positions"),
    ],
)
def test_bad_input_is_refused(given, message):
    with pytest.raises(at.InvalidInputError, match=message):
        at.audit_heads(**({"captured": matching_heads(0), "draws": DRAWS} | given))
