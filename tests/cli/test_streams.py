"""Standard output that is closed, full or left by its reader, and a machine without much."""

import json
import os
import subprocess
import sys

import pytest

from attractor.support import machine

SHELL = pytest.mark.skipif(os.name == "nt", reason="these are files of Unix")


def shell(line, **environment):
    """What a command line of a shell does, with ``attractor`` in it."""
    command = f"{sys.executable} -m attractor"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line.replace("attractor", command)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )


@pytest.mark.processes
@SHELL
@pytest.mark.parametrize("words", ["--help", "solve no.npz --json", "--nothing --json"])
def test_output_that_is_full_is_an_error_in_a_line(words):
    done = shell(f"attractor {words} > /dev/full")
    assert done.returncode == 2
    assert "error: standard output: it cannot be written to (No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.processes
@SHELL
@pytest.mark.parametrize("words", ["--help", "solve no.npz --json"])
def test_a_reader_that_leaves_ends_a_command(words):
    done = shell(f"attractor {words} | true")
    assert done.returncode == 141
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr


@pytest.mark.processes
@SHELL
def test_output_that_is_closed_is_refused_where_it_was_asked_for():
    done = shell("attractor solve no.npz --json >&-")
    assert done.returncode == 2
    assert done.stderr.startswith("error: json: standard output: it is closed.")
    assert shell("attractor --help >&-").returncode == 0


@pytest.mark.processes
@SHELL
@pytest.mark.parametrize("where", ["2>&-", "2> /dev/full"])
def test_an_answer_needs_no_standard_error(where):
    done = shell(f"attractor solve no.npz --json {where}")
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (2, 2)


@pytest.mark.processes
def test_letters_that_a_terminal_does_not_have_are_written_out():
    done = shell("attractor solve \u03bb.npz", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "\\u03bb.npz" in done.stderr


@pytest.mark.processes
@pytest.mark.parametrize(
    "without",
    [
        {"HOME": "/proc/nothing", "XDG_CACHE_HOME": ""},
        {"HOME": "nothing", "XDG_CACHE_HOME": ""},
        {"XDG_CACHE_HOME": "/dev/null"},
    ],
)
@SHELL
def test_a_cache_folder_is_optional(without, tmp_path):
    unset = {name: "" for name in ("JAX_COMPILATION_CACHE_DIR",)}
    line = f"unset {' '.join(unset)}; attractor example tokens {tmp_path}/tokens.npz --quiet"
    done = shell(line, **without)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_home_folder_that_nothing_names_is_no_cache_folder(monkeypatch):
    import platformdirs

    def nowhere(name):
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(platformdirs, "user_cache_dir", nowhere)
    assert machine._default_folder() is None
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: f"~/.cache/{name}")
    assert machine._default_folder() is None


@pytest.mark.processes
@pytest.mark.parametrize("platform", ["nonsense", "cuda"])
def test_a_platform_that_is_not_there_is_named(platform):
    code = "from attractor.support.precision import double_precision\nwith double_precision(): pass"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": platform, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert "attractor.support.errors.AttractorError: JAX finds no device" in done.stderr


@pytest.mark.processes
def test_pytorch_that_is_missing_is_named_with_what_installs_it():
    code = "import sys; sys.modules['torch'] = None; import attractor; attractor.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'attractor[torch]'" in done.stderr
