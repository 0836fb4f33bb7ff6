"""Ctrl-C and SIGTERM, from the first moment to the last: one line and a code of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from commands import TABLE

from attractor.cli import interruption
from attractor.cli.session import session

MOMENTS = 20

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

SCRIPT = Path(__file__).with_name("ended_commands.py")
WHILE_IMPORTING = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)

module, number = sys.argv.pop(1), int(sys.argv.pop(1))

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Finder())
from attractor.cli import main
main()
"""
ASLEEP = """
import os, signal, sys, time
import typer
from attractor.cli import interruption
from attractor.cli.session import session
from attractor.support.storage import atomic_file

signal.signal(signal.SIGINT, signal.default_int_handler)
interruption.take_charge()

class Collected:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)

try:
    with session("solve", as_json=False, quiet=False), atomic_file("W.nc") as file:
        file.write_text("half")
        {}
except typer.Exit as end:
    sys.exit(end.exit_code)
"""


def run(code, *arguments, cwd=None):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("module", "number"),
    [("jax", signal.SIGINT), ("jax", signal.SIGTERM), ("attractor.margin", signal.SIGINT)],
)
def test_a_signal_while_modules_are_imported(file, module, number):
    command = "train" if module == "jax" else "solve"
    done = run(WHILE_IMPORTING, module, int(number), command, file)
    assert done.returncode == 128 + number
    assert done.stderr == f"error: {interruption.WORDS[number]}\n"


@pytest.mark.processes
def test_importing_the_command_line_takes_no_time():
    code = "import sys; from attractor.cli import main; print('numpy' in sys.modules)"
    assert run(code).stdout == "False\n"


@pytest.mark.processes
@pytest.mark.parametrize(("number", "said"), list(interruption.WORDS.items()))
def test_a_signal_while_a_command_works(tmp_path, number, said):
    done = run(ASLEEP.format(f"os.kill(os.getpid(), {int(number)})"), cwd=tmp_path)
    assert done.returncode == 128 + number
    assert done.stderr == f"error: {said}; nothing is left half-written\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.processes
def test_a_signal_while_a_command_imports_and_writes(tmp_path):
    (tmp_path / "ends.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    done = run(ASLEEP.format("import ends"), cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr == "error: interrupted\n"
    assert {path.name for path in tmp_path.iterdir()} <= {"ends.py", "__pycache__"}


@pytest.mark.processes
def test_a_second_signal_while_the_first_is_cleaned_up_after(tmp_path):
    again = """
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
    """
    done = run(ASLEEP.format(again.strip()), cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr == "error: interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.processes
def test_a_signal_where_no_exception_can_be_raised(tmp_path):
    done = run(ASLEEP.format("Collected(); time.sleep(60)"), cwd=tmp_path)
    assert "Traceback" not in done.stderr and "interrupted" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_command_within_another_hands_an_interruption_on():
    with pytest.raises(typer.Exit) as ended:
        with session("reproduce", as_json=False, quiet=True):
            with session("check", as_json=False, quiet=True):
                raise KeyboardInterrupt
            pytest.fail("the outer command goes on")
    assert ended.value.exit_code == 130


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.run])
def test_ended_at_any_moment(tmp_path, name):
    """Killed, an output is whole or not there; told to end, nothing is left; the next run does."""
    command = [sys.executable, "-W", "ignore", SCRIPT, name, "0", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["wrong"] == []
    assert seen["killed"] == MOMENTS and seen["interrupted"] >= MOMENTS // 8
