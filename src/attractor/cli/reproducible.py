"""Reports of commands made again: the arguments that a report can set, and the comparison.

Outputs, checkpoints and data files are paths: they are named on the command line or not at all.
Numbers have a range beyond which a command is to be called by itself, by somebody who means it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from attractor.analysis.bias import named_optimizer
from attractor.attention import get_loss, get_parameterization
from attractor.cli import (
    audit,
    basins,
    check,
    compare,
    corpus,
    demo,
    in_context,
    matrix,
    prompt_length,
    sweep,
    verify,
)
from attractor.containers import read_json
from attractor.errors import FileFormatError, InvalidInputError
from attractor.geometry import get_geometry
from attractor.papers.figure import SIZES
from attractor.papers.reproduction import Reproduction
from attractor.provenance import Provenance, differences, read_provenance
from attractor.provenance.arguments import (
    SEED,
    Argument,
    check_arguments,
    number,
    one_or_several,
    optional,
    several,
    text,
    truth,
    whole,
    word,
)

SUMMARY = "summary.json"
"""The numbers of a report."""
OPTIMIZER = "optimizer"
OWN_CODE = {OPTIMIZER: OPTIMIZER, "norm": "norm", "geometry": "norm"}
"""The arguments that may name code of the user's own, who then has to name it again, with the
option that this is done by."""


@dataclass(frozen=True)
class Reproducible:
    """A command whose report can be made again.

    Attributes:
        run: The command.
        arguments: What its report can set.
        takes: Its argument for the file that the report was made from; empty if there is none.
        takes_second: Its argument for a second file; empty if it takes none.
        takes_more: Its argument for further files, of which a report records how many there were.
        may_lack: Arguments that reports of earlier versions do not have.
        numbers: The file of its numbers, which are compared.
    """

    run: Callable[..., None]
    arguments: Mapping[str, Argument]
    takes: str = ""
    takes_second: str = ""
    takes_more: str = ""
    may_lack: tuple[str, ...] = ()
    numbers: str = SUMMARY


def _found(words: str, find: Callable[[str], object]) -> Argument:
    """A text by which something of this library is found; nothing is imported to find it."""

    def accepts(value: Any) -> bool:
        try:
            return isinstance(value, str) and len(value) <= 200 and find(value) is not None
        except InvalidInputError:
            return False

    return Argument(words, accepts)


_KNOWN = _found("the name of an optimizer that Attractor knows", named_optimizer)
_LOSS = _found("the name of a loss", get_loss)
_LAYER = _found("what is trained, such as W or KQ", get_parameterization)
_AXIS = text(r"[A-Za-z]\w*", "the name of an axis or a measure", 100)
_NORM = _found("the name of a norm", get_geometry)
_LIBRARY = {OPTIMIZER: _KNOWN, "norm": _NORM}
"""What of each is the library's own."""
_STEPS = whole(1, 10**7)
_OF_FILE = truth(True)

