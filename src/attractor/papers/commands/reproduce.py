"""Make a result again, and say what differs."""

from __future__ import annotations

import contextlib
import inspect
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import typer

from attractor import results, training
from attractor.cli.application import load_command
from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, UnusedSeed
from attractor.cli.session import session
from attractor.geometry import get_geometry
from attractor.support.checks import shown
from attractor.support.containers import leaves, read_json, read_netcdf
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.storage import existing_file

if TYPE_CHECKING:
    from attractor.results.provenance import Provenance

NUMBERS = {
    **dict.fromkeys(("basins", "check", "corpus", "demo", "in-context", "matrix"), "summary.json"),
    **dict.fromkeys(("prompt-length", "sweep draw", "verify"), "summary.json"),
    **{"audit": "audit.json", "claims": "claims.json", "compare": "comparison.json", "figures": ""},
}
"""The commands whose results can be made again, each with the file of its numbers, which are
compared; of a figure it is its own, with labeled arrays."""
_CODE = {"optimizer": "optimizer", "norm": "norm", "geometry": "norm", "names": "claim"}
"""Arguments that may name code of the user's own, with the option that names it again."""
_MOST, _MOST_SEED, _MOST_LISTED, _MOST_TEXT = 10**7, 2**63 - 1, 1000, 10**6
"""Largest integer and seed, most entries and letters out of a file: a command with more is to be
called by itself, by somebody who means it."""


def reproduce(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .png, .svg, .nc, .json or .html file.")
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="The token file, corpus, saved run or folder that it was made from; of a "
            "comparison given twice, for FIRST and SECOND.",
        ),
    ] = None,
    checkpoints: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Of an audit: the heads captured from an earlier checkpoint; given once for each, "
            "in their order.",
        ),
    ] = None,
    optimizer: Annotated[
        list[str] | None,
        typer.Option(
            help="module:factory, an optimizer of yours that the report was made with; given once "
            "for each, in their order. The module is imported.",
        ),
    ] = None,
    norm: Annotated[
        list[str] | None,
        typer.Option(
            help="module:name, a norm of yours that the report was made with; given once for each, "
            "in their order. The module is imported.",
        ),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            help="module:name, a claim of yours that was checked; given once for each, in their "
            "order. The module is imported.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: UnusedSeed = 0,
) -> None:
    """Runs a result again and compares."""
    with session("reproduce", as_json=as_json, quiet=quiet) as current:
        existing_file(file)

        made = results.provenance.read_provenance(file)
        current.say(
            f"{file.name}: {made.kind} {made.name}, made by Attractor {made.version} on "
            f"{made.platform}"
        )
        command = {"figure": "figures", "claim": "claims"}.get(made.kind, made.name)
        if command not in NUMBERS:
            raise FileFormatError(
                f"{file} names a command {made.name!a}, whose results cannot be made again; those "
                f"of {', '.join(NUMBERS)} can."
            )
        function = function_of(command)
        code = {"optimizer": optimizer, "norm": norm, "claim": claim}
        given = {"data": data, "checkpoints": checkpoints, **code}
        named = {option: [*(value or ())] for option, value in given.items()}
        arguments = arguments_of(made, function, named)
        chosen = [f"{name} {value}" for name, value in arguments.items() if value is not None]
        current.say(f"Runs again: attractor {command} ({', '.join(chosen)})")
        stored = file.with_name(NUMBERS[command]) if NUMBERS[command] else file.with_suffix(".nc")
        if not stored.is_file():
            remedy = f"Put {stored.name} into the same folder"
            raise InvalidInputError("file", f"its numbers are not beside {file.name}", remedy)
        before = _numbers(stored)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "again"
            with contextlib.suppress(typer.Exit):  # an infeasible problem ends so, with a report
                function(**arguments, out=out, quiet=True)
            again = next(out.rglob(NUMBERS[command] or "*.nc"), None)
            if again is None:
                raise FileFormatError(
                    f"{file} cannot be made again: {made.name} refuses what it says it was made "
                    "with, for the reason above."
                )
            remade = results.provenance.read_provenance(again)
            now, changed = _numbers(again), results.provenance.differences(made, remade)
        names = sorted(before.keys() | now.keys())
        differing = {name: said for name in names if (said := _difference(before, now, name))}
        same = f"{len(differing)} differ" if differing else "all the same"
        current.say(f"Compared {len(names)} results: {same}.")
        current.say(*(f"  {name}: {words}" for name, words in differing.items()))
        if changed:
            current.say("What has changed since:", *(f"  {words}" for words in changed))
        current.result(
            kind=made.kind,
            name=made.name,
            same=not differing,
            compared=len(names),
            differing=differing,
            changed=changed,
        )


