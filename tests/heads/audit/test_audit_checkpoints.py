"""Audits of checkpoints: what is said of heads of known movement, and what is refused."""

import functools

import numpy as np
import pytest
import xarray as xr
from made_audit import made_audit
from made_checkpoints import (
    TOKENS,
    WIDTH,
    captured_heads,
    made_checkpoint_audit,
    moved_along_the_solution,
    weights,
)

import attractor as at
from attractor.heads import Captured, Projections, load_checkpoint_audit
from attractor.heads.checkpoints import _audit_checkpoints
from attractor.support.errors import FileFormatError, InvalidInputError


def stepped(seed, step=0.3, heads=2):
    first, steps = weights(seed, heads), weights((seed, 1), heads, step)
    last = [one + two for one, two in zip(first, steps, strict=True)]
    return captured_heads(*first, seed=seed), captured_heads(*last, seed=seed)


@functools.cache
def audited_steps(seed):
    return at.audit_checkpoints(stepped(seed), draws=19).data


@pytest.mark.long
@pytest.mark.parametrize("amount, word", [(0.6, "toward"), (-0.6, "away")])
def test_planted_movements_are_found(amount, word):
    found = at.audit_checkpoints(moved_along_the_solution(amount), draws=39)
    assert found.data["direction"].to_numpy().tolist() == [[[word, word]]]
    assert f"2 {word}." in str(found)
    assert (found.data["p_together"] <= 0.05).all()


@pytest.mark.long
def test_random_steps_have_cosines_that_mean_nothing():
    found = [audited_steps(seed) for seed in range(8)]
    cosines = np.concatenate([one["cosine"].to_numpy().ravel() for one in found])
    assert (cosines > 0.05).all() and cosines.mean() > 0.4  # without a null, all go toward
    words = np.concatenate([one["direction"].to_numpy().ravel() for one in found])
    assert (words == "elsewhere").sum() >= 14


@pytest.mark.long
def test_several_checkpoints():
    first, last = stepped(1)
    middle = captured_heads(*weights(5), seed=1)
    found = at.audit_checkpoints([first, middle, last], draws=19)
    data = found.data
    assert data["checkpoint"].to_numpy().tolist() == ["0", "1"] and data.attrs["last"] == "2"
    alone = at.audit_checkpoints([middle, last], draws=19, heads=[(0, 1)]).data
    mine = data.sel(checkpoint="1", layer=0, head=1)
    for name in ("cosine", "cosine_null", "norm_ratio", "queries"):
        np.testing.assert_array_equal(alone[name].to_numpy().ravel(), mine[name].values.ravel())
    assert alone["p_together"].item() <= mine["p_together"]


@pytest.mark.long
def test_norms_are_told_apart_and_draws_are_compared_in_the_first():
    pair = stepped(2, heads=1)
    both = at.audit_checkpoints(pair, draws=19, norms=["nuclear", "frobenius"]).data
    one = at.audit_checkpoints(pair, draws=19).data
    assert both["norm"].to_numpy().tolist() == ["nuclear", "frobenius"]
    assert both["cosine"].sel(norm="frobenius").item() == pytest.approx(one["cosine"].item())
    assert not np.allclose(both["cosine_null"], one["cosine_null"], atol=1e-3)
    assert (both["gap"] <= 1e-4).all() and (both["gap_null"] <= 1e-4).all()


def test_an_open_certificate_is_a_word_of_its_own(monkeypatch):
    solved, gap = _audit_checkpoints.solved, _audit_checkpoints.GAP
    monkeypatch.setattr(_audit_checkpoints, "solved", lambda *asked: solved(*asked[:3], gap))
    monkeypatch.setattr(_audit_checkpoints, "GAP", -1.0)  # which no solution has
    found = at.audit_checkpoints(stepped(3, heads=1), draws=19)
    assert found.data["direction"].item() == "certificate open"


def test_one_pairing_alone_is_elsewhere():
    """Of keys of width one, and two mean queries, no other pairing is there to compare with."""
    K, Q, b = (one[:, :1] for one in weights(1))
    found = at.audit_checkpoints(
        [captured_heads(K, Q, b), captured_heads(K + 0.1, Q, b)], draws=19
    ).data
    assert set(found["direction"].to_numpy().ravel()) == {"elsewhere"}


