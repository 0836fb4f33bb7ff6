"""Every kind of run comes back from its file as it was, and only from a file of its own kind."""

import jax
import numpy as np
import pytest
import runs
import xarray as xr

import attractor as at
from attractor.prompts.regression import InContextTrajectory, train_in_context
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.storage import save_netcdf

KINDS = (
    runs.linear_trajectory,
    runs.linear_path,
    runs.two_stages,
    runs.text_classifiers,
    runs.in_context,
)


@pytest.fixture(scope="module", params=KINDS, ids=lambda make: make.__name__)
def saved(request, tmp_path_factory):
    run = request.param()
    path = tmp_path_factory.mktemp("runs") / "run.nc"
    run.save(path)
    return run, path


def groups_of(path):
    import h5py

    found = set()
    with h5py.File(path) as file:
        file.visititems(lambda name, one: found.add(name) if isinstance(one, h5py.Group) else None)
    leaves = [one for one in found if not any(other.startswith(f"{one}/") for other in found)]
    return {name: xr.load_dataset(path, group=name, engine="h5netcdf") for name in sorted(leaves)}


@pytest.fixture(scope="module")
def groups(saved):
    """What is in the file, group by group."""
    return groups_of(saved[1])


@pytest.fixture(scope="module")
def of_another_kind(tmp_path_factory):
    """The file of a run of attention."""
    path = tmp_path_factory.mktemp("other") / "run.nc"
    runs.trajectory().save(path)
    return path


def test_a_run_comes_back_as_it_was(saved, groups):
    run, path = saved
    again = type(run).load(path)
    assert str(again) == str(run)
    assert again._repr_html_() == run._repr_html_()
    again.save(path.with_name("again.nc"))
    after = groups_of(path.with_name("again.nc"))
    assert groups.keys() == after.keys()
    assert all(groups[name].identical(after[name]) for name in groups)


@pytest.mark.long
def test_a_file_that_lacks_a_text_is_refused(saved, tmp_path):
    import h5py

    run, path = saved
    with h5py.File(path) as file:
        found = [("/", name) for name in file.attrs]
        file.visititems(lambda group, one: found.extend((group, name) for name in one.attrs))
    # Names in capitals are HDF5's own.
    texts = [pair for pair in found if pair[1].islower() and pair[1] != "description"]
    refused = 0
    for group, name in texts:
        file_path = tmp_path / "less.nc"
        file_path.write_bytes(path.read_bytes())
        with h5py.File(file_path, "r+") as file:
            del file[group].attrs[name]
        try:
            str(type(run).load(file_path))
        except FileFormatError:
            refused += 1
    assert refused >= 3


def test_arrays_come_back_to_the_last_bit(tmp_path):
    linear, two = runs.linear_trajectory(), runs.two_stages()
    linear.save(tmp_path / "linear.nc")
    again = type(linear).load(tmp_path / "linear.nc")
    assert again.data.identical(linear.data)
    for name in ("embeddings", "probabilities", "frequencies", "instance_numbers"):
        found, given = getattr(again.contexts, name), getattr(linear.contexts, name)
        assert found.dtype == given.dtype
        np.testing.assert_array_equal(found, given)
    two.save(tmp_path / "two.nc")
    both = type(two).load(tmp_path / "two.nc")
    np.testing.assert_array_equal(both.attention.W(), two.attention.W())
    for found, given in zip(both.corpora, two.corpora, strict=True):
        assert found.vocabulary == given.vocabulary
        assert found.context_length == given.context_length
        for name in ("tokens", "starts", "counts"):
            np.testing.assert_array_equal(getattr(found, name), getattr(given, name))


def test_a_classifier_comes_back_with_its_weights(tmp_path):
    run = runs.text_classifiers()
    run.save(tmp_path / "run.nc")
    again = type(run).load(tmp_path / "run.nc")
    assert again.config == run.config
    for epoch in ("best", "last"):
        for found, given in zip(
            jax.tree.leaves(again.model(4, epoch)),
            jax.tree.leaves(run.model(4, epoch)),
            strict=True,
        ):
            np.testing.assert_array_equal(found, given)


