"""Sweeps in this process: the same bytes however they are interrupted, and what is refused."""

import json
import re
import subprocess
import sys

import made_up
import numpy as np
import pytest
from made_up import ALONG, CHECKED, EMPTY, PLAIN, wrong

from attractor.maps.sweeps import Experiment, Grid, check_sweep, open_sweep, sweep, sweep_status
from attractor.maps.sweeps.storage.layout import Layout
from attractor.support.errors import InvalidInputError, WriteError

GRID = Grid({"n": [2, 4], "rate": [0.1, 0.2, 0.3]}, instances=5, seeds=2, chunk=8)
KINDS = Grid({"kind": ["fine", "raises"], "n": [1, 2]}, instances=4, chunk=2)


def measures(path):
    """All bytes of measures in a store, by file."""
    names = [file for name in made_up.MEASURES for file in sorted((path / name).iterdir())]
    return {str(file.relative_to(path)): file.read_bytes() for file in names}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep that ran here without interruption."""
    path = tmp_path_factory.mktemp("whole") / "whole.zarr"
    summary = sweep(GRID, PLAIN, path)
    assert (summary.computed, summary.trials, summary.status.left) == (12, 60, 0)
    return path


def test_results_are_those_of_a_plain_loop(whole):
    data = open_sweep(whole)
    assert data["number"].dims == ("n", "rate", "instance", "seed")
    for n in GRID.axes["n"]:
        for rate in GRID.axes["rate"]:
            found = made_up.run({"n": n, "rate": rate}, np.arange(5), range(2))
            point = data.sel(n=n, rate=rate)
            for name, dtype in (("number", "f8"), ("coarse", "f4"), ("flag", "i1")):
                assert point[name].dtype == dtype
                assert np.array_equal(point[name].to_numpy(), found[name].astype(dtype))
    assert data["number"].attrs["long_name"] == "made of the trial alone"
    assert data.attrs == {"experiment": "made_up:run", "settings": "{}"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_shares_in_any_order_give_the_same_bytes(whole, tmp_path, order):
    first, second = (sweep(GRID, PLAIN, tmp_path / "s", share=(part, 2)) for part in order)
    assert first.status.left == 6 and second.status.left == 0
    assert measures(tmp_path / "s") == measures(whole)


@pytest.mark.parametrize("parts", [1, 3, 5, 40])
def test_every_chunk_is_in_exactly_one_share(tmp_path, parts):
    computed = [sweep(GRID, PLAIN, tmp_path, share=(part, parts)) for part in range(parts)]
    assert sum(one.computed for one in computed) == 12 and computed[-1].status.left == 0


def test_shares_have_few_programs():
    layout = Layout.of(Grid({"n": range(20)}, instances=8, chunk=1), EMPTY)
    compiled = Layout(layout.grid, layout.measures, {}, ("n",))
    from attractor.maps.sweeps._sweep import _by_program

    every = _by_program(compiled)
    parts = [set(compiled.programs(part).tolist()) for part in np.split(every, 10)]
    assert max(map(len, parts)) <= 3 and sorted(every) == list(range(160))


def test_a_sweep_goes_on_after_an_exception_at_any_write(whole, tmp_path, monkeypatch):
    """Each of the files that a chunk is written to is once the last one that comes through."""
    import zarr

    real = zarr.storage.LocalStore.set
    left = 0

    async def failing(self, key, value):
        nonlocal left
        if key.startswith("c."):
            left -= 1
            if left < 0:
                raise OSError(5, "Input/output error") if left % 2 else RuntimeError("a fault")
        await real(self, key, value)

    monkeypatch.setattr(zarr.storage.LocalStore, "set", failing)
    path, ended = tmp_path / "s", 0
    for left in range(1, 14):  # noqa: B007
        try:
            sweep(GRID, PLAIN, path)
            break
        except (WriteError, RuntimeError):
            ended += 1
            assert check_sweep(path).passed
    assert ended > 5 and sweep_status(path).left == 0
    assert measures(path) == measures(whole)


def test_what_raises_is_marked_and_listed_and_the_rest_goes_on(tmp_path):
    cured = tmp_path / "cured"
    experiment = made_up.experiment(cured=str(cured))
    path = tmp_path / "s"
    summary = sweep(KINDS, experiment, path)
    assert (summary.status.done == 4 and summary.newly_failed == ((1, 0, 0, 0), (1, 0, 1, 0),
        (1, 1, 0, 0), (1, 1, 1, 0))) or set(summary.newly_failed) == {
        (1, n, k, 0) for n in range(2) for k in range(2)
    }  # fmt: skip
    first = summary.status.failed[0]
    assert first.error == "RuntimeError: this point cannot be computed" and first.times == 1
    assert "made_up.py" in first.traceback
    assert "8: 4 done, 4 failed, 0 left" in str(summary)
    listed = [json.loads(line) for line in open(f"{path}.failures.jsonl")]
    assert len(listed) == 4 and listed[0]["points"]["kind"] == "raises"
    assert np.isnan(open_sweep(path)["number"].sel(kind="raises")).all()
    assert (open_sweep(path)["flag"].sel(kind="raises") == -1).all()
    assert sweep(KINDS, experiment, path).computed == 0
    again = sweep(KINDS, experiment, path, retry_failed=True)
    assert again.computed == 4 and again.status.failed[0].times == 2
    cured.touch()
    assert sweep(KINDS, experiment, path, retry_failed=True).status.done == 8
    sweep(KINDS, experiment, tmp_path / "fine")
    assert measures(path) == measures(tmp_path / "fine")


def test_failures_of_shares_are_in_files_of_their_own(tmp_path):
    for part in range(2):
        sweep(KINDS, made_up.experiment(), tmp_path / "s", share=(part, 2))
    assert len(sweep_status(tmp_path / "s").failed) == 4
    assert {file.name for file in tmp_path.iterdir()} <= {
        "s", "s.failures-0-of-2.jsonl", "s.failures-1-of-2.jsonl"
    }  # fmt: skip


def test_what_hangs_is_marked_where_one_waits_no_longer(tmp_path):
    grid = Grid({"kind": ["fine", "hangs"]}, instances=2)
    summary = sweep(grid, made_up.experiment(), tmp_path / "s", patience_chunk=0.2)
    assert summary.status.done == 1 and summary.newly_failed == ((1, 0, 0),)
    assert "it hangs" in summary.status.failed[0].error


def test_further_axes(tmp_path):
    sweep(Grid({"n": [1, 2]}, instances=3), ALONG, tmp_path / "s")
    data = open_sweep(tmp_path / "s")
    assert data["number"].dims == ("n", "instance", "seed", "horizon")
    assert data["horizon"].to_numpy().tolist() == [1, 10, 100]
    assert (data["number"].sel(horizon=100) == 2).all()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("shape", r"number of the shape \(1, 3\). Return the shape \(3, 1\)"),
        ("name", r"\['flag', 'numbers'\]. Return \['flag', 'number'\]"),
        ("missing", r"\['number'\]. Return"),
        ("nothing", "None. Return"),
        ("nan in flags", "flag as float64. Return truth values or integers, with -1"),
        ("large flags", "flag from 200 to 200. Return numbers from -1 to 127"),
        ("complex", "number as complex128. Return numbers"),
        ("texts", "number as <U1. Return numbers"),
    ],
)
def test_what_an_experiment_must_not_return(tmp_path, returned, message):
    expected = f"^experiment: made_up:run_wrong returned {message}"
    with pytest.raises(InvalidInputError, match=expected):
        sweep(Grid({"n": [1]}, instances=3), wrong(returned), tmp_path / "s")
    assert sweep_status(tmp_path / "s").left == 1


THOUSAND = list(range(1000))
BIG = Grid({"n": THOUSAND, "rate": THOUSAND, "kind": THOUSAND}, instances=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": 3}, "grid: 3 is not Grid"),
        ({"experiment": made_up.run}, "experiment: .* is not Experiment"),
        ({"grid": Grid({"N": [1]}, 1)}, r"axes\['N'\]: made_up:run knows no such .* mean n\?"),
        ({"grid": Grid({"d": [1]}, 1)}, r"axes\['d'\]: .* It knows n, rate, kind"),
        ({"grid": Grid({"rate": [1]}, 1), "experiment": made_up.experiment(rate=1)},
         r"axes\['rate'\]: it is a setting"),
        ({"grid": Grid({"n": [0]}, 1), "experiment": CHECKED}, r"axes\['n'\]: it is below 1"),
        ({"grid": BIG}, "grid: 1,000,000,000 points are .* chunks, .* 13.00 GB of disk; .* free"),
        ({"cluster": 0}, "cluster: 0 is not a count"),
        ({"cluster": 2.5}, "cluster: 2.5 is no cluster"),
        ({"cluster": "nowhere.json"}, "cluster: there is no scheduler file nowhere.json"),
        ({"cluster": "tcp://127.0.0.1:9", "patience": 0.3}, "cluster: no scheduler answers"),
        ({"share": (2, 2)}, r"share\[0\]: 2 is too many"),
        ({"share": 3}, r"share: it is 3. Give \(i, n\)"),
        ({"share": (0, 2), "cluster": 2}, "share: there is a cluster, too"),
        ({"threads": 0}, "threads: 0 is not a count"),
        ({"patience": -1}, "patience: -1 is not a positive"),
        ({"patience_chunk": 0}, "patience_chunk: 0 is not a positive"),
        ({"retry_failed": 1}, "retry_failed: 1 is neither"),
        ({"progress": "yes"}, "progress: 'yes' is neither"),
    ],
)  # fmt: skip
def test_the_argument_is_named_and_nothing_is_made(tmp_path, arguments, message):
    given = {"grid": GRID, "experiment": PLAIN, "store": tmp_path / "s"} | arguments
    with pytest.raises(InvalidInputError, match=r"^" + message):
        sweep(**given)
    if "tcp" not in str(arguments):
        assert not list(tmp_path.iterdir())


def test_a_store_of_another_sweep_is_refused(whole):
    other = made_up.experiment(scale=2.0)
    more = Grid({**GRID.axes, "n": [2, 4, 8]}, 5, 2, 8)
    for grid, experiment, message in (
        (more, PLAIN, r"axes.n is \[2, 4\] there and \[2, 4, 8\] here"),
        (Grid(GRID.axes, 5, 2, 9), PLAIN, "chunk is 8 there and 9 here"),
        (Grid(GRID.axes, 5, 2, 8, 1), PLAIN, "first_instance is 0 there and 1 here"),
        (GRID, other, r"experiment.settings is \{\} there and \{'scale': 2.0\} here"),
    ):
        with pytest.raises(InvalidInputError, match=rf"^store: .* of another sweep: .*{message}"):
            sweep(grid, experiment, whole)
    assert sweep(GRID, PLAIN, whole).computed == 0


def test_another_source_or_version_is_refused(whole, monkeypatch):
    monkeypatch.setattr(
        "attractor.maps.sweeps.storage.layout._versions", lambda: (("numpy", "1.0"),)
    )
    with pytest.raises(InvalidInputError, match=r"versions is .* there and .*'numpy': '1.0'"):
        sweep(GRID, PLAIN, whole)


def test_folders_that_are_no_store_are_refused(tmp_path):
    (tmp_path / "file").write_text("a")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("a")
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "zarr.json").write_text('{"attributes": {}, "node_type": "group"}')
    for name, message in (
        ("file", "is a file"),
        ("file/in", "nothing can be written in"),
        ("foreign", "holds files that Attractor did not write"),
        ("group", "holds a Zarr group that is no sweep"),
    ):
        with pytest.raises(InvalidInputError, match=rf"^store: .*{message}"):
            sweep(GRID, PLAIN, tmp_path / name)
    assert (tmp_path / "foreign" / "thesis.tex").read_text() == "a"


def test_other_processes_must_find_the_function(tmp_path):
    nowhere = Experiment("no_such_module:run", {"a": ("f8", "a")}, ["n", "rate"])
    with pytest.raises(InvalidInputError, match=r"^experiment: the module no_such_module cannot"):
        sweep(GRID, nowhere, tmp_path / "s")
    gone = Experiment("made_up:no_such", {"a": ("f8", "a")}, ["n", "rate"])
    with pytest.raises(InvalidInputError, match=r"^experiment: .* has no function no_such"):
        sweep(GRID, gone, tmp_path / "s")


def test_progress_is_lines_where_nobody_watches(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("attractor.maps.sweeps._sweep._LINES", 0.0)
    sweep(KINDS, made_up.experiment(), tmp_path / "s", progress=True)
    out, err = capfd.readouterr()
    last = err.splitlines()[-1]
    assert out == "" and re.fullmatch(r"sweeping: 16 of 16, [\d.e+,]+/s; 4 failed", last)


@pytest.mark.processes
def test_what_is_missing_is_named():
    code = """
import sys
sys.modules.update({"zarr": None, "distributed": None, "dask": None})
import attractor, attractor.maps.sweeps as sw
import made_up
try:
    sw.sweep(sw.Grid({"n": [1]}, 1), made_up.PLAIN, "nothing.zarr")
except attractor.InvalidInputError as error:
    print(error)
"""
    folder = made_up.__file__.rpartition("/")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert "Run `pip install 'attractor[sweep]'`" in done.stdout, done.stderr


@pytest.mark.processes
def test_no_jax_is_loaded_for_an_experiment_without(tmp_path):
    code = f"""
import sys, made_up
from attractor.maps.sweeps import Grid, sweep, sweep_status
sweep(Grid({{"n": [1]}}, 2), made_up.PLAIN, {str(tmp_path / "s")!r})
print([name for name in ("jax", "distributed", "xarray", "matplotlib") if name in sys.modules])
"""
    folder = made_up.__file__.rpartition("/")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.stdout == "[]\n", done.stderr