COMMANDS = {
    "audit": Reproducible(
        audit.audit,
        {
            "layers": optional(text(r"[\d, -]+", "numbers of layers", 10**4)),
            "heads": optional(text(r"[\d., ]+", "names of heads", 10**5)),
            "draws": whole(1, 10**5),
            "alpha": number(),
            "training_texts": truth(),
            "norm": optional(several(_NORM, 100)),
            "checkpoints": whole(0, 1000),
            "control": truth(),
            "sink_positions": optional(whole(0, 10**6)),
            "seed": SEED,
            "data": _OF_FILE,
        },
        takes="model",
        takes_more="checkpoints",
        numbers="audit.json",
    ),
    "basins": Reproducible(
        basins.basins,
        {
            OPTIMIZER: optional(_KNOWN),
            "lr": optional(number()),
            "parameterization": optional(_LAYER),
            "loss": _LOSS,
            "steps": optional(_STEPS),
            "starts": whole(1, 10**6),
            "scale": optional(number()),
            "with_map": truth(),
            "extent": number(),
            "resolution": whole(1, 1000),
            "data_set": optional(whole(0, 10**9)),
            "seed": SEED,
            "data": _OF_FILE,
        },
        takes="file",
    ),
    "check": Reproducible(
        check.check,
        {
            "selection": optional(text(r"[\d, -]+", "token numbers", 10**6)),
            "steps": optional(_STEPS),
            "lr": optional(number()),
            "seeds": optional(whole(1, 10**5)),
            "seed": SEED,
            "data": _OF_FILE,
        },
        takes="file",
    ),
    "compare": Reproducible(
        compare.compare,
        {"seed": SEED, "norm": optional(_NORM), "data": _OF_FILE},
        takes="first",
        takes_second="second",
        numbers="comparison.json",
    ),
    "corpus": Reproducible(
        corpus.corpus,
        {
            "context": optional(whole(1, 10**9)),
            "vocabulary": optional(whole(1, 10**9)),
            "embedding": optional(text(r"one-hot|gaussian:[0-9]{1,5}", "one-hot or gaussian:D")),
            "train": truth(),
            "steps": _STEPS,
            "seed": SEED,
            "data": _OF_FILE,
        },
        takes="file",
    ),
    "demo": Reproducible(demo.demo, {"seed": SEED, "data": truth(False)}),
    "in-context": Reproducible(
        in_context.in_context,
        {
            "dimension": whole(1, 1000),
            "correlation": number(),
            "lengths": optional(text(r"((inf|[0-9]{1,7})(, *|$))+", "lengths, or inf")),
            "attention": optional(word("softmax", "linear", "both")),
            "data_path": optional(word(*in_context.DATA)),
            "initialization": optional(word("balanced", "default")),
            "parameterization": optional(word("blocks", "all_blocks", "factors")),
            "scale": optional(number()),
            "steps": optional(_STEPS),
            "lr": optional(number()),
            "batch": whole(1, 10**6),
            "draw": word("auto", "tokens", "projections", "moments"),
            "experiment": optional(word("official")),
            "seeds": whole(1, 10**4),
            "seed": optional(SEED),
        },
    ),
    "matrix": Reproducible(
        matrix.matrix,
        {
            OPTIMIZER: optional(several(_KNOWN, 100)),
            "lr": optional(one_or_several(number(), 100)),
            "norm": optional(several(_NORM, 100)),
            "parameterization": _LAYER,
            "size": word(*matrix.SIZES),
            "data_sets": optional(whole(1, 10**4)),
            "steps": optional(_STEPS),
            "matched": truth(),
            "seed": SEED,
            "data": truth(False),
        },
        may_lack=("norm",),
    ),
    "prompt-length": Reproducible(
        prompt_length.prompt_length,
        {
            "error": number(),
            "length": optional(several(whole(1, 2**53), 1000)),
            "queries": whole(1, 10**6),
            "seed": SEED,
            "data": _OF_FILE,
        },
        takes="file",
    ),
    "sweep draw": Reproducible(
        sweep.draw,
        {
            "x": _AXIS,
            "of": text(r"[A-Za-z]\w*(, ?[A-Za-z]\w*)*", "the names of measures"),
            **dict.fromkeys(("y", "lines", "panels", "along"), optional(_AXIS)),
            "at": optional(several(text(r"[A-Za-z]\w*=.+", "axis=value"), 100)),
            "levels": optional(text(r"[-+.,eE\d ]+", "numbers")),
            "side": optional(word("below", "above")),
            "transition": optional(word("linear", "log")),
            "confidence": number(),
            "seed": SEED,
            "data": _OF_FILE,
        },
        takes="store",
        may_lack=("along", "side", "transition"),
    ),
    "verify": Reproducible(
        verify.verify,
        {"geometry": optional(_NORM), "data": _OF_FILE},
        takes="run",
        may_lack=("geometry",),
    ),
}
"""The commands whose reports can be made again, and all that a report can set."""

FIGURE = {
    "size": word(*SIZES),
    "seeds": optional(whole(1, 10**5)),
    "seed": SEED,
    "as_published": truth(),
    "source": text(r".+", "where the data were"),
}
"""The arguments that a figure can set. Where the data were is not opened: they are named again."""