def test_a_task_comes_back(tmp_path):
    run = runs.in_context()
    run.save(tmp_path / "run.nc")
    again = type(run).load(tmp_path / "run.nc")
    assert again.length == run.length
    assert again.verdict == run.verdict
    assert again.time_of_step == run.time_of_step
    np.testing.assert_array_equal(again.task.covariance, run.task.covariance)
    np.testing.assert_array_equal(again.mean_squared_error, run.mean_squared_error)


def test_a_file_of_another_kind_is_refused(saved, of_another_kind, tmp_path):
    run, path = saved
    with pytest.raises(FileFormatError, match=r"not a .* trajectory of version 1"):
        type(run).load(of_another_kind)
    with pytest.raises(FileFormatError, match="not a trajectory of version 1"):
        at.Trajectory.load(path)
    with pytest.raises(FileFormatError, match="no such file"):
        type(run).load(tmp_path / "nowhere.nc")
    with pytest.raises(InvalidInputError, match=r"^path: "):
        type(run).load(None)
    with pytest.raises(InvalidInputError, match=r"^path: "):
        run.save(3)


NEEDED = (
    "status",
    "loss",
    "W",
    "risk",
    "key_query",
    "train_loss",
    "tokens",
    "embeddings",
    "length",
)


def copy_without(path, arrays, less):
    """Copies a file but for some arrays that nothing else in it refers to."""
    import h5py

    less.write_bytes(path.read_bytes())
    with h5py.File(less, "r+") as file:
        for array in arrays:
            del file[array]


def without_arrays(run, path, groups, chosen, less):
    """Reads files without one array each, and says which are read all the same."""
    read = set()
    for group, data in groups.items():
        for name in filter(chosen, data.variables):
            if name in data.coords:  # which others refer to
                save_netcdf({**groups, group: data.drop_vars(name)}, less)
            else:
                copy_without(path, [f"{group}/{name}"], less)
            try:
                again = type(run).load(less)
            except FileFormatError as error:
                assert less.name in str(error)
            else:
                assert str(again)
                read.add(f"{group} {name}")
    return read


def test_a_file_without_what_it_needs_is_refused(saved, groups, tmp_path):
    run, path = saved
    # What is left can be read: it is for what is missing that the files below are refused.
    needed = {group: [n for n in NEEDED if n in data.data_vars] for group, data in groups.items()}
    copy_without(
        path, [f"{g}/{n}" for g, names in needed.items() for n in names], tmp_path / "rest.nc"
    )
    rest = groups_of(tmp_path / "rest.nc")
    for group, names in needed.items():
        assert rest[group].equals(groups[group].drop_vars(names))
    less = tmp_path / "less.nc"
    assert without_arrays(run, path, groups, lambda name: name in NEEDED, less) == set()


@pytest.mark.slow
def test_a_file_without_any_one_array_is_read_whole_or_refused(saved, groups, tmp_path):
    run, path = saved
    without_arrays(run, path, groups, lambda name: True, tmp_path / "less.nc")


def test_arrays_of_another_size_are_refused(saved, groups, tmp_path):
    run, _ = saved
    group = next(name for name in groups if name.endswith("records") and groups[name].dims)
    axis = next(name for name in ("instance", "seed") if name in groups[group].dims)
    save_netcdf({**groups, group: groups[group].isel({axis: slice(0, 0)})}, tmp_path / "less.nc")
    with pytest.raises(FileFormatError):
        type(run).load(tmp_path / "less.nc")


@pytest.mark.parametrize(
    "given",
    [
        {"learning_rate": 1},
        {"learning_rate": np.float32(0.25)},
        {"optimizer": at.gradient_descent(0.1)},
        {"length": np.inf, "attention": "linear"},
    ],
)
def test_in_context_training_of_any_settings_comes_back(given, tmp_path):
    run = train_in_context(runs.in_context().task, steps=1, **(runs.IN_CONTEXT | given))
    run.save(tmp_path / "run.nc")
    again = InContextTrajectory.load(tmp_path / "run.nc")
    assert again.settings == run.settings
    assert str(again) == str(run)
