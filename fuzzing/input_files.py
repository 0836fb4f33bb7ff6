"""Damaged input files: every one must end in exit code 0, 2, or 3 where a problem is infeasible.

``python -m fuzzing.input_files --count 10000 --seed 0 --processes 200 --out FOLDER`` damages a file
of each kind so many times, reads all of them in one process, and so many more in a process each. It
records exit codes, times and memory, keeps every input that fails, and goes on where it was when it
was killed. A failure is any other exit code (a certificate that is refused may give 1), more than
30 s, more than 2 GB, or the end of the process. Seconds are those of the clock or of the processor,
whichever are fewer: a machine that has more to do is not the file's fault.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import zlib
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from fuzzing.kinds import KINDS, ROOT, arguments, make_originals, place
from fuzzing.mutations import damaged

SECONDS, BYTES = 30.0, 2 * 10**9
HOPELESS = 120
"""Seconds after which a file is given up; the process is ended after twice as many."""


def mutated(name: str, number: int, seed: int, originals: Path) -> bytes:
    """The damaged file of that number; those of number 0 are whole, and must be read."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    data = (originals / KINDS[name].file).read_bytes()
    if number == 0:
        return data
    other = originals / list(KINDS.values())[number % len(KINDS)].file
    others = [data, data, other.read_bytes() if other.is_file() else data]
    return damaged(data, Path(KINDS[name].file).suffix, others, rng)


def read_here(name: str, file: Path, originals: Path) -> tuple[int, str]:
    """The exit code of reading a file in this process, and what went wrong otherwise."""
    from typer.testing import CliRunner

    from attractor.cli.application import app
    from attractor.support.errors import AttractorError

    kind = KINDS[name]
    with kind.stub(originals):
        if callable(kind.read):
            try:
                return kind.read(file) or 0, ""
            except AttractorError:
                return 2, ""
            except Exception:
                return 1, traceback.format_exc(limit=-4)
        done = CliRunner().invoke(app, arguments(kind, file))
    words = ""
    if done.exit_code not in (0, 2, 3) and done.exc_info is not None:
        words = "".join(traceback.format_exception(*done.exc_info, limit=-4))
    return done.exit_code, words


def read_in_a_process(name: str, file: Path, originals: Path) -> tuple[int, str, int]:
    """The exit code of reading a file in a process of its own, its last words, and its memory."""
    command = [sys.executable, "-m", "fuzzing.kinds", name, str(originals), str(file)]
    log = file.parents[1] / "stderr"
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=stderr)
        deadline = time.monotonic() + 2 * HOPELESS
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                process.kill()
            time.sleep(0.02)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    words = log.read_text("utf-8", "replace")
    if "Traceback" in words:
        code = code if code not in (0, 2, 3) else 1
    return code, words[-3000:] if code not in (0, 2, 3) else "", usage.ru_maxrss * 1024


def work(name: str, numbers: range, seed: int, out: Path) -> None:
    """Reads damaged files one after another, and notes each."""
    import attractor.cli  # noqa: F401 - not a part of the time of the first file

    originals, folder = out / "originals", out / "work" / name
    signal.signal(signal.SIGALRM, _hopeless)
    alone = numbers.start >= 10**9
    with (out / f"{name}.jsonl").open("a") as log:
        for number in numbers:
            content = mutated(name, number, seed, originals)
            file = place(KINDS[name], originals, folder, content)
            (out / f"{name}.now").write_text(f"{number} {time.time()}")
            before, began, worked = _forget_peak(), time.perf_counter(), sum(os.times()[:4])
            if alone:
                code, words, peak = read_in_a_process(name, file, originals)
            else:
                signal.alarm(HOPELESS)
                code, words = read_here(name, file, originals)
                signal.alarm(0)
                peak = _peak() - before
            seconds = min(time.perf_counter() - began, sum(os.times()[:4]) - worked)
            note = {"number": number, "code": code, "seconds": round(seconds, 3), "bytes": peak}
            if _fails(name, note):
                keep(out, name, number, content, words)
                note["words"] = words[-500:]
            log.write(json.dumps(note) + "\n")
            log.flush()


