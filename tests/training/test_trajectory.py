import errno
import os
import pathlib
import pickle

import h5py
import numpy as np
import pytest
import runs
import xarray as xr
from runs import STEP

from attractor.attention import LinearHead
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.tokens import Tokens
from attractor.training import Trajectory, train


@pytest.fixture(scope="module")
def run():
    return runs.trajectory()


def test_arrays_are_labeled(run):
    sizes = {"instance": 2, "seed": 2, "step": len(run.steps), "sequence": 3, "query": 1}
    for name, size in sizes.items():
        assert run.data.sizes[name] == size
    assert run.data["W"].dims == ("instance", "seed", "step", "row", "column")
    assert run.data["attended"].dims == ("instance", "seed", "step", "sequence", "query")
    assert run.data["loss"].dims == ("instance", "seed", "step")
    assert run.data["seed"].to_numpy().tolist() == [1, 2]
    assert isinstance(run.data["W"].data, np.ndarray)
    assert run.to_xarray() is run.data
    assert run.geometry == "frobenius" and run.settings["loss"] == "logistic"


def test_matrices_at_a_step(run):
    np.testing.assert_array_equal(run.W(), run.data["W"].to_numpy()[:, :, -1])
    np.testing.assert_array_equal(run.W(300), run.W())
    np.testing.assert_array_equal(run.W(0), run.data["W"].to_numpy()[:, :, 0])
    np.testing.assert_allclose(
        run.data["norm"].isel(step=-1), np.linalg.norm(run.W(), axis=(-2, -1)), rtol=1e-14
    )
    missing = next(s for s in range(300) if s not in run.steps)
    with pytest.raises(InvalidInputError, match="was not recorded"):
        run.W(missing)


def test_what_is_attended_to_is_what_the_matrices_say(run):
    scores = np.stack([run.tokens.scores(run.W()[:, k]) for k in range(2)], axis=1)
    np.testing.assert_array_equal(run.data["attended"].isel(step=-1), scores.argmax(-1))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(
        run.data["attended_probability"].isel(step=-1), 1 / weights.sum(-1), rtol=1e-12
    )


def test_keeping_the_last_matrices_alone(run):
    last = train(run.tokens, run.head, STEP, steps=300, seeds=2, seed=1, weights="last")
    np.testing.assert_array_equal(last.W(), run.W())
    np.testing.assert_array_equal(last.W(300), run.W())
    assert last.weights_kept == "last" and "matrices kept" in str(last)
    with pytest.raises(InvalidInputError, match=r'step: .*step 0 were not kept.*weights="all"'):
        last.W(0)


def test_save_and_load(run, tmp_path):
    path = tmp_path / "runs" / "run.nc"
    run.save(path)
    again = Trajectory.load(path)
    assert again.data.identical(run.data)
    for name in ("keys", "queries", "values", "labels", "mask", "instance_numbers"):
        found, expected = getattr(again.tokens, name), getattr(run.tokens, name)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    np.testing.assert_array_equal(again.head.weight, run.head.weight)
    assert again.settings == run.settings
    assert (again.optimizer_name, again.geometry) == (run.optimizer_name, run.geometry)
    assert os.listdir(path.parent) == ["run.nc"]
    assert train(again.tokens, again.head, STEP, steps=300, seeds=2, seed=1).data.identical(
        run.data
    )


def test_save_and_load_without_instances_and_with_values_and_padding(rng, tmp_path):
    tokens = Tokens(
        rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 2, 5)), np.ones((2, 2)),
        mask=[[1, 1, 1, 0], [1, 1, 0, 0]], values=rng.normal(size=(2, 4, 2)),
    )  # fmt: skip
    run = train(tokens, LinearHead([1.0, 2.0]), STEP, steps=5, weights="last")
    run.save(tmp_path / "run.nc")
    again = Trajectory.load(tmp_path / "run.nc")
    assert again.tokens.instances is None and again.data.identical(run.data)
    np.testing.assert_array_equal(again.tokens.values, tokens.values)
    np.testing.assert_array_equal(again.tokens.mask, tokens.mask)


def test_bad_files_are_refused_and_never_unpickled(run, tmp_path):
    path = tmp_path / "run.nc"
    run.save(path)
    whole = path.read_bytes()
    (tmp_path / "truncated.nc").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "pickle.nc").write_bytes(pickle.dumps({"loss": 1}))
    xr.Dataset({"loss": ("x", np.ones(2))}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    for name in ("truncated.nc", "pickle.nc", "other.nc", "missing.nc"):
        with pytest.raises(FileFormatError, match=name):
            Trajectory.load(tmp_path / name)


def _settings(value):
    return lambda stored: stored["records"].attrs.__setitem__("settings", value)


def _replace(name, make):
    def change(stored):
        old = stored["records"][name][()]
        stored["records"][name][...] = make(old)

    return change


DAMAGE = {
    "settings that are a list": _settings("[]"),
    "settings that are a number": _settings("1"),
    "settings of brackets": _settings("[" * 100_000),
    "a loss that is no text": _settings('{"loss": 3}'),
    "half a code point": _settings('{"loss": "\\ud800"}'),
    "settings that are no text": lambda stored: stored["records"].attrs.__setitem__("settings", 1),
    "no settings": lambda stored: stored["records"].attrs.__delitem__("settings"),
    "a version that is a text": lambda stored: stored["records"].attrs.__setitem__("version", "a"),
    "no W": lambda stored: stored["records"].__delitem__("W"),
    "no loss": lambda stored: stored["records"].__delitem__("loss"),
    "no tokens": lambda stored: stored.__delitem__("tokens"),
    "a status that means nothing": _replace("status", lambda old: old + 99),
    "a token that is not there": _replace("attended", lambda old: old + 99),
    "one step twice": _replace("step", lambda old: 0 * old),
    "one seed twice": _replace("seed", lambda old: 0 * old),
    "eight terabytes": lambda stored: stored["tokens"].create_dataset(
        "more", shape=(10**6, 10**6), dtype="f8", chunks=(9, 9)
    ),
    "a head of other vectors": lambda stored: (
        stored["head"].__delitem__("weight"),
        stored["head"].__setitem__("weight", np.ones(3)),
    ),
}


@pytest.fixture(scope="module")
def saved(run, tmp_path_factory):
    """The bytes of the file of a run."""
    path = tmp_path_factory.mktemp("saved") / "run.nc"
    run.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("what", DAMAGE)
def test_every_way_of_being_damaged_is_one_error_that_names_the_file(what, saved, tmp_path):
    path = tmp_path / "run.nc"
    path.write_bytes(saved)
    with h5py.File(path, "r+") as stored:
        DAMAGE[what](stored)
    with pytest.raises(FileFormatError, match=r"run\.nc"):
        Trajectory.load(path)


def test_a_failed_save_leaves_the_old_file(run, tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    path.write_text("old")

    def fail(*args, **keywords):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(pathlib.Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        run.save(path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["run.nc"]


def test_it_prints_as_a_short_table(run):
    text = str(run)
    assert "4 (2 instances x 2 seeds): 4 trained" in text
    assert "normalized gradient descent (learning_rate=0.3)" in text
    assert len(text.splitlines()) < 15
    assert "<table" in run._repr_html_() and "frobenius" in run._repr_html_()
