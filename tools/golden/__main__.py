"""The golden record: results of a base commit and of the working tree, to the last bit.

    python -m tools.golden --base main                        # a few minutes
    python -m tools.golden --base main --of margin --of training
    python -m tools.golden --base main --expected changes.txt # lines of: name TAB reason

Each tree runs its own collector, so that names in the library may change between them; a base that
has none runs this one. One runs after the other, or both at once. Names in the file of expected
differences may hold `*`. Numbers are compared on one machine and never stored.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tools.golden.renamed import present

ROOT = Path(__file__).parents[2]
PARTS = sorted(file.stem for file in (ROOT / "tools" / "golden" / "parts").glob("[!_]*.py"))
SHOWN = 3
"""Results of an adapter that are printed; a report has all."""


@contextmanager
def tree_of(commit: str, folder: Path) -> Iterator[Path]:
    """A commit, checked out into a temporary folder."""
    words = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*words, "add", "--quiet", "--detach", str(folder), commit], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*words, "remove", "--force", str(folder)], check=True)


def start(
    tree: Path, folder: Path, parts: list[str], whole: bool, stored: Path
) -> subprocess.Popen:
    """The collector on the sources of a tree, in a folder of its own."""
    folder.mkdir()
    kept = str(ROOT / "build" / "golden")
    own = tree if (tree / "tools" / "golden" / "collect.py").exists() else ROOT
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            [str(tree / "src"), str(tree / "packs" / "further" / "src"), str(own)]
        ),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "JAX_COMPILATION_CACHE_DIR": kept,  # both trees compile the same programs
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    words = [sys.executable, "-m", "tools.golden.collect", "--tree", str(tree)]
    words += ["--out", str(folder / "found.pickle"), "--stored", str(stored)]
    words += [word for part in parts for word in ("--of", part)] + ["--whole"] * whole
    return subprocess.Popen(words, cwd=folder, env=environment)


def difference(old: np.ndarray, new: np.ndarray) -> str:
    """What is different about two arrays, in words."""
    if old.dtype.kind in "US" or new.dtype.kind in "US":
        return f"{old.tolist()!r:.60} is now {new.tolist()!r:.60}"
    if old.shape != new.shape:
        return f"the shape {old.shape} is now {new.shape}"
    if old.dtype != new.dtype:
        return f"{old.dtype} is now {new.dtype}"
    if old.dtype.kind not in "fc":
        where = tuple(np.argwhere(old != new)[0])
        return (
            f"{(old != new).sum()} of {old.size} differ, the first: {old[where]}, now {new[where]}"
        )
    with np.errstate(all="ignore"):
        sizes = np.abs([old, new])
        size = np.abs(new - old) / sizes[np.isfinite(sizes)].max(initial=0.0)
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    size = np.where(same, 0, np.where(np.isfinite(size), size, np.inf))
    where = np.unravel_index(np.argmax(size), size.shape)
    if size[where] == 0:
        return "the same but for signs of zeros, or bits of NaN"
    return (
        f"{(~same).sum()} of {old.size} differ, by {size[where]:.1e} of the largest at most: "
        f"{old[where]!s}, now {new[where]!s}"
    )


def compare(old: tuple, new: tuple) -> dict[str, dict[str, str]]:
    """What two collections have in common, and what not, each name with words on it."""
    old = (*({present(name): one for name, one in each.items()} for each in old[:3]), old[3])
    (before, values, _, _), (after, others, _, _) = old, new
    report: dict[str, dict[str, str]] = {
        kind: {} for kind in ("equal", "differs", "only in base", "only in tree", "in neither")
    }
    for name in sorted({*before, *after}):
        if name not in after:
            report["only in base"][name] = _why(name, new[2])
        elif name not in before:
            report["only in tree"][name] = _why(name, old[2])
        elif before[name] == after[name]:
            report["equal"][name] = before[name]
        else:
            report["differs"][name] = difference(values[name], others[name])
    for name in sorted({*old[2]} & {*new[2]}):
        report["in neither"][name] = new[2][name]
    return report


def _why(name: str, missing: dict[str, str]) -> str:
    """Why a result is not in the other tree, as far as is known."""
    said = [words for key, words in missing.items() if name.startswith((f"{key}/", f"{key}:"))]
    return said[0] if said else "not there"


def read_expected(file: Path | None) -> dict[str, str]:
    """Reasons by name, or by pattern of names."""
    lines = file.read_text("utf-8").splitlines() if file else []
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    if wrong := [line for line in lines if not line.partition("\t")[2].strip()]:
        raise SystemExit(f"{file}: no tab and reason behind the name in {wrong[0]!r}")
    return {name: reason for name, _, reason in (line.partition("\t") for line in lines)}


def say(report: dict[str, dict[str, str]], expected: dict[str, str]) -> bool:
    """Prints a comparison.

    Returns:
        Whether there is a difference that is not expected.
    """
    unexpected, met = False, set()
    for kind, names in report.items():
        print(f"{kind}: {len(names)}")
        if kind == "equal":
            continue
        of_adapter: Counter[str] = Counter()
        for name, words in names.items():
            reason = next((one for one in expected if fnmatch.fnmatchcase(name, one)), None)
            if reason is not None:
                met.add(reason)
                continue
            unexpected |= kind != "in neither"
            adapter = "/".join(name.split("/")[:2])
            of_adapter[adapter] += 1
            if of_adapter[adapter] <= SHOWN:
                print(f"  {name}: {words}")
        for adapter, number in of_adapter.items():
            if number > SHOWN:
                print(f"  ... and {number - SHOWN} more of {adapter}, which --out writes")
        if of_adapter.total() < len(names):
            print(f"  {len(names) - of_adapter.total()} of them expected")
    for name in expected:
        print(f"{'expected' if name in met else 'expected, and not met'}: {name}: {expected[name]}")
    return unexpected


def main() -> int:
    """Compares, and returns 1 where something differs that is not expected to."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.golden", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--base", metavar="COMMIT", required=True)
    parser.add_argument(
        "--of", metavar="PART", action="append", choices=PARTS, help=", ".join(PARTS)
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the whole report as JSON")
    parser.add_argument("--expected", metavar="FILE", type=Path, help="lines of: name TAB reason")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1, help="trees at once")
    parser.add_argument("--whole", action="store_true", help="also what takes long, hours")
    options = parser.parse_args()
    expected, parts = read_expected(options.expected), options.of or PARTS
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the checkout is removed
    found: dict[str, Any] = {}
    running: dict[str, subprocess.Popen] = {}
    with tempfile.TemporaryDirectory() as kept, tree_of(options.base, Path(kept) / "base") as base:
        base = base.resolve()
        stored = base / "tests" / "stored"  # both read what the base has
        try:
            for name, tree in (("base", base), ("tree", ROOT)):
                running[name] = start(tree, Path(kept) / f"of-{name}", parts, options.whole, stored)
                if options.processes == 1 and running[name].wait():
                    break
            for name, process in running.items():
                if process.wait():
                    raise SystemExit(f"the collector ended with {process.returncode} on the {name}")
                file = Path(kept) / f"of-{name}" / "found.pickle"
                found[name] = pickle.loads(file.read_bytes())
        finally:
            for process in running.values():
                process.kill()
                process.wait()
    report = compare(found["base"], found["tree"])
    if options.out:
        seconds = {name: one[3] for name, one in found.items()}
        options.out.write_text(json.dumps(report | {"seconds": seconds}, indent=1) + "\n")
    return int(say(report, expected))


if __name__ == "__main__":
    sys.exit(main())