def test_a_store_goes_on_where_a_killed_audit_ended(tmp_path, monkeypatch):
    pair, given = stepped(1), {"draws": 19, "store": tmp_path / "store"}
    at.audit_heads(pair[-1], draws=19, store=given["store"])  # which it may share
    movements, asked = _audit_checkpoints.movements, []

    def ends(*arguments, **options):
        asked.append(arguments[2])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return movements(*arguments, **options)

    monkeypatch.setattr(_audit_checkpoints, "movements", ends)
    with at.use_threads(1), pytest.raises(KeyboardInterrupt):
        at.audit_checkpoints(pair, **given)
    again = at.audit_checkpoints(pair, **given)
    assert asked == [0, 1, 1]
    xr.testing.assert_identical(again.data, audited_steps(1))
    at.audit_checkpoints(pair, **given, alpha=0.1)  # of which heads know nothing
    for other in ({"seed": 1}, {"norms": ["nuclear"]}, {"draws": 39}):
        with pytest.raises(InvalidInputError, match="holds another audit: checkpoints differ"):
            at.audit_checkpoints(pair, **(given | other))
    with pytest.raises(InvalidInputError, match="had other keys or queries"):
        at.audit_checkpoints(stepped(1, step=0.2), **given)


def test_a_file_holds_everything(tmp_path):
    found = made_checkpoint_audit(2)
    found.save(tmp_path / "checkpoints.nc")
    again = load_checkpoint_audit(tmp_path / "checkpoints.nc")
    assert again.data.identical(found.to_xarray()) and str(again) == str(found)
    made_audit(1, 2).save(tmp_path / "audit.nc")
    with pytest.raises(FileFormatError, match="holds no audit of checkpoints"):
        load_checkpoint_audit(tmp_path / "audit.nc")


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"queries": 31}, "document has the shape"),
        ({"position": np.zeros(32, int)}, "position of query"),
        ({"document": np.arange(32) + 1}, "document of query 0"),
        ({"token": [["other"] * TOKENS] * 32}, "token of query 0"),
        ({"special": np.ones((32, TOKENS), bool)}, "special of query 0"),
        ({"mask": np.arange(TOKENS) < np.full((32, 1), 4)}, "the mask of layer 0"),
    ],
)
def test_what_differs_between_checkpoints_is_named(changed, message):
    K, Q, b = weights(1)
    other = captured_heads(K, Q, b, **changed)
    with pytest.raises(InvalidInputError, match=rf"checkpoints\[0\].*{message}"):
        at.audit_checkpoints([other, captured_heads(K, Q, b)])


def test_other_models_are_refused():
    K, Q, b = weights(1)
    last = captured_heads(K, Q, b)
    for other, message in (
        (captured_heads(K[:1], Q[:1], b[:1]), "queries of layer 0 has the shape"),
        (captured_heads(K, Q), "projections.bias of layer 0 has the shape None"),
        (captured_heads(K[:, : WIDTH - 1], Q[:, : WIDTH - 1], b[:, :-1]), "queries of layer 0"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            at.audit_checkpoints([other, last])
    numbered = Captured(
        {3: last.layer(0)}, document=last.document, position=last.position, token=last.token,
        special=last.special,
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match=r"it has layers \[3\], and the last has \[0\]"):
        at.audit_checkpoints([numbered, last])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"draws": 3}, "draws"),
        ({"norms": ["l1"]}, "norms"),
        ({"norms": []}, "norms"),
        ({"layers": [4]}, "layer 4 was not captured"),
        ({"heads": [(0, 9)]}, "layer 0 has no head 9"),
        ({"progress": 1}, "progress"),
    ],
)
def test_arguments_are_checked(options, message):
    pair = stepped(1)
    with pytest.raises(InvalidInputError, match=message):
        at.audit_checkpoints(pair, **options)
    with pytest.raises(InvalidInputError, match="checkpoints"):
        at.audit_checkpoints(pair[:1])


def test_queries_without_a_choice_are_not_asked_about(rng):
    def captured():
        made = Projections(query=rng.normal(size=(1, 3, 5)), key=rng.normal(size=(1, 3, 5)))
        return Captured.from_arrays(np.ones((4, 1, 3)), np.ones((4, 3)), projections=made)

    data = at.audit_checkpoints([captured(), captured()], draws=19).data
    assert data["direction"].item() == "not asked: nothing to choose among"
    assert np.isfinite(data["norm_ratio"].item())
