"""What the heads of a pretrained transformer select."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attractor import heads as room, results
from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Report, Seed, recorded, report_output
from attractor.cli.session import LONG, session
from attractor.files.netcdf_kinds import CAPTURED, refuse_other_kinds
from attractor.heads.captured.rows import LEAST_DOCUMENTS
from attractor.heads.inputs import ModelShape, check_documents, read_documents
from attractor.heads.statistics.multiple import check_draws, fewest_draws
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.support.checks import naming
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, OutputFolder, check_paths, kept_beside
from attractor.support.storage.markers import AUDIT, CHECKPOINT

if TYPE_CHECKING:
    import xarray as xr

    from attractor.heads import Captured

DOCUMENTS, LENGTH, DRAWS, ALPHA = 200, 64, 99, 0.05
NORMS = ("frobenius", "nuclear")
"""The norms that are asked for where none is given."""
_LOOKED_AT = 20
"""Texts read for each document wanted: some are too short, or there twice."""

_MANY = 72
"""Heads of a model, where it is not known how many: six layers of twelve."""
_OF_MODEL, _OF_HEAD = 12.0, 1.5
"""Seconds on two cores for loading and capturing, and for a head with the settings above."""

_STATEMENT = "direction of attention under gradient descent"
_MOST_LAYERS = 10_000


def audit(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="The folder of a model, or a .nc file of heads."),
    ],
    texts: Annotated[
        Path | None,
        typer.Argument(metavar="TEXTS", help="A document a line, or a folder of .txt files."),
    ] = None,
    documents: Annotated[
        int | None,
        typer.Option(min=2, help=f"Documents to take, the first ones; default: {DOCUMENTS}."),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(min=5, help=f"Tokens after which a text is cut; default: {LENGTH}."),
    ] = None,
    layers: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Layers to audit, such as 0,3-5.")
    ] = None,
    heads: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Heads to audit, by layer and number: 2.8,3.1."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Null draws of each head.")] = DRAWS,
    alpha: Annotated[
        float, typer.Option(help="How often chance may pass for more, for all heads together.")
    ] = ALPHA,
    training_texts: Annotated[
        bool,
        typer.Option(
            "--training-texts",
            help="TEXTS are what the model was trained on: ask for margin solutions, too.",
        ),
    ] = False,
    norm: Annotated[
        list[str] | None,
        typer.Option(
            help="With --training-texts or --checkpoints: a norm of margin solutions; may be given "
            f"several times. Default: {' and '.join(NORMS)}; of checkpoints {NORMS[0]}."
        ),
    ] = None,
    checkpoints: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="An earlier checkpoint of the model, a folder or .nc file as MODEL is, captured "
            "with the same texts: ask which way heads moved; may be given several times.",
        ),
    ] = None,
    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="Train heads of these sizes to margin solutions, audit them too, and say how many "
            "are found; some minutes.",
        ),
    ] = False,
    sink_positions: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="First tokens that are no content; default: 1 where attention is causal, else 0.",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder to go on from if interrupted; new or of this call."),
    ] = None,
    out: Report = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Captures heads, audits them, and reports."""
    given = dict(locals())
    arguments = _recorded(given)
    with session("audit", as_json=as_json, quiet=quiet, out=[out]) as current:
        report = report_output("audit", out, AUDIT)
        inputs = [Input("MODEL", model), Input("TEXTS", texts)]
        inputs += [Input("checkpoints", one) for one in checkpoints or ()]
        check_paths([report, OutputFolder("store", store, CHECKPOINT)], inputs)
        captured_before = _check_source(model, texts, documents, length)
        for one in checkpoints or ():
            _check_checkpoint(one, captured_before)
        if norm and not (training_texts or checkpoints):
            raise InvalidInputError(
                "norm",
                "margin solutions are not asked for",
                "Give --training-texts or --checkpoints with it",
            )
        wanted_layers = None if layers is None else parse_layers(layers)
        wanted_heads = None if heads is None else parse_heads(heads)
        if wanted_layers is not None and wanted_heads is not None:
            raise InvalidInputError("heads", "layers are given, too", "Give one of the two")
        shape = ModelShape(None, None) if captured_before else ModelShape.of(model)
        shape.check(wanted_layers, wanted_heads)

        check_draws(draws, alpha)

        from attractor.heads.audit.summary import summary
        from attractor.heads.audit.words import control_sentence, sentences

        with contextlib.ExitStack() as kept:
            files = [*(checkpoints or ()), model]
            place = kept.enter_context(kept_beside(out or store, _asked(given, files)))
            kept.enter_context(current.going_on(place))
            if store is None and place is not None:
                store = place / "heads"
            if not captured_before:
                assert texts is not None
                if place is None:
                    place = Path(kept.enter_context(tempfile.TemporaryDirectory()))
                of_heads = None if wanted_heads is None else sorted({n for n, _ in wanted_heads})
                count = shape.count(wanted_layers, wanted_heads)
                work = expected_work(count, documents or DOCUMENTS, length or LENGTH, draws)
                current.takes(*work, out)
                if work[1] >= LONG:
                    current.say(
                        "Interrupted, the same command goes on from what is done."
                        if out or store
                        else "Interrupted, nothing is kept without --out or --store."
                    )
                shown = read_documents(texts, _LOOKED_AT * (documents or DOCUMENTS))
                if len(shown) < 2 * LEAST_DOCUMENTS:
                    current.say(
                        f"{texts.name} has {len(shown)} documents. A head's pairing is tested from "
                        f"{2 * LEAST_DOCUMENTS} on; give more, or read what heads select alone."
                    )
                models, files = files, [place / _capture_name(n, files) for n in range(len(files))]
                for folder, file in zip(models, files, strict=True):
                    if file.exists():
                        current.say(f"Going on: {folder.name} is captured.")
                        continue
                    _capture(
                        file,
                        folder,
                        shown,
                        "layers" if wanted_heads is None else "heads",
                        documents=documents or DOCUMENTS,
                        length=length or LENGTH,
                        layers=wanted_layers or of_heads,
                        sink_positions=sink_positions,
                        seed=seed,
                        progress=current.progress,
                    )
            captures = [room.load_captured(file) for file in files]
            captured = captures[-1]
            moved = None
            if checkpoints:
                moved = room.audit_checkpoints(
                    captures,
                    draws=draws,
                    alpha=alpha,
                    layers=wanted_layers,
                    heads=wanted_heads,
                    norms=norm or NORMS[:1],
                    seed=seed,
                    progress=current.progress,
                    store=store,
                )
            margins = (
                {"training_texts": True, "norms": tuple(norm or NORMS)} if training_texts else {}
            )
            found = room.audit_heads(
                captured,
                draws=draws,
                alpha=alpha,
                layers=wanted_layers,
                heads=wanted_heads,
                sink_positions=sink_positions,
                seed=seed,
                progress=current.progress,
                store=store,
                **margins,
            )
            current.show(found)
            current.say(*sentences(found.data)[1:])
            if control:
                current.takes("The positive control", 60, out)
            controlled = _control(captured, alpha, seed, current.progress) if control else None
            if controlled is not None:
                current.say(control_sentence(controlled))
            if moved is not None:
                current.show(moved)
            if out is None:
                current.result(**summary(found, controlled, moved))
                current.unwritten()
                return
            written = room.page.write_audit_report(
                out,
                found,
                captured,
                source=_source(model, texts, captured, checkpoints or ()),
                provenance=_provenance(arguments, files, captured, seed),
                captures=() if captured_before else files,
                control=controlled,
                checkpoints=moved,
                progress=current.progress,
            )
            current.wrote("report", out / room.page.PAGE, **written)


