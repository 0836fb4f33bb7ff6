"""Plans: what they say, and what is said of those that are wrong."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from attractor.maps.sweeps import example_plan, load_plan
from attractor.support.errors import FileFormatError, InvalidInputError

PLAN = """
experiment = "margins"
[axes]
d = [4, 8]
[trials]
instances = 3
[settings]
T = 5
"""


@pytest.fixture
def load(tmp_path):
    def call(text, **options):
        (tmp_path / "p.toml").write_text(text)
        return load_plan(tmp_path / "p.toml", **options)

    return call


def test_a_plan_is_a_grid_and_an_experiment(load):
    grid, experiment = load(PLAN.replace("instances = 3", "instances = 3\nchunk = 2"))
    assert grid.axes == {"d": (4, 8)} and grid.instances == 3 and grid.chunk == 2
    assert experiment.name == "margins" and experiment.settings == {"T": 5}


def test_ranges_are_those_of_numpy(load):
    axis = "d = [4, 8]"
    even = load(PLAN.replace(axis, "d = { geomspace = [2, 32], count = 5, whole = true }"))
    assert even.grid.axes["d"] == (2, 4, 8, 16, 32)
    text = PLAN.replace("margins", "in_context_risks").replace("T = 5", "").replace("= 3", "= 1")
    text = text.replace(axis, "noise = { linspace = [0, 0.5], count = 6 }")
    assert load(text).grid.axes["noise"] == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)  # and not 0.3...04
    spread = load(text.replace("{ linspace = [0, 0.5]", "{ geomspace = [0.01, 1]"))
    assert spread.grid.axes["noise"] == pytest.approx(np.geomspace(0.01, 1, 6))


def test_the_example_can_be_run(load):
    grid, experiment = load(example_plan("p.toml"))
    assert experiment.name == "train_and_verify" and grid.trials == 300


PLANS = sorted((Path(__file__).parents[3] / "examples" / "sweeps").glob("*.toml"))


def test_the_sweeps_of_the_selection_map_are_understood(monkeypatch):
    monkeypatch.syspath_prepend(PLANS[0].parent)
    script = runpy.run_path(str(PLANS[0].with_name("selection_map.py")))
    sweeps = script["sweeps"]()
    assert len(sweeps) == 26
    for grid, experiment in sweeps.values():
        experiment.check_grid(grid)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_plans_of_the_maps_are_understood_and_say_how_to_draw_them(path):
    plan = load_plan(path)
    plan.experiment.check_grid(plan.grid)
    words = path.read_text().split("attractor sweep draw")[1].replace("\\\n#", "").split()
    options = [name for name in ("--x", "--y", "--lines", "--panels") if name in words]
    drawn = {words[words.index(option) + 1] for option in options} - {"measure"}
    assert drawn <= {*plan.grid.axes, *plan.experiment.along}
    assert {*words[words.index("--of") + 1].split(",")} <= {*plan.experiment.measures}


def test_the_script_of_a_map_draws_what_its_plans_measure():
    folder = Path(__file__).parents[3] / "examples" / "sweeps"
    script = (folder / "selection.sh").read_text().replace("\\\n", " ")
    shares = next(line for line in script.splitlines() if line.startswith("shares="))
    lines = [line.strip().replace("$shares", shares[7:]).replace("$name", "KQ").split()
             for line in script.splitlines() if line.strip().startswith("draw ")]  # fmt: skip
    assert len(lines) == 11
    for _, store, _, *words in lines:
        plan = load_plan(folder / f"selection_{store}.toml")
        given = dict(zip(words[::2], words[1::2], strict=True))
        assert {*given.pop("--of").split(",")} <= {*plan.experiment.measures}
        own = {**plan.grid.axes, **plan.experiment.along}
        if "--at" in given:
            axis, value = given.pop("--at").split("=")
            assert value in [v if isinstance(v, str) else f"{v:g}" for v in own[axis]]
        assert {*given.values()} - {"measure"} <= {*own}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"margins"', '"margin"', "p.toml experiment: 'margin' is not known. Did you mean"),
        ('experiment = "margins"', "", "p.toml experiment: it is missing"),
        ("[axes]", "[axis]", "p.toml axis: a plan has no such key. Did you mean axes?"),
        ("instances", "instance", "p.toml [trials] instance: there is no such key. Did you mean"),
        ("instances = 3", "", "p.toml [trials] instances: it is missing"),
        ("= 3", "= -3", "p.toml [trials] instances: -3"),
        ("= 3", "= 3\nseeds = 2", "p.toml [trials] seeds: 2 of them"),
        ("d = [4, 8]", "d = 4", "p.toml [axes] d: it is 4, no list. Write a list, such as [4]"),
        ("d = [4, 8]", "dd = [4]", "p.toml [axes] dd: margins knows no such axis. Did you mean d?"),
        ("d = [4, 8]", "d = [4, 4]", "p.toml [axes] d: 4 is there twice"),
        ("d = [4, 8]", "d = [0]", "p.toml [axes] d: 0 is not a count"),
        ("d = [4, 8]", "T = [4]", "p.toml [axes] T: it is a setting of the experiment, too"),
        ("[4, 8]", "{ geomspce = [2, 8], count = 3 }", "[axes] d: it has 'geomspce'. Did you mean"),
        ("[4, 8]", "{ geomspace = [0, 8], count = 3 }", "[axes] d: geomspace is [0, 8]"),
        ("[4, 8]", "{ geomspace = [2, 8] }", "[axes] d: it has geomspace. Write"),
        ("[4, 8]", "{ linspace = [2, 2], count = 3 }", "[axes] d: linspace is [2, 2]"),
        ("[4, 8]", "{ linspace = [2, 4], count = 1 }", "[axes] d count: 1 is not a count"),
        ("[4, 8]", "{ linspace = [2, 4], count = 9, whole = true }", "9 values round to 3"),
        ("T = 5", "T = 1", "p.toml [settings] T: 1 is not a count"),
        ("T = 5", "t = 5", "p.toml [settings] t: margins has no such setting. Did you mean T?"),
        ("T = 5", "geometry = 'l_0'", "p.toml [settings] geometry:"),
    ],
)  # fmt: skip
def test_errors_name_the_file_the_table_and_the_key(load, old, new, words):
    with pytest.raises(InvalidInputError) as refused:
        load(PLAN.replace(old, new))
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["experiment =", "x = " + 3000 * "[", "\0", "a = 1\na = 2"])
def test_what_is_no_toml_is_refused(load, text):
    with pytest.raises(FileFormatError, match=r"p\.toml is damaged or is no TOML file"):
        load(text)


def test_a_plan_never_names_code(load, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_of_a_plan.py").write_text("raise SystemExit('it was imported')")
    with pytest.raises(InvalidInputError, match="never trusted to name"):
        load(PLAN.replace('"margins"', '"mine_of_a_plan:experiment"'))
    with pytest.raises(InvalidInputError, match="none is called"):
        text = PLAN.replace('"margins"', '"train_and_verify"')
        load(text.replace("T = 5", "optimizer = 'mine_of_a_plan:make'"))
    assert "mine_of_a_plan" not in sys.modules


def test_code_that_the_caller_names_takes_the_plans_settings(load, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_of_a_caller.py").write_text(
        "from attractor.maps.sweeps import Experiment\n"
        "def make(T):\n"
        "    return Experiment('mine_of_a_caller:run', {'x': ('f8', 'x')}, ['d'],"
        " settings={'T': T})\n"
    )
    plan = load(PLAN, experiment="mine_of_a_caller:make")
    assert plan.experiment.settings == {"T": 5}
    with pytest.raises(InvalidInputError, match=r"p\.toml \[axes\] n: .* knows no such axis"):
        load(PLAN.replace("d =", "n ="), experiment="mine_of_a_caller:make")
