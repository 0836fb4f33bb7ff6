"""What a file can have run, which is no code and no path, and nothing out of range."""

import inspect
import json
import math
from dataclasses import replace

import pytest

from attractor.cli.reproducible import COMMANDS, report_arguments
from attractor.cli.session import ExitCode
from attractor.errors import FileFormatError, InvalidInputError
from attractor.provenance import Provenance, embed, read_provenance

NEVER = {
    "store", "file", "run", "model", "texts", "documents", "out", "checkpoint", "as_json", "quiet",
    "first", "second",
}  # fmt: skip
FEW = ("--data-sets", 1, "--steps", 10)
GOOD = {
    "audit": {
        "layers": "0,3-5", "heads": None, "draws": 99, "alpha": 0.05, "training_texts": True,
        "norm": ["nuclear"], "checkpoints": 0, "control": False, "sink_positions": None, "seed": 0,
        "data": True,
    },
    "basins": {
        "optimizer": None, "lr": None, "parameterization": None, "loss": "logistic", "steps": None,
        "starts": 1000, "scale": None, "with_map": False, "extent": 3.0, "resolution": 100,
        "data_set": None, "seed": 0, "data": True,
    },
    "check": {
        "selection": None, "steps": None, "lr": None, "seeds": None, "seed": 0, "data": True,
    },
    "compare": {"seed": 0, "norm": None, "data": True},
    "corpus": {
        "context": None, "vocabulary": None, "embedding": None, "train": False, "steps": 900,
        "seed": 0, "data": True,
    },
    "demo": {"seed": 0, "data": False},
    "in-context": {
        "dimension": 5, "correlation": 0.5, "lengths": "64,inf", "attention": None,
        "data_path": None, "initialization": None, "parameterization": None, "scale": None,
        "steps": None, "lr": None, "batch": 128, "draw": "auto", "experiment": None, "seeds": 1,
        "seed": None,
    },
    "matrix": {
        "optimizer": ["ngd", "md:p=1.5"], "lr": [0.1], "norm": None, "parameterization": "W",
        "size": "quick", "data_sets": None, "steps": None, "matched": False, "seed": 0,
        "data": False,
    },
    "prompt-length": {"error": 0.1, "length": None, "queries": 1000, "seed": 0, "data": True},
    "sweep draw": {
        "x": "n", "of": "feasible", "y": "T", "lines": None, "panels": None, "at": ["d=4"],
        "along": None, "levels": "0.1,0.5", "side": "below", "transition": "log",
        "confidence": 0.95, "seed": 0, "data": True,
    },
    "verify": {"geometry": "l_1.5", "data": True},
}  # fmt: skip
"""What the report of each command says."""

COUNTED = {
    "starts", "resolution", "steps", "seeds", "data_sets", "batch", "dimension", "queries", "draws",
}  # fmt: skip
TEXTS = {"lengths", "x", "y", "of", "lines", "panels", "along"}
"""Arguments that may be the text "inf"."""
WRONG = [{"a": 1}, [["x"]], "\x1b[2J", "/etc/passwd", "no such", "../x", math.inf, ""]


def made(name, arguments):
    return Provenance.record("report", name, arguments=arguments)


@pytest.fixture
def forged(tmp_path, monkeypatch):
    """A report whose file says what one likes; no command may be run to read it."""

    def write(kind, name, arguments):
        recorded = Provenance.record(kind, name, arguments=arguments)
        contents = json.loads(recorded.to_json())
        for stem in ("summary", "claims"):
            (tmp_path / f"{stem}.json").write_text(json.dumps({"provenance": contents}))
        return tmp_path / "summary.json"

    def run(**_):
        pytest.fail("a command was run")

    for name, command in COMMANDS.items():
        replaced = replace(command, run=run)
        monkeypatch.setitem(COMMANDS, name, replaced)
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
    return ("--data", file) if GOOD.get(name, {}).get("data") else ()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_report_can_set_is_what_its_command_takes(name):
    taken = set(inspect.signature(COMMANDS[name].run).parameters) - NEVER
    if name == "verify":
        taken -= {"seed"}  # nothing is random in it
    if name == "audit":
        taken -= {"length"}  # of texts, which are in what was captured
    assert set(COMMANDS[name].arguments) - {"data"} == taken == set(GOOD[name]) - {"data"}
    assert COMMANDS[name].takes in (*inspect.signature(COMMANDS[name].run).parameters, "")


@pytest.mark.parametrize("name", GOOD)
def test_unknown_missing_and_reserved_arguments_are_named(name):
    for wrong in (*sorted(NEVER), "progress", "", "\x1b"):
        with pytest.raises(FileFormatError, match="is none that a file can set") as caught:
            report_arguments(made(name, GOOD[name] | {wrong: "/tmp/x"}), None)
        assert f"{wrong!a} is none" in str(caught.value)
    for argument in GOOD[name]:
        rest = {key: value for key, value in GOOD[name].items() if key != argument}
        if argument in COMMANDS[name].may_lack:
            assert argument not in report_arguments(made(name, rest), None)[1]
            continue
        with pytest.raises(FileFormatError, match=f"{argument} is missing"):
            report_arguments(made(name, rest), None)
    report_arguments(made(name, GOOD[name]), None)