def parse_layers(text: str) -> list[int]:
    """The numbers of layers in a text such as ``0,3-5``.

    Raises:
        InvalidInputError: If it is none.
    """
    numbers: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if last < first or last - first > _MOST_LAYERS:
            raise InvalidInputError(
                "layers", f"{text!r} is no list of layers", "Give numbers, such as 0,3-5"
            )
        numbers += range(first, last + 1)
    return sorted(set(numbers))


def parse_heads(text: str) -> list[tuple[int, int]]:
    """Layers and numbers of heads in a text such as ``2.8,3.1``.

    Raises:
        InvalidInputError: If it is none.
    """
    found = [re.fullmatch(r"\s*(\d{1,6})\.(\d{1,6})\s*", part) for part in text.split(",")]
    if not all(found):
        raise InvalidInputError(
            "heads", f"{text!r} is no list of heads", "Give layer.head, such as 2.8,3.1"
        )
    return sorted({(int(one[1]), int(one[2])) for one in found if one})


def expected_work(heads: int | None, documents: int, length: int, draws: int) -> tuple[str, float]:
    """Capture and audit in words, and the seconds they take: with tokens, and heads with draws.

    Args:
        heads: How many; None where that is not known.
        documents: Documents.
        length: Tokens of each.
        draws: Null draws of each head.
    """
    tokens = documents * length / (DOCUMENTS * LENGTH)
    seconds = tokens * (_OF_MODEL + _OF_HEAD * (heads or _MANY) * (draws + 1) / (DRAWS + 1))
    what = f"{heads:,} head{'s' * (heads != 1)}" if heads else f"a model of {_MANY} heads"
    return f"Capture and audit of {what}", seconds


