"""``attractor example``: files to start from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.application import COMMANDS
from attractor.cli.options import Json, Quiet, Seed, UnusedSeed
from attractor.cli.session import session
from attractor.cli.texts import ending, layout_lines
from attractor.files.contents import ARRAY_SUFFIXES
from attractor.files.token_file import LAYOUT
from attractor.prompts.files.head import HEAD_LAYOUT
from attractor.support.errors import InvalidInputError
from attractor.support.storage import OutputFile, OutputFolder, check_paths, write_file

SENTENCES = ("dogs chase cats .", "chase cats .", "cats . .", ". dogs chase")
"""A realizable corpus: subject, verb, object and period, as in arXiv 2409.17335."""

SAMPLED_TOKENS = 10_000
"""The number of tokens in a head file of samples."""

LAWS = ("gaussian", "mixture", "product", "empirical")
"""The laws of tokens in a head file to choose from."""

ArrayPath = Annotated[Path, typer.Argument(metavar="PATH", help="A .npz or .safetensors file.")]
Folder = Annotated[Path | None, typer.Option("--out", help="Folder that PATH is counted from.")]

app = typer.Typer(
    help=COMMANDS["example"],
    epilog=ending("example"),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def tokens(
    path: ArrayPath,
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a valid token file: 6 sequences of 8 random unit tokens in R^10, with a head."""
    with session("example tokens", as_json=as_json, quiet=quiet) as current:
        file = _destination(path, out)

        from attractor.attention import LinearHead
        from attractor.datasets import unit_tokens
        from attractor.files import save_tokens
        from attractor.tokens import Tokens

        drawn, heads = unit_tokens(6, 8, 10, seeds=[seed])
        assert drawn.labels is not None
        one = Tokens(drawn.keys[0], drawn.queries[0], drawn.labels[0])
        save_tokens(file, one, LinearHead(heads.weight[0]))
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}", f"It holds {one!r}:")
        held = {name: LAYOUT[name] for name in ("keys", "queries", "labels", "head")}
        current.say_lines(f"  {line}" for line in layout_lines(held))
        current.suggest(f"attractor check {_quoted(file)}")


@app.command()
def corpus(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A text file, or .npz or .safetensors.")
    ],
    docstrings: Annotated[
        bool,
        typer.Option(
            "--docstrings",
            help="Real language: the sentences of the standard library's docstrings.",
        ),
    ] = False,
    module: Annotated[
        list[str] | None,
        typer.Option(help="With --docstrings: only this module; may be given several times."),
    ] = None,
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a corpus: four short sentences that are realizable, or real language."""
    with session("example corpus", as_json=as_json, quiet=quiet) as current:
        if module and not docstrings:
            raise InvalidInputError("module", "it is for --docstrings alone", "Give both")
        file = _destination(path, out)

        from attractor.datasets import docstring_sentences

        sentences = (
            docstring_sentences(module)
            if docstrings
            else [sentence.split() for sentence in SENTENCES]
        )
        if file.suffix in ARRAY_SUFFIXES:
            from attractor.corpora import Corpus, save_corpus

            save_corpus(file, Corpus.from_sentences(sentences))
        else:
            text = "".join(f"{' '.join(sentence)}\n" for sentence in sentences)
            write_file(file, text)
        current.result(file=str(file.absolute()), sentences=len(sentences), seed=seed)
        current.say(f"Wrote {file.absolute()}", f"It holds {len(sentences):,} sentences.")
        options = " --vocabulary 50 --context 3" if docstrings else ""
        current.suggest(f"attractor corpus {_quoted(file)}{options} --train")


@app.command()
def head(
    path: ArrayPath,
    samples: Annotated[
        bool,
        typer.Option("--samples", help="Tokens sampled from a sphere, in place of Gaussian ones."),
    ] = False,
    law: Annotated[str, typer.Option(help=f"The law of the tokens: {', '.join(LAWS)}.")] = LAWS[0],
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a valid head file: a random attention head in R^8, with its tokens and queries."""
    with session("example head", as_json=as_json, quiet=quiet) as current:
        file = _destination(path, out)

        from attractor.files import load_head
        from attractor.prompts import random_head, save_head

        count = SAMPLED_TOKENS if samples else None
        save_head(file, *random_head(samples=count, law=law, seed=seed))
        loaded = load_head(file)
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}", f"It holds {loaded.size_in_words}:")
        entries = loaded.to_arrays()[0]
        shown = {name: what for name, what in HEAD_LAYOUT.items() if name in entries}
        current.say_lines(f"  {line}" for line in layout_lines(shown))
        current.suggest(
            f"attractor prompt-length {_quoted(file)} --error 0.1 --out prompt-length-report"
        )


@app.command()
def heads(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A .nc file.")],
    documents: Annotated[int, typer.Option(min=2, help="Sentences, with a query each.")] = 240,
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write heads as captured from a model, three layers of four, with known rules."""
    with session("example heads", as_json=as_json, quiet=quiet) as current:
        file = _destination(path, out)
        if file.suffix != ".nc":
            raise InvalidInputError("path", f"{file} is no .nc file", "Give a name like heads.nc")

        from attractor.heads import planted_heads
        from attractor.heads.captured.planted import PLANTED

        captured = planted_heads(documents, seed=seed)
        captured.save(file)
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}")
        current.say(f"It holds heads on {documents:,} sentences. What each head follows:")
        current.list_names(
            {
                f"  {layer}.{head}": rule
                for layer, rules in enumerate(PLANTED)
                for head, rule in enumerate(rules)
            }
        )
        current.suggest(f"attractor audit {_quoted(file)} --out audit-report")


@app.command()
def sweep(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A .toml file.")],
    out: Folder = None,
    seed: UnusedSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a plan of a sweep: three optimizers at five learning rates, every key explained."""
    with session("example sweep", as_json=as_json, quiet=quiet) as current:
        file = _destination(path, out)
        if file.suffix != ".toml":
            raise InvalidInputError(
                "path", f"{file} is no .toml file", "Give a name like plan.toml"
            )

        from attractor.maps.sweeps import example_plan

        write_file(file, example_plan(file.name))
        current.result(file=str(file.absolute()))
        current.say(f"Wrote {file.absolute()}")
        current.suggest(
            f"attractor sweep {_quoted(file)} --store {_quoted(file.with_suffix('.zarr'))}"
        )


def _destination(path: Path, folder: Path | None) -> Path:
    """The file to write, checked."""
    file = path if folder is None else folder / path
    check_paths([OutputFolder("out", folder), OutputFile("path", file)])
    return file


def _quoted(path: Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))
