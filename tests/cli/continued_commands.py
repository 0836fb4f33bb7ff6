"""Ends `attractor matrix` by real signals after some rows, and runs the same command again.

Usage: continued_commands.py SIGNAL. The children are forked before anything is computed. Prints, as
JSON, what each said, its exit code, how many rows it trained, and what lay beside its report.
"""

import json
import os
import signal
import sys
from pathlib import Path

from attractor.cli import application, interruption
from attractor.maps.bias import _bias_matrix as bias
from attractor.maps.commands import matrix as report

COMMAND = "matrix --optimizer gd --lr 0.1 --lr 0.2 --lr 0.4 --data-sets 2 --steps 20 --json"


def light(out, found, **_):
    """A report without pictures, which take long."""
    Path(out).mkdir()
    found.save(Path(out) / "matrix.nc")
    (Path(out) / "report.html").write_text("")
    return found.summary()


def run(words, number, after):
    said = os.open("said", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(os.open("complained", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interruption.take_charge()
    report.write_bias_report = light
    whole, done = bias.Experiment._trained, []

    def trained(experiment, method):
        if len(done) == after:
            os.kill(os.getpid(), number)
        found = whole(experiment, method)
        done.append(method.name)
        Path("trained").write_text(str(len(done)))
        return found

    bias.Experiment._trained = trained
    code = 1
    try:
        application.app(words.split())
    except SystemExit as end:
        code = interruption.exit_code() or end.code or 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def child(folder, words, number=None, after=None):
    Path(folder).mkdir(exist_ok=True)
    if (pid := os.fork()) == 0:
        os.chdir(folder)
        Path("trained").write_text("0")
        run(words, number, after)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    place = Path(folder)
    return {
        "code": code,
        "said": (place / "said").read_text(),
        "complained": (place / "complained").read_text(),
        "trained": int((place / "trained").read_text()),
        "beside": sorted(path.name for path in place.glob(".*")),
    }


if __name__ == "__main__":
    number = signal.Signals[sys.argv[1]]
    out = f"{COMMAND} --out here"
    seen = {"whole": child("whole", out), "ended": child("one", out, number, 2)}
    if number == signal.SIGINT:
        seen["unkept"] = child("two", COMMAND, number, 2)
        seen["another"] = child("one", out.replace("0.4", "0.5"), number, 0)
    seen["continued"] = child("one", out)
    print(json.dumps(seen))