def _recorded(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the audit; those of a capture are in the file of what was captured."""
    left_out = ("model", "texts", "documents", "length", "store")
    kept = {key: value for key, value in recorded(given).items() if key not in left_out}
    return kept | {"checkpoints": len(given["checkpoints"] or ())}


def _check_source(
    model: Path, texts: Path | None, documents: int | None, length: int | None
) -> bool:
    """Whether heads were captured before; refuses what is neither a file of them nor a model."""
    if model.suffix == ".nc" and not model.is_dir():
        if not model.is_file():
            raise InvalidInputError(
                "MODEL",
                f"there is no file {model}",
                "Run `attractor example heads heads.nc` for one to start from",
            )
        refuse_other_kinds("MODEL", model, CAPTURED)
        given = {"TEXTS": texts, "documents": documents, "length": length}
        for argument, value in given.items():
            if value is not None:
                raise InvalidInputError(
                    argument, f"{model} holds heads that are captured already", "Leave it out"
                )
        return True
    if not model.is_dir():
        what = "a file of another kind" if model.exists() else "no folder"
        raise InvalidInputError(
            "MODEL",
            f"{model} is {what}; names of a hub are not looked up, as nothing is downloaded",
            "Give a .nc file of captured heads, or the folder that model.save_pretrained and "
            "tokenizer.save_pretrained wrote, or that `hf download NAME --local-dir FOLDER` did",
        )
    if not (model / "config.json").is_file():
        raise InvalidInputError(
            "MODEL",
            f"the folder {model} has no config.json",
            "Give the folder that model.save_pretrained wrote",
        )
    if texts is None:
        raise InvalidInputError(
            "TEXTS",
            "a model needs texts to be looked at on",
            "Give a file with a document a line, or a folder of .txt files",
        )
    check_documents(texts)
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise InvalidInputError(
                "MODEL",
                f"{package} is not installed, which models are run by",
                "Run `pip install 'attractor[transformers]'`; or capture where it is installed, "
                "and give the .nc file, which needs neither",
            )
    return False


def _check_checkpoint(checkpoint: Path, captured_before: bool) -> None:
    """Refuses a checkpoint that is not what MODEL is, a file of captured heads or a folder."""
    if captured_before:
        if checkpoint.suffix != ".nc" or not checkpoint.is_file():
            raise InvalidInputError(
                "checkpoints",
                f"{checkpoint} is no .nc file, as MODEL is",
                "Give heads captured from the checkpoint with the same texts",
            )
    elif not (checkpoint / "config.json").is_file():
        raise InvalidInputError(
            "checkpoints",
            f"{checkpoint} is no folder of a model, as MODEL is",
            "Give the folder that model.save_pretrained wrote",
        )


def _asked(given: dict[str, Any], files: Sequence[Path]) -> dict[str, Any]:
    """All that captures and answers depend on: arguments, versions, and which files are read."""
    from attractor.cli.provenance import code_of

    read = [*files, *([given["texts"]] if given["texts"] is not None else [])]
    inside = [sorted(one.rglob("*")) if one.is_dir() else [one] for one in read]
    stamps = [
        (str(file.absolute()), stat.st_size, stat.st_mtime_ns)
        for one in inside
        for file in one
        if file.is_file() and (stat := file.stat())
    ]
    unread = ("out", "store", "as_json", "quiet")
    asked = {name: value for name, value in given.items() if name not in unread}
    return {**asked, "code": code_of(()), "files": stamps}


def _capture_name(number: int, files: list[Path]) -> str:
    """The name of a file of captured heads, the last of which are those of the model itself."""
    return "heads.nc" if number == len(files) - 1 else f"checkpoint_{number}.nc"


def _capture(file: Path, model: Path, texts: list[str], asked: str, **options: Any) -> None:
    """Captures heads; errors are of what the command was given, ``asked`` that of layers."""
    from attractor.heads.capture import capture_heads

    with naming(model="MODEL", tokenizer="MODEL", texts="TEXTS", layers=asked):
        capture_heads(model, None, texts, path=file, **options)


def _control(captured: Captured, alpha: float, seed: int, progress: bool) -> xr.Dataset:
    """Heads of known place, in a model of transformers where there is one, else as arrays."""
    load = None
    if all(map(importlib.util.find_spec, ("torch", "transformers"))):
        from attractor.heads.capture._capture_heads import captured_in_bert as load
    return room.positive_control(
        room.ControlSizes.of(captured), draws=fewest_draws(alpha), alpha=alpha, load=load,
        seed=seed, progress=progress,
    )  # fmt: skip


def _source(
    model: Path, texts: Path | None, captured: Captured, checkpoints: Sequence[Path]
) -> str:
    documents = len(set(captured.document.tolist()))
    where = f"{model.name} on {texts.name}" if texts is not None else model.name
    layers = captured.layers
    before = [f"{number} {one.name}" for number, one in enumerate(checkpoints)]
    since = f"; checkpoints {', '.join(before)}, {len(before)} {model.name}" if before else ""
    return (
        f"{where}: {len(layers):,} layer{'s' * (len(layers) != 1)}, {documents:,} documents, "
        f"{len(captured.document):,} queries{since}"
    )


def _provenance(
    arguments: dict[str, Any], files: Sequence[Path], captured: Captured, seed: int
) -> Any:
    digests = []
    for file in files:
        with file.open("rb") as stream:
            digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
    digest = digests[0]
    if len(digests) > 1:
        digest = hashlib.sha256(" ".join(digests).encode()).hexdigest()
    return results.provenance.Provenance.record(
        "report",
        "audit",
        arguments={**arguments, "data": True},
        data=digest,
        seeds=[seed],
        bibtex=[TRANSFORMERS_AS_SVMS.bibtex(_STATEMENT)]
        if arguments["training_texts"] or arguments["checkpoints"]
        else (),
        settings={f"captured {key}": value for key, value in captured.origin.items()},
    )


COMMAND = Command(
    audit,
    "Say what the heads of a pretrained transformer select on texts, which of them "
    "pair keys with queries in a way that random pairings do not; with --out write a "
    "report with pictures.",
    {
        "attractor audit heads.nc --out audit-report": 11,
        "attractor audit heads.nc --control": 65,
        "attractor audit MODEL_FOLDER texts.txt --out audit-report": 120,
    },
    (
        "MODEL is the folder that a model of transformers and its tokenizer were saved in, TEXTS "
        "a file with a document a line or a folder of .txt files; or MODEL is a .nc file of heads"
        " captured before, and nothing follows it. No model is downloaded, and no code of a "
        "folder is run.",
        "A rule is learned from what a head selects in half of the documents and has to predict "
        "what it selects in the others; so are rules for the head with its pairing of queries and"
        " keys drawn at random. A head that does better than all draws of all heads has a pairing"
        " that is more than chance. Whether heads are at the margin solution that training goes "
        "to is asked with --training-texts alone: on other texts even a head exactly there does "
        "not show it; --control says how sure that question is of its answer on heads of these "
        "sizes. With --checkpoints, it is said of every head whether it grew or shrank since, and"
        " whether the rest of its change goes toward the margin solution of what it selects now, "
        "further than changes of heads turned at random.",
        "With --out, the report keeps what was captured, capture/heads.nc, so that `attractor "
        "audit` and `attractor reproduce --data` go on from it without the model. `attractor "
        "example heads heads.nc` writes heads with known rules to start from. Exit codes: 0 done,"
        " whatever was found; 2 bad input; 130 interrupted.",
    ),
)