@pytest.mark.parametrize("name", GOOD)
def test_every_argument_has_a_kind_and_a_range(name):
    for argument in GOOD[name]:
        counted = [10**9, 0, -1, 1.5, True, 10**30] if argument in COUNTED else []
        seed = [-1, 2**63, 0.5, False] if argument == "seed" else []
        for value in (*WRONG, *counted, *seed):
            if value == math.inf and argument in TEXTS:  # kept as the text "inf"
                continue
            with pytest.raises(FileFormatError, match=f"{argument} is .* must be") as caught:
                report_arguments(made(name, GOOD[name] | {argument: value}), None)
            assert str(caught.value).isprintable()


EVIL = "import pathlib\npathlib.Path('ran').touch()\ndef f():\n    pathlib.Path('ran').touch()\n"


@pytest.mark.parametrize("name", ["matrix", "basins"])
@pytest.mark.parametrize("many", [True, False])
def test_code_that_a_file_names_is_never_imported(name, many, forged, refused, file, tmp_path):
    (tmp_path / "evilmod.py").write_text(EVIL)
    value = ["evilmod:f"] if many else "evilmod:f"
    path = forged("report", name, GOOD[name] | {"optimizer": value})
    message = refused(path, *given(name, file))
    assert "evilmod:f" in message and "attractor reproduce FILE --optimizer mine:opt" in message
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_out_of_a_file_is_not_written(forged, refused, tmp_path):
    there = str(tmp_path / "there")
    path = forged("report", "in-context", GOOD["in-context"] | {"checkpoint": there})
    assert "'checkpoint' is none that a file can set" in refused(path)
    assert not (tmp_path / "there").exists()


def test_one_s_own_optimizers_are_named_again():
    arguments = GOOD["matrix"] | {"optimizer": ["mine:a", "ngd", "other:b"]}
    report = made("matrix", arguments)
    _, found = report_arguments(report, ["new:a", "new:b"])
    assert found["optimizer"] == ["new:a", "ngd", "new:b"]
    for given in (None, [], ["new:a"], ["new:a", "ngd", "new:b"]):
        with pytest.raises(InvalidInputError, match=r"^optimizer: .*in this order"):
            report_arguments(report, given)
    arguments |= {"norm": ["l_1", "mine:N"]}
    _, found = report_arguments(made("matrix", arguments), ["new:a", "new:b"], ["new:N"])
    assert found["norm"] == ["l_1", "new:N"] and found["optimizer"] == ["new:a", "ngd", "new:b"]
    with pytest.raises(InvalidInputError, match=r"^norm: .*'mine:N'.* --norm mine:Norm\.$"):
        report_arguments(made("matrix", arguments), ["new:a", "new:b"])
    report = made("verify", GOOD["verify"] | {"geometry": "mine:N"})
    assert report_arguments(report, norms=["new:N"])[1] == {"geometry": "new:N"}
    report = made("basins", GOOD["basins"] | {"optimizer": "mine:a"})
    assert report_arguments(report, ["mine:a"])[1]["optimizer"] == "mine:a"
    with pytest.raises(FileFormatError, match="starts is"):
        report_arguments(made("basins", dict(report.arguments) | {"starts": 10**9}), ["mine:a"])


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
            assert "with --data" in refused(path) or name == "compare"
        else:
            assert refused(path, "--data", file).startswith("data: ")


FIGURE = {"size": "quick", "seeds": 1, "seed": 0, "as_published": False}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 10**9}, "seeds is 1000000000"),
        ({"seeds": True}, "seeds is True"),
        ({"size": "huge"}, "size is 'huge' and must be quick, small, paper"),
        ({"size": ["quick"]}, "size is"),
        ({"seed": -1}, "seed is -1"),
        ({"as_published": 1}, "as_published is 1"),
        ({"shared": "/tmp"}, "'shared' is none that a file can set"),
        ({"folder": "/tmp"}, "'folder' is none"),
        ({"progress": True}, "'progress' is none"),
        ({"source": 3}, "source is 3"),
        ({"source": "/etc"}, "Give that file with --data"),
    ],
)
def test_what_a_figure_can_set(change, message, forged, refused):
    path = forged("figure", "max-margin/global-and-local", FIGURE | change)
    assert message in refused(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["no/such"]}, "names is"),
        ({"names": "max-margin/global-path"}, "names is"),
        ({"names": []}, "names is []"),
        ({"names": [["x"]]}, "names is"),
        ({"seed": 2**63}, "seed is"),
        ({"data": "/etc/passwd"}, "data is"),
        ({"out": "x"}, "'out' is none"),
        ({"data": True}, "Give that file with --data"),
    ],
)
def test_what_claims_can_set(change, message, forged, refused):
    good = {"names": ["max-margin/global-path"], "data": False, "seed": 0}
    assert message in refused(forged("claim", "some", good | change))


def test_names_that_are_not_known(forged, refused):
    assert "'rm -rf'" in refused(forged("report", "rm -rf", {}))
    assert "no/such" in refused(forged("figure", "no/such", FIGURE))


@pytest.mark.parametrize("content", ["[]", "{", '{"a": "\\ud800"}', "[" * 5000])
def test_a_summary_of_anything_is_an_error(content, forged, refused, tmp_path):
    path = forged("report", "demo", GOOD["demo"])
    page = tmp_path / "report.html"
    page.write_text("<head></head>")
    embed(page, read_provenance(path))
    path.write_text(content)
    assert "summary.json" in refused(page)
