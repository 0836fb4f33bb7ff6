"""No command destroys anything: a table of every command, every output and every hostile path.

A new command, or a new option that takes a path, fails ``test_the_table_is_complete`` until it is
in the table.
"""

import os
import socket
import stat
from typing import NamedTuple

import click
import pytest
import typer

from attractor.cli import app
from attractor.cli.session import ExitCode
from attractor.papers.registry import all_figures
from attractor.report.write import MARKER
from attractor.training.checkpoint import MARKER as CHECKPOINT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, pipes and sockets of POSIX")

FIGURE = "large-prompt/gaussian-tilts"
OF_DATA = next(name for name, figure in all_figures(None).items() if figure.takes)
FILE, REPLACED, HELD, SHARED = "file", "replaced folder", "held folder", "shared folder"


class Command(NamedTuple):
    """How a command is called, and what it does first, once paths are in order."""

    call: tuple  # with the names of paths in braces
    work: str  # what must not be called
    outputs: dict  # path parameters that are written, and as what
    inputs: tuple = ()  # path parameters that are read
    marker: str = MARKER


TABLE = {
    "demo": Command(("--out", "{out}"), "attractor.cli.demo._run", {"out": REPLACED}),
    "check": Command(
        ("{file}", "--out", "{out}"),
        "attractor.cli.check.read_tokens",
        {"out": REPLACED},
        ("file",),
    ),
    "corpus": Command(
        ("{file}", "--train", "--out", "{out}"),
        "attractor.cli.corpus.load_corpus",
        {"out": REPLACED},
        ("file",),
    ),
    "prompt-length": Command(
        ("{file}", "--out", "{out}"),
        "attractor.cli.prompt_length.load_head",
        {"out": REPLACED},
        ("file",),
    ),
    "solve": Command(
        ("{file}", "--out", "{out}", "--certificate", "{certificate}"),
        "attractor.cli.solve.read_tokens",
        {"out": FILE, "certificate": FILE},
        ("file",),
    ),
    "train": Command(
        ("{file}", "--out", "{out}", "--checkpoint", "{checkpoint}"),
        "attractor.cli.train.read_tokens",
        {"out": FILE, "checkpoint": HELD},
        ("file",),
        CHECKPOINT,
    ),
    "verify": Command(
        ("{run}", "--out", "{out}"),
        "attractor.training.Trajectory.load",
        {"out": REPLACED},
        ("run",),
    ),
    "matrix": Command(
        ("--out", "{out}"), "attractor.datasets.unit_tokens", {"out": REPLACED}
    ),
    "basins": Command(
        ("{file}", "--out", "{out}"),
        "attractor.cli.basins.read_tokens",
        {"out": REPLACED},
        ("file",),
        "shares.nc",
    ),
    "in-context": Command(
        ("--lengths", "8,inf", "--out", "{out}", "--checkpoint", "{checkpoint}"),
        "attractor.prompt.regression.runs.train_at_lengths",
        {"out": REPLACED, "checkpoint": SHARED},
    ),
    "claims": Command(
        ("--all", "--data", "{data}", "--out", "{out}"),
        "attractor.files.load",
        {"out": REPLACED},
        ("data",),
    ),
    "figures": Command(
        (OF_DATA, "--data", "{data}", "--out", "{out}"),
        "attractor.papers.drawing.draw",
        {"out": SHARED},
        ("data",),
    ),
    "reproduce": Command(("{file}", "--data", "{data}"), "", {}, ("file", "data")),
    "example tokens": Command(
        ("{path}", "--out", "{out}"), "attractor.cli.example.unit_tokens",
        {"path": FILE, "out": SHARED},
    ),
    "example corpus": Command(
        ("{path}", "--docstrings", "--out", "{out}"), "attractor.cli.example.docstring_sentences",
        {"path": FILE, "out": SHARED},
    ),
    "example head": Command(
        ("{path}", "--out", "{out}"), "attractor.cli.example.random_head",
        {"path": FILE, "out": SHARED},
    ),
}  # fmt: skip
CASES = [(name, option) for name, command in TABLE.items() for option in command.outputs]


def commands(group=None, prefix=""):
    """Every command of the application with its parameters."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def test_the_table_is_complete():
    found = {
        name: {
            parameter.name
            for parameter in command.params
            if isinstance(parameter.type, click.Path) or "Path" in type(parameter.type).__name__
        }
        for name, command in commands()
    }
    assert found == {name: {*row.outputs, *row.inputs} for name, row in TABLE.items()}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with one of everything that is not to be destroyed; None of it may change."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").write_bytes(b"damaged, which would be said if it were read")
    (tmp_path / "notes").write_text("mine")
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years of work")
    os.symlink("nowhere", "dangling")
    os.symlink("thesis", "link-to-folder")
    os.symlink("notes", "link-to-file")
    os.symlink("/dev/null", "link-to-device")
    os.symlink("input", "link-to-input")
    os.link("input", "hard-link-to-input")
    (tmp_path / "closed").mkdir()
    access, closed = os.access, (tmp_path / "closed").resolve()
    monkeypatch.setattr(
        os, "access", lambda path, mode: os.fspath(path) != str(closed) and access(path, mode)
    )
    return tmp_path


def hostile(command, option):
    """Paths that an output may not have, each with whether all its other outputs are new."""
    kind = command.outputs[option]
    paths = ["/dev/null", "/dev/full", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "pipe",
             "socket", "dangling", "dangling/new", "link-to-device", "notes/new", "closed/new",
             "n" * 300]  # fmt: skip
    if kind == FILE:
        paths += ["thesis", "link-to-folder", "."]
    else:
        paths += ["notes", "link-to-file"]
    if kind in (REPLACED, HELD):
        paths += ["thesis", "link-to-folder"]
    if command.inputs and option == "out":
        paths += ["input", "./input", "{place}/input", "thesis/../input", "link-to-input",
                  "hard-link-to-input"]  # fmt: skip
    return paths


def everything(folder):
    """All that lies in a folder, as it is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(state.st_mode) else None
        found[str(path)] = (state.st_mode, state.st_ino, state.st_mtime_ns, content)
    return found