def function_of(command: str) -> Callable[..., None]:
    """The function of a command."""
    name, *rest = command.split()
    called = (rest or [name])[0].replace("-", "_")
    functions = [one.callback for one in load_command(name).registered_commands if one.callback]
    return next(one for one in functions if one.__name__ == called)


def arguments_of(
    made: Provenance, function: Callable[..., None], given: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """What to call a command with, but for its output.

    Args:
        made: As read from a file.
        function: The command.
        given: What was named on the command line: ``data``, ``checkpoints``, and code of the user's
            own as ``optimizer``, ``norm`` and ``claim``, each in place of one that the file names.

    Raises:
        FileFormatError: If the file says what the command does not take from one.
        InvalidInputError: If there are more files or names of code than it was made with, or fewer.
    """
    found, hints = dict(made.arguments), get_type_hints(function, include_extras=True)
    files = [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.default is inspect.Parameter.empty and "Path" in str(hints[name])
    ]
    figure = made.kind == "figure"
    of_data = bool(found.pop("source", None)) if figure else found.get("data")
    if isinstance(found.get("data"), bool):
        del found["data"]
    if of_data is True and "data" in hints:
        files = ["data"]
    count = found.pop("checkpoints", 0) if "checkpoints" in hints else 0
    for what, wanted in (("data", files), ("checkpoints", ["heads"] * count)):
        if len(given[what]) != len(wanted):
            raise InvalidInputError(
                what,
                f"its command takes {', '.join(wanted) or 'none'}; {len(given[what])} are given",
                f"Give each with --{what}, in their order" if wanted else "Leave it out",
            )
    wrong, never = [], {"as_json", "quiet", *["names"] * figure}
    for name, value in found.items():
        hint = hints.get(name)
        if name in never or "Path" in str(hint) or hint is None:
            wrong.append(f"{name!a} is none that a file can set")
        elif not _accepts(value, hint, _MOST_SEED if name == "seed" else _MOST):
            wrong.append(f"{name} is {shown(value)!a}, which it does not take from a file")
    if wrong:
        raise FileFormatError(
            f"The provenance says that {made.kind} {made.name!a} was made with arguments that "
            f"cannot be used: {'; '.join(wrong)}. Nothing was run."
        )
    if figure:
        found["names"] = [made.name]
    _name_code_again(found, given)
    taken = dict(zip(files, given["data"], strict=True))
    more = {"checkpoints": [*given["checkpoints"]] or None} if "checkpoints" in hints else {}
    return found | taken | more


def _accepts(value: Any, hint: Any, most: int, least: float | None = None) -> bool:
    """Whether a value of JSON is of the kind of an option."""
    of, inner = get_origin(hint), get_args(hint)
    if of is Annotated:
        return _accepts(value, inner[0], most, inner[1].min)
    if of is list:
        listed = value if isinstance(value, list) else [value]
        accepted = [_accepts(one, inner[0], most, least) for one in listed[:_MOST_LISTED]]
        return 0 < len(listed) <= _MOST_LISTED and all(accepted)
    if inner:
        return any(_accepts(value, one, most, least) for one in inner)
    if hint is int:
        return type(value) is int and (-most if least is None else least) <= value <= most
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is hint and (hint is not str or len(value) <= _MOST_TEXT)


def _name_code_again(arguments: dict[str, Any], given: Mapping[str, Sequence[str]]) -> None:
    """Puts code that was named on the command line where a file names code of somebody's own."""
    asked: dict[str, list[str]] = {"optimizer": [], "norm": [], "claim": []}
    again = {option: iter(given[option]) for option in asked}

    def named(option: str, value: Any) -> Any:
        if not isinstance(value, str) or _is_ours(option, value):
            return value
        asked[option].append(value)
        return next(again[option], None)

    for name, option in _CODE.items():
        value = arguments.get(name)
        if isinstance(value, list):
            arguments[name] = [named(option, one) for one in value]
        elif value is not None:
            arguments[name] = named(option, value)
    for option, names in asked.items():
        if len(names) == len(given[option]):
            continue
        if not names:
            problem = "the result was made with none of one's own"
            raise InvalidInputError(option, problem, f"Leave --{option} out")
        options = " ".join(f"--{key} mine:{key}" for key in asked for _ in asked[key])
        raise InvalidInputError(
            option,
            "the report was made with code of somebody's own, "
            f"{ascii(names)[1:-1][:200]}, which a file is never trusted to name",
            f"If you know it, name it again, in this order: attractor reproduce FILE {options}",
        )


def _is_ours(option: str, name: str) -> bool:
    """Whether an optimizer, norm or claim is known by name; no code of others is looked for."""
    if option == "claim":  # what has no colon is looked up among claims that are installed
        return ":" not in name
    find = training.optimizers.named_optimizer if option == "optimizer" else get_geometry
    with contextlib.suppress(InvalidInputError):
        return find(name) is not None
    return False


def _numbers(file: Path) -> dict[str, Any]:
    """Everything that a file of numbers holds, by name."""
    if file.suffix == ".nc":
        data = read_netcdf(file)
        return {str(name): data[name].to_numpy() for name in data.variables}
    found = read_json(file)
    if not isinstance(found, dict):
        raise FileFormatError(f"{file} cannot be read: it holds no JSON object.")
    found.pop("provenance", None)
    return dict(leaves(found.get("claims", found)))  # whose names alone are run again


def _difference(before: Mapping[str, Any], now: Mapping[str, Any], name: str) -> str:
    """The difference of two numbers, words or arrays; empty where there is none."""
    if name not in before or name not in now:
        return "is new" if name in now else "is no longer there"
    old, new = before[name], now[name]
    if not isinstance(old, np.ndarray):
        return "" if old == new else f"was {old} and is {new}"
    if old.shape != new.shape:
        return f"had shape {old.shape} and has {new.shape}"
    if old.dtype.kind not in "fc" or new.dtype.kind not in "fc":
        changed = int((old.astype(str) != new.astype(str)).sum())
        return f"{changed} of {old.size} values differ" if changed else ""
    if np.array_equal(old, new, equal_nan=True):
        return ""
    apart = np.where(np.isnan(old) & np.isnan(new), 0.0, np.abs(old - new))
    changed, most = int((apart != 0).sum()), np.nanmax(apart, initial=0.0)
    return f"{changed} of {old.size} differ, by up to {most:.3g}"


COMMAND = Command(
    reproduce,
    "Run a figure, outcomes of claims or a report again, and say what differs.",
    {
        "attractor reproduce report/report.html --data tokens.npz": 6,
    },
    (
        "FILE is any file that Attractor wrote for it: a picture, its data, a page or its JSON. It "
        "says which version made it, on which data, with which seeds and settings.",
        "A file of somebody else's is safe to give: it chooses among what Attractor itself can "
        "run, within ranges, and that is printed before it begins. It never names code or a path:"
        " data are read from --data, code from --optimizer, --norm and --claim, and nothing is "
        "kept. How long it takes is the file's choice; Ctrl-C ends it.",
        "Exit codes: 0 done, whether or not anything differs; 2 bad input; 130 interrupted.",
    ),
)
