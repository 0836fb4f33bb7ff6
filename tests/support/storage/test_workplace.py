"""What killed writers leave is removed, and what living ones hold is not."""

import os
import subprocess
import sys
import textwrap

import pytest

from attractor.support.errors import WriteError
from attractor.support.storage import atomic_directory, atomic_file, discard_unfinished, write_file
from attractor.support.storage.locks import fcntl

pytestmark = pytest.mark.skipif(fcntl is None, reason="needs locks, to tell who lives")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def killed(folder, code):
    """Runs a writer that is killed on its way."""
    program = (
        "import os, sys\nfrom attractor.support.storage import *\n"
        "from attractor.support.storage import atomic\n"
    )
    command = [sys.executable, "-c", program + textwrap.dedent(code)]
    assert subprocess.run(command, cwd=folder).returncode == -9


@pytest.mark.processes
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    killed(
        tmp_path,
        """
        write_file("run.nc", "first")
        with atomic_file("run.nc") as file, atomic_directory("report", "marker") as folder:
            file.write_text("half")
            (folder / "half").touch()
            os.kill(os.getpid(), 9)
        """,
    )
    left = names(tmp_path)
    assert len(left) == 3 and (tmp_path / "run.nc").read_text() == "first"
    write_file(tmp_path / "other.nc", "of another name")
    assert names(tmp_path) == sorted([*left, "other.nc"])
    write_file(tmp_path / "run.nc", "second")
    with atomic_directory(tmp_path / "report", "marker") as folder:
        (folder / "marker").touch()
    assert names(tmp_path) == ["other.nc", "report", "run.nc"]


@pytest.mark.processes
def test_a_folder_moved_away_by_a_killed_writer_comes_back(tmp_path):
    killed(
        tmp_path,
        """
        for text in ("first", "second"):
            with atomic_directory("report", "marker") as folder:
                (folder / "marker").write_text(text)
                replace, calls = os.replace, []
                def third_kills(*paths):
                    calls.append(paths)
                    if len(calls) == 3:
                        os.kill(os.getpid(), 9)
                    replace(*paths)
                if text == "second":
                    atomic.os.replace = third_kills
        """,
    )
    assert not (tmp_path / "report").exists()
    with pytest.raises(RuntimeError), atomic_directory(tmp_path / "report", "marker"):
        assert (tmp_path / "report" / "marker").read_text() == "first"
        raise RuntimeError
    assert names(tmp_path) == ["report"]
    assert (tmp_path / "report" / "marker").read_text() == "first"


def test_what_earlier_versions_left_is_removed_or_put_back(tmp_path):
    (tmp_path / ".run.partial-abcd_123.nc").write_text("half")
    (tmp_path / ".report.partial-abcd_123").mkdir()
    (tmp_path / ".report.old-abcd_123" / "old").mkdir(parents=True)
    (tmp_path / ".report.old-abcd_123" / "old" / "marker").write_text("first")
    (tmp_path / ".run.partial-mine.nc").write_text("of somebody else")
    write_file(tmp_path / "run.nc", "whole")
    with pytest.raises(RuntimeError), atomic_directory(tmp_path / "report", "marker"):
        raise RuntimeError
    assert (tmp_path / "report" / "marker").read_text() == "first"
    assert names(tmp_path) == [".run.partial-mine.nc", "report", "run.nc"]


@pytest.mark.processes
def test_what_a_living_writer_holds_is_left_alone(tmp_path):
    with atomic_file(tmp_path / "run.nc") as slow:
        slow.write_text("slow")
        write_file(tmp_path / "run.nc", "fast, of this process")
        code = "from attractor.support.storage import write_file; write_file('run.nc', 'fast')"
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
        assert (tmp_path / "run.nc").read_text() == "fast"
    assert (tmp_path / "run.nc").read_text() == "slow"
    assert names(tmp_path) == ["run.nc"]


@pytest.mark.processes
def test_a_process_that_must_end_at_once_leaves_nothing(tmp_path):
    with pytest.raises(WriteError), atomic_file(tmp_path / "run.nc") as file:
        file.write_text("half")
        child = os.fork()
        if child == 0:  # what its parent writes is not its to remove
            discard_unfinished()
            os._exit(0)
        os.waitpid(child, 0)
        assert file.read_text() == "half"
        discard_unfinished()
        assert names(tmp_path) == []