def call(run_json, name, row, paths):
    words = [word.format(**paths) if isinstance(word, str) else word for word in row.call]
    return run_json(*name.split(), *words)


def refuse_work(monkeypatch, row):
    def work(*arguments, **options):
        pytest.fail("the work has begun")

    monkeypatch.setattr(row.work, work)


def usual(row):
    """Paths that are in order."""
    return {**dict.fromkeys(row.inputs, "input"), **{name: f"new-{name}" for name in row.outputs}}


@pytest.mark.parametrize(("name", "option"), CASES)
def test_hostile_outputs_are_refused_before_any_work(run_json, place, monkeypatch, name, option):
    row = TABLE[name]
    refuse_work(monkeypatch, row)
    before = everything(place)
    for path in hostile(row, option):
        path = path.format(place=place)
        paths = usual(row) | {option: path}
        if name.startswith("example") and option == "path":
            paths["out"] = place  # which a path is counted from
        found, result = call(run_json, name, row, paths)
        assert result.exit_code == ExitCode.BAD_INPUT, (path, result.stderr)
        assert found["error"]["argument"] == option, (path, found["error"])
        assert result.stderr.count("\n") == 1 and f"error: {option}: " in result.stderr
        assert everything(place) == before, path
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["solve", "train", "in-context"])
def test_two_outputs_of_one_name_are_refused(run_json, place, monkeypatch, name):
    row = TABLE[name]
    refuse_work(monkeypatch, row)
    for paths in (("same", "same"), ("same", "./same"), ("one", "one/inside")):
        given = usual(row) | dict(zip(row.outputs, paths, strict=True))
        _, result = call(run_json, name, row, given)
        assert result.exit_code == ExitCode.BAD_INPUT
        assert "error: " in result.stderr
        assert not (place / "same").exists() and not (place / "one").exists()


@pytest.mark.parametrize(
    "name", [name for name, row in TABLE.items() if REPLACED in row.outputs.values() and row.inputs]
)
def test_a_folder_that_would_take_its_input_with_it_is_refused(run_json, place, monkeypatch, name):
    row = TABLE[name]
    refuse_work(monkeypatch, row)
    report = place / "report"
    report.mkdir()
    (report / row.marker).write_text("of an earlier run")
    (report / "input").write_text("mine")
    os.symlink("report", "link-to-report")
    before = everything(place)
    for out, file in (("report", "report/input"), ("link-to-report", report / "input")):
        found, result = call(run_json, name, row, {"out": out, row.inputs[0]: file})
        assert result.exit_code == ExitCode.BAD_INPUT
        assert found["error"]["argument"] == "out"
        assert everything(place) == before


@pytest.mark.parametrize("file", ["index.html", f"{FIGURE}.nc", f"{FIGURE}.txt"])
def test_files_within_a_folder_of_figures_are_checked(run_json, place, monkeypatch, file):
    row = TABLE["figures"]._replace(call=(FIGURE, "--out", "{out}"))
    refuse_work(monkeypatch, row)
    target = place / "out" / file
    target.parent.mkdir(parents=True)
    os.mkfifo(target)
    found, result = call(run_json, "figures", row, {"out": "out"})
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "out" and "named pipe" in found["error"]["problem"]


@pytest.mark.parametrize("name", ["in-context"])
def test_folders_within_that_of_checkpoints_are_checked(run_json, place, monkeypatch, name):
    row = TABLE[name]
    refuse_work(monkeypatch, row)
    (place / "kept").mkdir()
    (place / "kept" / "softmax-inf").write_text("mine")
    found, result = call(run_json, name, row, {"out": "out", "checkpoint": "kept"})
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "checkpoint"


def test_links_stay_and_lead_to_what_is_written(run, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "tokens.npz").symlink_to("far/tokens.npz")
    (tmp_path / "far" / "tokens.npz").touch()
    assert run("example", "tokens", "tokens.npz").exit_code == 0
    assert (tmp_path / "tokens.npz").is_symlink()
    assert (tmp_path / "far" / "tokens.npz").stat().st_size > 0
    (tmp_path / "far" / "report").mkdir()
    (tmp_path / "report").symlink_to("far/report")
    for _ in range(2):
        result = run("check", "tokens.npz", "--steps", 20, "--seeds", 1, "--out", "report")
        assert result.exit_code == 0, result.stderr
    assert (tmp_path / "report").is_symlink()
    assert (tmp_path / "far" / "report" / MARKER).is_file()
    assert not list(tmp_path.rglob(".*"))
