"""Results of classifiers in NetCDF files, as users write them."""

import numpy as np
import pytest
import xarray as xr

from attractor import load
from attractor.corpora import load_corpus
from attractor.files import load_tokens
from attractor.papers import CLASSIFIERS_LAYOUT, ClassifierCase, save_classifiers
from attractor.prompts import load_head
from attractor.support.errors import FileFormatError, InvalidInputError

ATTRIBUTES = {"data": "text", "chance": 0.5, "test_examples": 2000}
COORDINATES = {
    "optimizer": ["p = 1.1", "Adam"],
    "seed": [0, 1, 2],
    "matrix": ["queries", "keys", "values"],
    "block": [1, 2],
    "epoch": [1, 2, 3, 4],
}


@pytest.fixture
def results(rng):
    """Every variable that claims know, and one that they do not."""
    sizes = {name: len(values) for name, values in COORDINATES.items()}
    variables = {
        name: (dimensions, rng.random([sizes[each] for each in dimensions]))
        for name, (dimensions, _) in CLASSIFIERS_LAYOUT.items()
    }
    variables["at_edge"] = ("optimizer", [False, True])
    variables["status"] = (("optimizer", "seed"), np.zeros((2, 3), int))
    variables["tried"] = (("optimizer", "try"), np.ones((2, 4)))
    return xr.Dataset(variables, COORDINATES, ATTRIBUTES)


@pytest.fixture
def write(tmp_path):
    def save(data):
        data.to_netcdf(tmp_path / "results.nc", engine="h5netcdf")
        return tmp_path / "results.nc"

    return save


def test_everything_a_file_can_hold(results, write):
    loaded = load(write(results))
    assert isinstance(loaded, ClassifierCase)
    assert loaded.data.equals(results)
    assert loaded.data.attrs["data"] == "text" and loaded.data.attrs["test_examples"] == 2000
    assert loaded.data["at_edge"].dtype == bool
    assert repr(loaded) == "ClassifierCase(p = 1.1, Adam; 3 seeds each)"


def test_accuracies_and_names_are_enough(results, write):
    loaded = load(write(results[["test_accuracy"]].drop_vars("seed").drop_attrs()))
    assert loaded.data.sizes["seed"] == 3


def test_a_written_file_gives_the_same(results, tmp_path):
    save_classifiers(tmp_path / "again.nc", ClassifierCase(results))
    assert load(tmp_path / "again.nc").data.identical(results)
    with pytest.raises(InvalidInputError, match=r"\.nc"):
        save_classifiers(tmp_path / "again.npz", ClassifierCase(results))


def test_a_model_may_have_no_accuracy(results, write):
    results["test_accuracy"][0, 1] = np.nan
    assert load(write(results)).data["test_accuracy"].isnull().sum() == 1


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("test_accuracy", lambda data: data.drop_vars("test_accuracy")),
        ("test_accuracy", lambda data: data.assign(test_accuracy=100 * data["test_accuracy"])),
        ("test_accuracy", lambda data: data.assign(test_accuracy=("optimizer", [0.5, 0.6]))),
        ("test_accuracy", lambda data: data.assign(test_accuracy=data["test_accuracy"] + np.inf)),
        ("optimizer", lambda data: data.isel(optimizer=0)),
        ("optimizer", lambda data: data.isel(optimizer=[])),
        ("optimizer", lambda data: data.drop_vars("optimizer")),
        ("optimizer", lambda data: data.assign_coords(optimizer=[1, 2])),
        ("optimizer", lambda data: data.assign_coords(optimizer=["Adam", "Adam"])),
        ("seed", lambda data: data.rename(seed="run")),
        ("seed", lambda data: data.assign_coords(seed=[1, 1, 2])),
        ("matrix", lambda data: data.drop_vars("matrix")),
        ("hoyer", lambda data: data.assign(hoyer=data["hoyer"].mean("block"))),
        ("status", lambda data: data.assign(status=data["status"].astype(str))),
        ("data", lambda data: data.assign_attrs(data="sound")),
        ("chance", lambda data: data.assign_attrs(chance=50)),
        ("test_examples", lambda data: data.assign_attrs(test_examples=0.5)),
    ],
)
def test_what_cannot_be_used_is_named(results, write, argument, change):
    with pytest.raises(InvalidInputError) as refused:
        load(write(change(results)))
    assert refused.value.argument == argument


def test_a_file_of_another_kind_is_told_what_is_expected(tmp_path):
    xr.Dataset({"loss": ("step", [1.0, 2.0])}).to_netcdf(
        tmp_path / "a.nc", group="records", engine="h5netcdf"
    )  # as saved trajectories are
    with pytest.raises(InvalidInputError, match="results of classifiers over the dimensions"):
        load(tmp_path / "a.nc")


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_a_damaged_file_is_refused(results, write, share, capfd):
    file = write(results)
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileFormatError, match="damaged"):
        load(file)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("read", [load_tokens, load_corpus, load_head])
def test_other_readers_refuse_it(results, write, read):
    with pytest.raises(InvalidInputError) as refused:
        read(write(results))
    assert refused.value.argument == "file"
