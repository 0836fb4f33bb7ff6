"""Collects the results of one tree: runs in a process of its own, with that tree's sources."""

from __future__ import annotations

import argparse
import contextlib
import enum
import hashlib
import importlib
import io
import itertools
import json
import os
import pickle
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

NOT_COMPARED = {"version", "versions", "provenance", "seconds", "busy", "code", "hash", "page"}
"""Keys of what says when, where and by which code something was made, or how long it took."""


class NoCommand(AttributeError):
    """A command that is not there, or did not accept what it was given."""


def command(*words: object) -> dict[str, Any]:
    """The JSON that a command of Attractor prints, run in this process and folder.

    Raises:
        NoCommand: If it printed none.
    """
    from attractor.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before, sys.argv = sys.argv, ["attractor", *map(str, words), "--json", "--quiet"]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit:
        pass
    finally:
        sys.argv = before
    said = out.buffer.getvalue().decode().strip()
    answer = json.loads(said) if said.startswith("{") else {"exit_code": 1}
    if answer.get("exit_code") in (1, 2):
        lines = err.buffer.getvalue().decode().strip().splitlines()
        raise NoCommand(str(answer.get("error", lines[-1:])))
    return answer


def of(value: Any, names: str) -> dict[str, Any]:
    """Attributes of a result; one that is not there is recorded as such."""
    return {name: getattr(value, name, "not-there") for name in names.split()}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Numbers and short texts of a result, each with its place in it.

    Words for people are left out: texts with spaces, and paths. Fields that begin with an
    underscore or are functions are, too.
    """
    join = f"{name}.".lstrip(".")
    if value is None or isinstance(value, enum.Enum):
        yield name, np.array(value if value is None else value.name, dtype=str)
    elif isinstance(value, str):
        if not set(value) & set(" /\\\n"):
            yield name, np.array(value)
    elif hasattr(value, "variables") and hasattr(value, "dims"):  # labeled data
        for key in sorted(value.variables, key=str):
            yield from leaves(value.variables[key].to_numpy(), f"{join}{key}")
    elif hasattr(value, "to_dataset"):
        yield from leaves(value.to_numpy(), name)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if key not in NOT_COMPARED:
                yield from leaves(one, f"{join}{key}")
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if not field.name.startswith("_") and not callable(getattr(value, field.name)):
                yield from leaves(getattr(value, field.name), f"{join}{field.name}")
    elif hasattr(value, "_asdict"):
        yield from leaves(value._asdict(), name)
    elif isinstance(value, (list, tuple)) and not all(
        isinstance(one, (int, float)) for one in value
    ):
        for key, one in enumerate(value):
            yield from leaves(one, f"{join}{key}")
    else:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            plain = [one.name if isinstance(one, enum.Enum) else one for one in array.ravel()]
            if not all(isinstance(one, (str, int, float, type(None))) for one in plain):
                raise TypeError(f"{name} is a {type(value).__name__}, of which no digest is taken")
            array = np.array([str(one) for one in plain])
        yield name, array


def digest(array: np.ndarray) -> str:
    """A hash of the type, the shape and the bytes of an array."""
    text = array.dtype.kind in "US"
    found = hashlib.sha256(f"{'text' if text else array.dtype.str} {array.shape}".encode())
    found.update(json.dumps(array.tolist()).encode() if text else array.tobytes())
    return found.hexdigest()[:16]


def collect(
    part: str, first: int | None = None, only: tuple[str, ...] = (), **options: Any
) -> tuple[dict, dict, float]:
    """Everything that a part yields.

    Args:
        part: A module of `tools.golden.parts`. Its `ADAPTERS` are functions that yield names, each
            with a function without arguments that makes a result.
        first: How many of each adapter to make; None for all.
        only: Names of adapters; all of them where none is given.
        options: Handed to the adapters that are in `WITH_OPTIONS`.

    Returns:
        Arrays by name; what is not there, with the message; seconds.
    """
    module = importlib.import_module(f"tools.golden.parts.{part}")
    found: dict[str, np.ndarray] = {}
    missing: dict[str, str] = {}
    begun = time.perf_counter()
    for adapter, function in module.ADAPTERS.items():
        if only and adapter not in only:
            continue
        name = f"{part}/{adapter}"
        try:
            given = options if adapter in getattr(module, "WITH_OPTIONS", ()) else {}
            for key, make in itertools.islice(function(**given), first):
                name = f"{part}/{adapter}/{key}"
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        made = {f"{name}:{place}": one for place, one in leaves(make())}
                    if not made:
                        raise TypeError("it has nothing to compare")
                    found |= made
                except Exception as error:
                    missing[name] = f"{type(error).__name__}: {error}".partition("\n")[0]
        except Exception as error:
            missing[name] = f"{type(error).__name__}: {error}".partition("\n")[0]
    return found, missing, time.perf_counter() - begun


def main() -> None:
    """Writes what the parts yield into a file that `tools.golden` reads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--of", action="append", required=True)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--stored", type=Path, required=True)
    options = parser.parse_args()
    import attractor

    if options.tree / "src" not in Path(attractor.__file__).resolve().parents:
        raise SystemExit(f"{attractor.__file__} is none of {options.tree}")
    found: dict[str, np.ndarray] = {}
    missing: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for part in options.of:
        folder = Path(part)
        folder.mkdir()
        with contextlib.chdir(folder):
            one, gone, seconds[part] = collect(part, whole=options.whole, stored=options.stored)
        found |= one
        missing |= gone
        print(f"{part}: {len(one)} results in {seconds[part]:.0f} s", file=sys.stderr, flush=True)
    digests = {name: digest(array) for name, array in found.items()}
    options.out.write_bytes(pickle.dumps((digests, found, missing, seconds)))
    sys.stderr.flush()
    os._exit(0)  # worker threads and JAX take their time


if __name__ == "__main__":
    main()