def report_arguments(
    provenance: Provenance,
    optimizers: Sequence[str] | None = None,
    norms: Sequence[str] | None = None,
) -> tuple[Reproducible, dict[str, Any]]:
    """The command that made a report, and what to call it with, but for files.

    Args:
        provenance: As read from a file.
        optimizers: Those of the user's own, each in place of one that the report names.
        norms: The same of norms.

    Raises:
        FileFormatError: If the provenance names no such command, or arguments that it cannot set.
        InvalidInputError: If the report was made with optimizers or norms of somebody's own, and
            not as many are given.
    """
    if provenance.name not in COMMANDS:
        known = ", ".join(COMMANDS)
        raise FileFormatError(
            f"The provenance names a command {provenance.name!a}, whose reports cannot be made "
            f"again; those of {known} can."
        )
    command = COMMANDS[provenance.name]
    given = {OPTIMIZER: optimizers or (), "norm": norms or ()}
    asked: dict[str, list[str]] = {option: [] for option in given}
    plain, named = dict(provenance.arguments), {}
    for name, option in OWN_CODE.items():
        found = plain.get(name) if name in command.arguments else None
        listed = found if isinstance(found, list) else [found]
        own = [
            one
            for one in listed
            if isinstance(one, str) and ":" in one and not _LIBRARY[option].accepts(one)
        ]
        if own:
            rest: Any = [one for one in listed if one not in own]
            plain[name] = rest if isinstance(found, list) and rest else None
            asked[option] += own
            named[name] = (found, option)
    if any(len(asked[option]) != len(given[option]) for option in given):
        raise _other_number(asked, given)
    checked = replace(provenance, arguments=plain)
    arguments = check_arguments(checked, command.arguments, may_lack=command.may_lack)
    arguments.pop("data", None)
    for name, (found, option) in named.items():
        again = iter(given[option])
        if isinstance(found, list):
            arguments[name] = [next(again) if one in asked[option] else one for one in found]
        else:
            arguments[name] = next(again)
    return command, arguments


def _other_number(
    asked: Mapping[str, list[str]], given: Mapping[str, Sequence[str]]
) -> InvalidInputError:
    """The error where not as much code is given as a report was made with, and all that is."""
    option = next(option for option in asked if len(asked[option]) != len(given[option]))
    if not asked[option]:
        return InvalidInputError(
            option, "the result was made with none of one's own", f"Leave --{option} out"
        )
    names = {OPTIMIZER: "mine:opt", "norm": "mine:Norm"}
    options = " ".join(f"--{name} {names[name]}" for name in asked for _ in asked[name])
    return InvalidInputError(
        option,
        "the report was made with code of somebody's own, "
        f"{ascii(asked[option])[1:-1][:200]}, which a file is never trusted to name",
        f"If you know it, name it again, in this order: attractor reproduce FILE {options}",
    )


def reproduce_report(
    file: Path, provenance: Provenance, command: Reproducible, arguments: Mapping[str, Any]
) -> Reproduction:
    """Runs the command of a report again, and compares the numbers of both.

    Args:
        file: A file of the report.
        provenance: Where it comes from.
        command: The command.
        arguments: What to call it with, checked, and the files that it takes.

    Raises:
        FileFormatError: If the summary of the report is not beside the file, or is damaged.
    """
    old = _summary(file.with_name(command.numbers))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "again"
        try:
            command.run(**arguments, out=out, quiet=True)
        except typer.Exit:  # an infeasible problem ends so, and has a report
            if not (out / command.numbers).is_file():
                raise FileFormatError(
                    f"{file} cannot be made again: {provenance.name} refuses what it says it was "
                    "made with, for the reason above."
                ) from None
        again = out / command.numbers
        new, made = _summary(again), read_provenance(again)
    before, now = dict(_flat(old)), dict(_flat(new))
    differing = {
        name: f"was {before.get(name, 'not there')} and is {now.get(name, 'not there')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    }
    return Reproduction(provenance, tuple(differences(provenance, made)), differing, len(before))


def _summary(path: Path) -> dict[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise FileFormatError(f"{path} cannot be read: it holds no JSON object.")
    found.pop("provenance", None)
    return found


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and word of a summary under its dotted name."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _flat(entry, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _flat(entry, f"{name}[{number}]")
    else:
        yield name, value
