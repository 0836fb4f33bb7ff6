"""What a file can have run, which is no code and no path, and nothing out of range."""

import functools
import json
import math
from pathlib import Path
from typing import get_type_hints

import pytest
from commands import TABLE

from attractor.cli.session import ExitCode
from attractor.papers.commands import reproduce as door
from attractor.papers.commands.reproduce import NUMBERS, arguments_of, function_of
from attractor.results.provenance import Provenance, embed, read_provenance
from attractor.support.errors import FileFormatError, InvalidInputError

NEVER = {
    "store", "file", "run", "model", "texts", "out", "checkpoint", "as_json", "quiet", "first",
    "second",
}  # fmt: skip
FEW = ("--data-sets", 1, "--steps", 10)
GOOD = {name: row.records for name, row in TABLE.items() if row.records}
"""What the report of each command says."""

WORDS = {
    "layers", "heads", "loss", "parameterization", "selection", "embedding", "lengths", "attention",
    "data_path", "initialization", "draw", "experiment", "size", "x", "of", "y", "lines", "panels",
    "at", "along", "levels", "side", "transition", "names",
}  # fmt: skip
"""Options that take words: none of them is opened as a file, or imported."""
COUNTED = {
    "starts", "resolution", "steps", "seeds", "data_sets", "batch", "dimension", "queries", "draws",
}  # fmt: skip
WRONG = [{"a": 1}, [["x"]], math.inf]


def made(name, arguments):
    return Provenance.record("report", name, arguments=arguments)


def asked(name, arguments, optimizer=(), norm=()):
    """What the command of a report is called with, where it was made from as many files."""
    count = {"audit": 1, "compare": 2, "demo": 0, "in-context": 0, "matrix": 0}.get(name, 1)
    given = {
        "data": [Path("x")] * count,
        "optimizer": optimizer,
        "norm": norm,
        "claim": [],
        "checkpoints": [],
    }
    return arguments_of(made(name, arguments), function_of(name), given)


@pytest.fixture
def forged(tmp_path, monkeypatch):
    """A report whose file says what one likes; no command may be run to read it."""

    def write(kind, name, arguments):
        recorded = Provenance.record(kind, name, arguments=arguments)
        contents = json.loads(recorded.to_json())
        for stem in ("summary", "claims"):
            (tmp_path / f"{stem}.json").write_text(json.dumps({"provenance": contents}))
        return tmp_path / "summary.json"

    def idle(name):
        @functools.wraps(function_of(name))
        def run(**_):
            pytest.fail("a command was run")

        return run

    monkeypatch.setattr(door, "function_of", idle)
    return write


@pytest.fixture
def refused(run_json, file):
    def call(path, *arguments):
        found, result = run_json("reproduce", path, *arguments)
        assert result.exit_code == ExitCode.BAD_INPUT
        assert "Traceback" not in result.stderr
        return found["error"]["message"]

    return call


def given(name, file):
    count = 2 if name == "compare" else int(GOOD.get(name, {}).get("data", False))
    return ("--data", file) * count


@pytest.mark.parametrize("name", NUMBERS)
def test_options_that_take_words_are_known_here(name):
    hints = get_type_hints(function_of(name))
    words = {option for option, hint in hints.items() if "str" in str(hint)}
    assert words - {"optimizer", "norm", "geometry"} <= WORDS


@pytest.mark.parametrize("name", GOOD)
def test_what_a_report_says_is_what_its_command_takes(name):
    hints = get_type_hints(function_of(name))
    assert GOOD[name].keys() - {"data"} <= hints.keys()
    given = asked(name, GOOD[name])
    assert given.keys() <= hints.keys()
    assert {key: given[key] for key in GOOD[name].keys() - {"data", "checkpoints"}} == {
        key: value for key, value in GOOD[name].items() if key not in ("data", "checkpoints")
    }


@pytest.mark.parametrize("name", GOOD)
def test_unknown_and_reserved_arguments_are_named(name):
    for wrong in (*sorted(NEVER), "progress", "", "\x1b"):
        with pytest.raises(FileFormatError, match="is none that a file can set") as caught:
            asked(name, GOOD[name] | {wrong: "/tmp/x"})
        assert f"{wrong!a} is none" in str(caught.value)


@pytest.mark.parametrize("name", GOOD)
def test_every_argument_has_a_kind_and_a_range(name):
    for argument in GOOD[name].keys() - {"data", "checkpoints"}:
        counted = [10**9, 0, -1, 1.5, True, 10**30] if argument in COUNTED else []
        seed = [-1, 2**63, 0.5, False] if argument == "seed" else []
        text = argument in WORDS or argument in ("optimizer", "norm", "geometry")
        for value in (*WRONG[: 2 if text else 3], *counted, *seed):
            with pytest.raises(FileFormatError, match=f"{argument} is .* not take") as caught:
                asked(name, GOOD[name] | {argument: value})
            assert str(caught.value).isprintable()


EVIL = "import pathlib\npathlib.Path('ran').touch()\ndef f():\n    pathlib.Path('ran').touch()\n"


@pytest.mark.parametrize(("name", "many"), [("matrix", True), ("matrix", False), ("basins", False)])
def test_code_that_a_file_names_is_never_imported(name, many, forged, refused, file, tmp_path):
    (tmp_path / "evilmod.py").write_text(EVIL)
    value = ["evilmod:f"] if many else "evilmod:f"
    path = forged("report", name, GOOD[name] | {"optimizer": value})
    message = refused(path, *given(name, file))
    assert (
        "evilmod:f" in message and "attractor reproduce FILE --optimizer mine:optimizer" in message
    )
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_out_of_a_file_is_not_written(forged, refused, tmp_path):
    there = str(tmp_path / "there")
    path = forged("report", "in-context", GOOD["in-context"] | {"checkpoint": there})
    assert "'checkpoint' is none that a file can set" in refused(path)
    assert not (tmp_path / "there").exists()


def test_one_s_own_optimizers_are_named_again():
    arguments = GOOD["matrix"] | {"optimizer": ["mine:a", "ngd", "other:b"]}
    found = asked("matrix", arguments, ["new:a", "new:b"])
    assert found["optimizer"] == ["new:a", "ngd", "new:b"]
    for given in ([], ["new:a"], ["new:a", "ngd", "new:b"]):
        with pytest.raises(InvalidInputError, match=r"^optimizer: .*in this order"):
            asked("matrix", arguments, given)
    arguments |= {"norm": ["l_1", "mine:N"]}
    found = asked("matrix", arguments, ["new:a", "new:b"], ["new:N"])
    assert found["norm"] == ["l_1", "new:N"] and found["optimizer"] == ["new:a", "ngd", "new:b"]
    with pytest.raises(InvalidInputError, match=r"^norm: .*'mine:N'.* --norm mine:norm\.$"):
        asked("matrix", arguments, ["new:a", "new:b"])
    again = asked("verify", GOOD["verify"] | {"geometry": "mine:N"}, norm=["new:N"])
    assert again["geometry"] == "new:N"
    arguments = GOOD["basins"] | {"optimizer": "mine:a"}
    assert asked("basins", arguments, ["mine:a"])["optimizer"] == "mine:a"
    with pytest.raises(FileFormatError, match="starts is"):
        asked("basins", arguments | {"starts": 10**9}, ["mine:a"])


@pytest.mark.slow
def test_a_report_of_one_s_own_optimizer_comes_out_the_same(run_json, refused, tmp_path):
    (tmp_path / "my_signs.py").write_text(
        "import optax\n\ndef signs():\n    return optax.sign_sgd(0.1)\n"
    )
    run_json("matrix", "--optimizer", "ngd", "--optimizer", "my_signs:signs", "--out", "m", *FEW)
    assert "my_signs:signs" in refused("m/matrix.png")
    found, result = run_json("reproduce", "m/matrix.png", "--optimizer", "my_signs:signs")
    assert result.exit_code == 0, result.stderr
    assert found["same"] and not found["changed"]
    assert result.stderr.index("Runs again") < result.stderr.index("Compared")


def test_code_and_data_are_refused_where_none_were_used(forged, refused, file):
    for name in GOOD:
        path = forged("report", name, GOOD[name])
        message = refused(path, "--optimizer", "mine:opt", *given(name, file))
        assert message.startswith("optimizer: ") and "Leave" in message
        if name not in ("in-context", "demo", "matrix"):
            assert "Give each with --data" in refused(path)
        else:
            assert refused(path, "--data", file).startswith("data: ")


FIGURE = {"size": "quick", "seeds": 1, "seed": 0, "as_published": False}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 10**9}, "seeds is '1000000000'"),
        ({"seeds": True}, "seeds is 'True'"),
        ({"size": ["quick"]}, "size is"),
        ({"seed": -1}, "seed is '-1'"),
        ({"as_published": 1}, "as_published is '1'"),
        ({"shared": "/tmp"}, "'shared' is none that a file can set"),
        ({"names": ["max-margin/global-and-local"]}, "'names' is none"),
        ({"source": "/etc"}, "Give each with --data"),
    ],
)
def test_what_a_figure_can_set(change, message, forged, refused):
    path = forged("figure", "max-margin/global-and-local", FIGURE | change)
    assert message in refused(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": 3}, "names is"),
        ({"names": []}, "names is"),
        ({"names": [["x"]]}, "names is"),
        ({"seed": 2**63}, "seed is"),
        ({"data": "/etc/passwd"}, "'data' is none"),
        ({"out": "x"}, "'out' is none"),
        ({"data": True}, "Give each with --data"),
    ],
)
def test_what_claims_can_set(change, message, forged, refused):
    good = {"names": ["max-margin/global-path"], "data": False, "seed": 0}
    assert message in refused(forged("claim", "some", good | change))


@pytest.mark.parametrize(
    ("kind", "name", "arguments"),
    [
        ("figure", "no/such", FIGURE),
        ("figure", "max-margin/global-and-local", FIGURE | {"size": "huge"}),
        ("claim", "some", {"names": ["no/such"], "data": False, "seed": 0}),
        ("report", "matrix", GOOD["matrix"] | {"optimizer": ["ngd"], "size": "/etc/passwd"}),
    ],
)
def test_what_a_command_refuses_is_refused(kind, name, arguments, refused, tmp_path):
    path = tmp_path / ("claims.json" if kind == "claim" else "summary.json")
    path.write_text("{}")
    (tmp_path / "summary.nc").write_text("")
    embed(path, Provenance.record(kind, name, arguments=arguments))
    assert "for the reason above" in refused(path) or kind == "figure"


def test_names_that_are_not_known(forged, refused):
    assert "'rm -rf'" in refused(forged("report", "rm -rf", {}))


@pytest.mark.parametrize("content", ["[]", "{", '{"a": "\\ud800"}', "[" * 5000])
def test_a_summary_of_anything_is_an_error(content, forged, refused, tmp_path):
    path = forged("report", "demo", GOOD["demo"])
    page = tmp_path / "report.html"
    page.write_text("<head></head>")
    embed(page, read_provenance(path))
    path.write_text(content)
    assert "summary.json" in refused(page)
