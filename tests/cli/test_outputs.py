"""No command destroys anything: a table of every command, every output and every hostile path.

A new command, or a new option that takes a path, fails ``test_the_table_is_complete`` until it is
in the table of commands.
"""

import json
import os
import socket
import stat
import typing
from pathlib import Path

import pytest
import typer
from commands import FIGURE, FILE, HELD, REPLACED, TABLE

from attractor.cli.application import app, command_names, load_command
from attractor.cli.session import ExitCode
from attractor.support.storage import OutputFolder, check_paths
from attractor.support.storage.markers import made_by

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, pipes and sockets of POSIX")

APPLICATION = typer.main.get_command(app)
CASES = [(name, option) for name, command in TABLE.items() for option in command.outputs]


def commands():
    """Every command of the application with its function."""
    for name in command_names():
        several = len(load_command(name).registered_commands) > 1
        for command in load_command(name).registered_commands:
            yield f"{name} {command.callback.__name__}" if several else name, command.callback


def takes_path(annotation):
    return annotation is Path or any(map(takes_path, typing.get_args(annotation)))


def test_the_table_is_complete():
    found = {
        name: {
            parameter
            for parameter, annotation in typing.get_type_hints(function).items()
            if takes_path(annotation)
        }
        for name, function in commands()
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


def refused(capsys, name, row, paths):
    """Calls a command, which must refuse; gives what it says of it."""
    words = [str(word).format(**paths) for word in row.call]
    arguments = [*name.split(), *words, "--json"]
    code = APPLICATION.main(arguments, prog_name="attractor", standalone_mode=False)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert code == found["exit_code"] == ExitCode.BAD_INPUT, (paths, printed.err)
    assert printed.err.count("\n") == 1
    assert printed.err.startswith(f"error: {found['error']['argument']}: ")
    return found["error"]


def refuse_work(monkeypatch, row):
    def work(*arguments, **options):
        pytest.fail("the work has begun")

    monkeypatch.setattr(row.work, work)


def usual(row):
    """Paths that are in order."""
    named = {name: f"new-{name}.nc" for name in row.outputs}  # which a file may need, a folder not
    return {**dict.fromkeys(row.inputs, "input"), **named}


@pytest.mark.parametrize(("name", "option"), CASES)
def test_hostile_outputs_are_refused_before_any_work(capsys, place, monkeypatch, name, option):
    row = TABLE[name]
    refuse_work(monkeypatch, row)
    before = everything(place)
    for path in hostile(row, option):
        path = path.format(place=place)
        paths = usual(row) | {option: path}
        if name.startswith("example") and option == "path":
            paths["out"] = place  # which a path is counted from
        assert refused(capsys, name, row, paths)["argument"] == option, path
        assert everything(place) == before, path
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["solve", "train", "in-context"])
def test_two_outputs_of_one_name_are_refused(capsys, place, monkeypatch, name):
    row = TABLE[name]
    refuse_work(monkeypatch, row)
    for paths in (("same", "same"), ("same", "./same"), ("one", "one/inside")):
        given = usual(row) | dict(zip(row.outputs, paths, strict=True))
        assert refused(capsys, name, row, given)["argument"] in row.outputs
        assert not (place / "same").exists() and not (place / "one").exists()


@pytest.mark.parametrize(
    "name", [name for name, row in TABLE.items() if REPLACED in row.outputs.values() and row.inputs]
)
def test_a_folder_that_would_take_its_input_with_it_is_refused(capsys, place, monkeypatch, name):
    row = TABLE[name]
    refuse_work(monkeypatch, row)
    report = place / "report"
    report.mkdir()
    (report / row.marker).write_text("of an earlier run")
    (report / "input").write_text("mine")
    os.symlink("report", "link-to-report")
    before = everything(place)
    for out, file in (("report", "report/input"), ("link-to-report", report / "input")):
        paths = usual(row) | {"out": out, row.inputs[0]: file}
        assert refused(capsys, name, row, paths)["argument"] == "out"
        assert everything(place) == before


OLD_PAGE = (
    '<script type="application/json" id="provenance">{"kind": "report", "name": "%s"}</script>'
)


@pytest.mark.parametrize("head", [made_by("%s"), OLD_PAGE])
@pytest.mark.parametrize("name", [*(n for n, row in TABLE.items() if row.reports), "figures"])
def test_the_report_of_another_command_is_not_replaced(capsys, place, monkeypatch, name, head):
    row = TABLE[name]
    refuse_work(monkeypatch, row)
    report = place / "report"
    report.mkdir()
    (report / row.marker).touch()
    page = report / "report.html"
    other = "demo" if name != "demo" else "check"
    page.write_text(f"<html><head>{head % other}</head></html>")
    before = everything(place)
    error = refused(capsys, name, row, usual(row) | {"out": "report"})
    assert error["argument"] == "out" and f"`attractor {other}`" in error["problem"]
    assert everything(place) == before
    page.write_text(f"<html><head>{head % name}</head></html>")
    check_paths([OutputFolder("out", report, row.marker, True, name)])


@pytest.mark.parametrize("file", ["index.html", f"{FIGURE}.nc", f"{FIGURE}.txt"])
def test_files_within_a_folder_of_figures_are_checked(capsys, place, monkeypatch, file):
    row = TABLE["figures"]._replace(call=(FIGURE, "--out", "{out}"))
    refuse_work(monkeypatch, row)
    target = place / "out" / file
    target.parent.mkdir(parents=True)
    os.mkfifo(target)
    error = refused(capsys, "figures", row, {"out": "out"})
    assert error["argument"] == "out" and "named pipe" in error["problem"]


def test_folders_within_that_of_checkpoints_are_checked(capsys, place, monkeypatch):
    row = TABLE["in-context"]
    refuse_work(monkeypatch, row)
    (place / "kept").mkdir()
    (place / "kept" / "softmax-inf").write_text("mine")
    error = refused(capsys, "in-context", row, {"out": "out", "checkpoint": "kept"})
    assert error["argument"] == "checkpoint"


def test_links_stay_and_lead_to_what_is_written(run, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "tokens.npz").symlink_to("far/tokens.npz")
    (tmp_path / "far" / "tokens.npz").touch()
    assert run("example", "tokens", "tokens.npz").exit_code == 0
    assert (tmp_path / "tokens.npz").is_symlink()
    assert (tmp_path / "far" / "tokens.npz").stat().st_size > 0
    (tmp_path / "W.nc").symlink_to("far/W.nc")
    (tmp_path / "far" / "W.nc").touch()
    assert run("solve", "tokens.npz", "--out", "W.nc").exit_code == 0
    assert (tmp_path / "W.nc").is_symlink()
    assert (tmp_path / "far" / "W.nc").stat().st_size > 0
    assert not list(tmp_path.rglob(".*"))