def keep(out: Path, name: str, number: int, content: bytes, words: str) -> None:
    """Keeps an input that failed."""
    folder = out / "failures" / f"{name}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / Path(KINDS[name].file).name).write_bytes(content)
    (folder / "why.txt").write_text(words)


def run(name: str, numbers: range, seed: int, out: Path) -> None:
    """Has a process read the files that are not noted yet; begins another where one ends."""
    while True:
        noted = {note["number"] for note in notes(out, name)}
        left = [number for number in numbers if number not in noted]
        if not left:
            return
        command = [sys.executable, "-m", "fuzzing.input_files", "--worker", name]
        command += [str(left[0]), str(numbers.stop), "--seed", str(seed), "--out", str(out)]
        (out / f"{name}.now").write_text(f"{left[0]} {time.time()}")
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            time.sleep(0.2)
            _, since = (out / f"{name}.now").read_text().split() or ("", "inf")
            if time.time() - float(since) > 3 * HOPELESS:
                process.kill()
        if process.returncode:
            number = int((out / f"{name}.now").read_text().split()[0])
            note = {"number": number, "code": process.returncode, "seconds": 0.0, "bytes": 0}
            keep(out, name, number, mutated(name, number, seed, out / "originals"), "ended")
            with (out / f"{name}.jsonl").open("a") as log:
                log.write(json.dumps(note | {"words": "the process ended"}) + "\n")


def notes(out: Path, name: str) -> list[dict[str, Any]]:
    """What is noted of a kind; a line that was cut off when the fuzzer was killed is left out."""
    file = out / f"{name}.jsonl"
    lines = file.read_text().splitlines() if file.is_file() else []
    found = {}
    for line in lines:
        try:
            note = json.loads(line)
        except ValueError:
            continue
        found[note["number"]] = note
    return list(found.values())


def report(out: Path) -> dict[str, Any]:
    """Counts by kind: exit codes, failures, the longest time, the most memory."""
    table = {}
    for name in KINDS:
        found = notes(out, name)
        if found:
            codes = collections.Counter(note["code"] for note in found)
            table[name] = {
                "read": len(found),
                "in_processes": sum(note["number"] >= 10**9 for note in found),
                "codes": {str(code): codes[code] for code in sorted(codes)},
                "failures": sorted(note["number"] for note in found if _fails(name, note)),
                "seconds": round(sum(note["seconds"] for note in found), 1),
                "longest": max(note["seconds"] for note in found),
                "most_bytes": max(note["bytes"] for note in found),
            }
    (out / "report.json").write_text(json.dumps(table, indent=1) + "\n")
    return table


def _fails(name: str, note: dict[str, Any]) -> bool:
    if note["number"] == 0 and note["code"]:
        return True
    allowed = (0, 1, 2) if name == "certificate.json" else (0, 2, 3)
    return note["code"] not in allowed or note["seconds"] > SECONDS or note["bytes"] > BYTES


def _hopeless(_: int, __: FrameType | None) -> None:
    raise TimeoutError(f"not read after {HOPELESS} s")


def _forget_peak() -> int:
    """Has Linux forget the most memory of this process so far, and says how much it has now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    return _peak()


def _peak() -> int:
    """The most memory of this process, in bytes; 0 where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def main() -> None:
    """Reads damaged files of each kind and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="files of each kind")
    parser.add_argument("--processes", type=int, default=0, help="more, in a process each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--out", type=Path, required=True, help="a folder, new or of a killed run")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    out = given.out.absolute()
    if given.worker:
        name, first, last = given.worker
        work(name, range(int(first), int(last)), given.seed, out)
        return
    if not (out / "originals" / "tokenizer.json").is_file():
        make_originals(out / "originals")
    for name in given.kind:
        run(name, range(given.count), given.seed, out)
        run(name, range(10**9, 10**9 + given.processes), given.seed, out)
        done = report(out)[name]
        print(
            f"{name:24} {done['read']:6} {done['codes']} {len(done['failures'])} failures, longest "
            f"{done['longest']:.1f} s, most {done['most_bytes'] / 1e6:.0f} MB",
            flush=True,
        )
    sys.exit(any(one["failures"] for one in report(out).values()))


if __name__ == "__main__":
    main()
