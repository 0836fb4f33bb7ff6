"""``attractor reproduce``: a result run again from its own file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from attractor.cli.options import Json, Quiet, UnusedSeed
from attractor.cli.session import Session, session
from attractor.cli.texts import ending
from attractor.errors import InvalidInputError
from attractor.storage import existing_file

if TYPE_CHECKING:
    from attractor.papers.reproduction import Reproduction
    from attractor.provenance import Provenance

EPILOG = ending(
    "reproduce",
    "FILE is any file that Attractor wrote for it: a picture, its data, a page or its JSON. It "
    "says which version made it, on which data, with which seeds and settings.",
    "A file of somebody else's is safe to give: it chooses among what Attractor itself can run, "
    "within ranges, and that is printed before it begins. It never names code or a path: data are "
    "read from --data, code from --optimizer and --norm, and nothing is kept. How long it takes is "
    "the file's choice; Ctrl-C ends it.",
    "Exit codes: 0 done, whether or not anything differs; 2 bad input; 130 interrupted.",
)


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
    as_json: Json = False,
    quiet: Quiet = False,
    seed: UnusedSeed = 0,
) -> None:
    """Runs a result again and compares."""
    with session("reproduce", as_json=as_json, quiet=quiet) as current:
        existing_file(file)

        from attractor.provenance import read_provenance

        provenance = read_provenance(file)
        current.say(
            _printable(
                f"{file.name}: {provenance.kind} {provenance.name}, made by Attractor "
                f"{provenance.version} on {provenance.platform}"
            )
        )
        again = {"figure": _figure, "claim": _claims, "report": _report}[provenance.kind]
        asked = _Request(file, provenance, data or [], checkpoints or [], optimizer, norm, current)
        found = again(asked)
        same = "all the same" if found.same else f"{len(found.differing)} differ"
        current.say(f"Compared {found.compared} results: {same}.")
        current.say(*(_printable(f"  {name}: {words}") for name, words in found.differing.items()))
        if found.changed:
            current.say("What has changed since:")
            current.say(*(_printable(f"  {words}") for words in found.changed))
        current.result(
            kind=provenance.kind,
            name=provenance.name,
            same=found.same,
            compared=found.compared,
            differing=dict(found.differing),
            changed=list(found.changed),
        )


class _Request(NamedTuple):
    """What to run again.

    Attributes:
        file: A file of the result.
        provenance: What the file says of it.
        data: What the result was made from.
        checkpoints: Heads captured from earlier checkpoints.
        optimizers: Optimizers of the user's own, or None.
        norms: Norms of the user's own, or None.
        session: Where to print.
    """

    file: Path
    provenance: Provenance
    data: list[Path]
    checkpoints: list[Path]
    optimizers: list[str] | None
    norms: list[str] | None
    session: Session


def _figure(request: _Request) -> Reproduction:
    from attractor.cli.reproducible import FIGURE
    from attractor.papers.registry import get_figure
    from attractor.papers.reproduction import reproduce_figure
    from attractor.provenance.arguments import check_arguments

    file, provenance, data, current = _without_code(request)
    figure = get_figure(provenance.name)
    arguments = check_arguments(provenance, FIGURE, may_lack=["source"])
    took = arguments.pop("source", None)
    source = _one(data, "data of yours" if took is not None else "")
    _announce(f"figure {figure.name}", arguments, current)
    return reproduce_figure(
        file, provenance, arguments | {"source": source}, progress=current.progress
    )


def _claims(request: _Request) -> Reproduction:
    from attractor.cli.claims import claims_provenance
    from attractor.files import load
    from attractor.papers.registry import all_claims
    from attractor.papers.reproduction import reproduce_claims
    from attractor.provenance.arguments import SEED, check_arguments, several, truth, word

    file, provenance, data, current = _without_code(request)
    known = all_claims()
    names = several(word(*known), len(known))
    arguments = check_arguments(provenance, {"names": names, "data": truth(), "seed": SEED})
    source = _one(data, "a file of yours" if arguments["data"] else "")
    _announce("claims", arguments, current)
    cases = None if source is None else load(source).data_sets()
    made = claims_provenance(arguments["names"], cases, arguments["seed"])
    return reproduce_claims(file, provenance, cases, made)


def _report(request: _Request) -> Reproduction:
    from attractor.cli.reproducible import report_arguments, reproduce_report

    file, provenance, data, checkpoints, optimizers, norms, current = request
    command, arguments = report_arguments(provenance, optimizers, norms)
    kinds = {
        "": "",
        "run": "a saved run",
        "store": "the store of a sweep",
        "model": "heads captured from a model",
        "file": "a file of yours",
    }
    if command.takes_second:
        if len(data) != 2:
            raise InvalidInputError(
                "data",
                f"it was made from two results, and {len(data)} are given",
                "Give --data FIRST --data SECOND",
            )
        taken: dict[str, Any] = {command.takes: data[0], command.takes_second: data[1]}
    else:
        source = _one(data, kinds[command.takes])
        taken = {command.takes: source} if command.takes else {}
    count = arguments.get(command.takes_more, 0)
    if len(checkpoints) != count:
        raise InvalidInputError(
            "checkpoints",
            f"it was made from {count} earlier checkpoints, and {len(checkpoints)} are given",
            "Give the file of each with --checkpoints, in their order" if count else "Leave it out",
        )
    _announce(f"attractor {provenance.name}", arguments, current)
    if command.takes_more:
        taken[command.takes_more] = checkpoints or None
    return reproduce_report(file, provenance, command, arguments | taken)


def _without_code(request: _Request) -> tuple[Path, Provenance, list[Path], Session]:
    """A request of what is made from data alone: checkpoints and code are refused."""
    file, provenance, data, *of_reports, current = request
    for option, given in zip(("checkpoints", "optimizer", "norm"), of_reports, strict=True):
        _check_given(option, given, "")
    return file, provenance, data, current


def _one(data: list[Path], made_from: str) -> Path | None:
    """The one file that a result was made from, if it was made from any."""
    _check_given("data", data, made_from)
    if len(data) > 1:
        raise InvalidInputError("data", f"{len(data)} are given", "Give the one it was made from")
    return data[0] if data else None


def _check_given(argument: str, given: Any, made_from: str) -> None:
    """Refuses what is given and not wanted, and what is wanted and not given."""
    if given and not made_from:
        raise InvalidInputError(argument, "the result was made with none of yours", "Leave it out")
    if made_from and not given:
        raise InvalidInputError(
            argument, f"it was made from {made_from}", f"Give that file with --{argument}"
        )


def _announce(what: str, arguments: Mapping[str, Any], current: Session) -> None:
    """Says what is about to be run: nobody but the file has chosen it."""
    chosen = ", ".join(f"{name} {value}" for name, value in arguments.items() if value is not None)
    current.say(_printable(f"Runs again: {what}" + (f" ({chosen})" if chosen else "")))


def _printable(line: str) -> str:
    """A line that came out of a file, without what steers a terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )
