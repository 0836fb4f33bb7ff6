"""What may be written is decided before any work. Every command is held to it in tests/cli."""

import os
import socket

import pytest

from attractor.support.errors import InvalidInputError
from attractor.support.storage import (
    Input,
    OutputFile,
    OutputFolder,
    check_paths,
    check_replaceable,
    check_writable,
)

posix = pytest.mark.skipif(os.name == "nt", reason="links, pipes and sockets of POSIX")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def refused(outputs, inputs=(), *, argument, match):
    with pytest.raises(InvalidInputError, match=match) as caught:
        check_paths(outputs, inputs)
    assert caught.value.argument == argument


def test_a_file_that_cannot_be_written_is_refused_early(tmp_path):
    (tmp_path / "notes").write_text("mine")
    check_writable("out", tmp_path / "new" / "folder" / "W.nc")
    check_writable("out", tmp_path / "notes")
    for path in (tmp_path, tmp_path / "notes" / "W.nc", tmp_path / "notes" / "new" / "W.nc"):
        with pytest.raises(InvalidInputError, match="out"):
            check_writable("out", path)
    assert names(tmp_path) == ["notes"]


@posix
def test_what_is_no_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    os.symlink("nowhere", "dangling")
    os.symlink("circle", "circle")
    os.symlink("/dev/null", "device")
    for path, match in {
        "pipe": "named pipe", "socket": "socket", "dangling": "leads nowhere",
        "circle": "leads nowhere", "device": "a device", "/dev/null": "a device",
        "dangling/W.nc": "leads nowhere", "n" * 300: "too long", "a\0b": "null",
        "/dev/stdout": "stream", "/dev/fd/1": "stream", "/proc/self/fd/1": "stream",
    }.items():  # fmt: skip
        with pytest.raises(InvalidInputError, match=match):
            check_writable("out", path)
        with pytest.raises(InvalidInputError, match=match):
            check_replaceable(path, "marker", argument="out")
    for path in (None, 3, b"W.nc", ["W.nc"]):
        with pytest.raises(InvalidInputError, match="not a path"):
            check_writable("out", path)


@posix
def test_links_are_followed(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "W.nc").touch()
    (tmp_path / "W.nc").symlink_to("far/W.nc")
    (tmp_path / "report").symlink_to("far")
    assert check_writable("out", tmp_path / "W.nc") == (tmp_path / "far" / "W.nc").resolve()
    assert check_writable("out", tmp_path / "report" / "new.nc").parent.name == "far"
    assert check_replaceable(tmp_path / "report", None) == (tmp_path / "far").resolve()


@posix
def test_an_output_is_no_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens.npz").write_text("data")
    os.symlink("tokens.npz", "link.npz")
    os.link("tokens.npz", "hard.npz")
    os.symlink(".", "here")
    source = [Input("FILE", "tokens.npz"), Input("data", None), Input("other", "missing")]
    for path in ("tokens.npz", "./tokens.npz", tmp_path / "tokens.npz", "link.npz", "hard.npz",
                 "here/tokens.npz"):  # fmt: skip
        refused([OutputFile("out", path)], source, argument="out", match="what FILE reads")
    check_paths([OutputFile("out", "other.npz"), OutputFile("certificate", None)], source)


def test_a_folder_that_is_replaced_takes_no_input_with_it(tmp_path):
    report = tmp_path / "report"
    report.mkdir()
    (report / "report.html").touch()
    (report / "tokens.npz").touch()
    out = OutputFolder("out", report, "report.html", replaced=True)
    refused([out], [Input("FILE", report / "tokens.npz")], argument="out", match="lies in it")
    refused([out], [Input("RUN", report)], argument="out", match="what RUN reads")
    check_paths([out._replace(replaced=False)], [Input("FILE", report / "tokens.npz")])
    check_paths([out._replace(path=report / "again")], [Input("RUN", report)])


def test_outputs_are_kept_apart(tmp_path):
    W, kept = OutputFile("out", tmp_path / "W.nc"), OutputFolder("checkpoint", tmp_path, None)
    refused(
        [W, OutputFile("certificate", tmp_path / "new" / ".." / "W.nc")],
        argument="certificate",
        match="as out, too",
    )
    inside = OutputFolder("checkpoint", tmp_path / "W.nc" / "run", "marker")
    refused([W, inside], argument="checkpoint", match="written as out")
    held = OutputFolder("checkpoint", tmp_path / "run", "marker")
    refused([held, W._replace(path=tmp_path / "run" / "W.nc")], argument="out", match="checkpoint")
    check_paths([W, kept, held])  # what may hold anything holds outputs, too


def test_a_write_protected_file_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "W.nc"
    file.touch()
    access = os.access
    denied = {str(file.resolve())}  # an administrator may write everything
    monkeypatch.setattr(
        os, "access", lambda path, mode: str(path) not in denied and access(path, mode)
    )
    with pytest.raises(InvalidInputError, match="write-protected"):
        check_writable("out", file)
    denied = {str(tmp_path.resolve())}
    with pytest.raises(InvalidInputError, match="nothing can be written"):
        check_writable("out", file)
