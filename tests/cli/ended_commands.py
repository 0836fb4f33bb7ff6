"""Runs a command again and again, each time in a child that is ended at some moment.

Usage: ended_commands.py COMMAND SEED FOLDER. The children are forked before anything is computed,
so that nothing is imported twice. What the command is to write is known from a run to the end; half
of the children write slowly, so that many are ended while they do. Prints what was seen, as JSON.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from commands import TABLE

from attractor.cli import application, interruption
from attractor.cli.commands import demo
from attractor.corpora import page as corpus
from attractor.datasets import digits
from attractor.papers.ledger import packs
from attractor.prompts.commands import in_context, prompt_length
from attractor.report import write
from attractor.support import storage

LOADED = (digits, packs, corpus, in_context, prompt_length, write)
MOMENTS = 20
MOST_TRIES = 3 * MOMENTS
"""Some commands are done before the moment that they are to be killed at."""


def prepare():
    """Makes what commands read."""
    for words in ("tokens tokens.npz", "corpus corpus.txt", "head head.npz"):
        assert ended(f"example {words}", None)[0] == 0


def ended(words, moment, number=signal.SIGKILL, slowly=False):
    """Runs a command, ends it after so many seconds; gives its exit code, output and time."""
    began, child = time.monotonic(), os.fork()
    if child == 0:
        run(words, slowly)
    if moment is not None:
        time.sleep(moment)
        os.kill(child, number)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, Path(f"said-{child}").read_text(), time.monotonic() - began


def run(words, slowly):
    said = os.open(f"said-{os.getpid()}", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run in the background
    interruption.take_charge()
    demo.SIZES, demo.DATA_SETS, demo.STEPS = (6,), 2, 50
    if slowly:
        flush = storage.atomic._flush
        storage.atomic._flush = lambda path: (time.sleep(0.02), flush(path))
    code = 1
    try:
        application.app(words.split())
    except SystemExit as end:
        code = interruption.exit_code() or end.code or 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def contents():
    """All that a command has written."""
    found = {}
    for place in (Path("out"), Path("out.nc")):
        files = [place] if place.is_file() else place.rglob("*")
        found |= {str(path): path.read_bytes() for path in files if path.is_file()}
    return found


def hidden():
    return [str(path) for path in Path().rglob(".*") if "unfinished" not in path.name]


def fresh():
    for name in ("out", "kept"):
        shutil.rmtree(name, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink("out.nc")


def whole(expected, shared):
    """Whether there is nothing or all; in a shared folder files are whole one by one."""
    found = {name: data for name, data in contents().items() if "/." not in name}
    if shared:
        return all(expected.get(name) == data for name, data in found.items())
    return not found or found == expected


def main(name, seed, folder):
    os.chdir(folder)
    prepare()
    words, shared = f"{name} {TABLE[name].run}", name == "figures"
    code, said, _ = ended(words, None)
    assert code == 0, said
    expected = contents()
    fresh()
    lasted = ended(words, None)[2]
    assert whole(expected, shared), "two runs differ"
    fresh()
    draw = random.Random(seed)
    seen = {"killed": 0, "interrupted": 0, "during a write": 0, "wrong": []}
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
        for turn in range(MOST_TRIES if number == signal.SIGKILL else MOMENTS // 4):
            if seen["killed"] == MOMENTS and number == signal.SIGKILL:
                break
            if turn % 5 == 0:
                fresh()
            slowly = bool(turn % 2)
            moment = draw.uniform(0, lasted) + (0.5 * lasted if slowly else 0)
            code, said, _ = ended(words, moment, number, slowly)
            seen["during a write"] += bool(hidden())
            if number == signal.SIGKILL:
                seen["killed"] += code == -signal.SIGKILL
                allowed = (0, -signal.SIGKILL)
            else:
                seen["interrupted"] += code == 128 + number
                allowed = (0, 128 + number)
                if hidden():
                    seen["wrong"].append([turn, "left", hidden()])
            if code not in allowed or "Traceback" in said or not whole(expected, shared):
                seen["wrong"].append([turn, number, moment, code, said[-600:], list(contents())])
        code, said, _ = ended(words, None)
        if code != 0 or contents() != expected or hidden():
            seen["wrong"].append(["next run", code, said[-600:], hidden()])
    seen["wrong"] += together(words, expected)
    print(json.dumps(seen))


def together(words, expected):
    """Two processes that write one output: each succeeds, or one is told of the other."""
    wrong = []
    for _ in range(3):
        fresh()
        children = []
        for _ in range(2):
            child = os.fork()
            if child == 0:
                run(words, True)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        said = [Path(f"said-{child}").read_text() for child in children]
        told = all(code == 0 or "another run is writing" in words
                   for code, words in zip(codes, said, strict=True))  # fmt: skip
        if 0 not in codes or not told or contents() != expected or hidden():
            wrong.append(["together", codes, [words[-300:] for words in said], hidden()])
    return wrong


if __name__ == "__main__":
    main(*sys.argv[1:])
