"""``attractor example corpus``: short sentences, or docstrings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor import corpora
from attractor.cli.example_files import Folder, destination, quoted
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.files.contents import ARRAY_SUFFIXES
from attractor.support.errors import InvalidInputError
from attractor.support.storage import write_file

SENTENCES = ("dogs chase cats .", "chase cats .", "cats . .", ". dogs chase")
"""A realizable corpus: subject, verb, object and period, as in arXiv 2409.17335."""


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
        file = destination(path, out)

        from attractor.datasets import docstring_sentences

        sentences = (
            docstring_sentences(module)
            if docstrings
            else [sentence.split() for sentence in SENTENCES]
        )
        if file.suffix in ARRAY_SUFFIXES:
            corpora.save_corpus(file, corpora.Corpus.from_sentences(sentences))
        else:
            text = "".join(f"{' '.join(sentence)}\n" for sentence in sentences)
            write_file(file, text)
        current.result(file=str(file.absolute()), sentences=len(sentences), seed=seed)
        current.say(f"Wrote {file.absolute()}", f"It holds {len(sentences):,} sentences.")
        options = " --vocabulary 50 --context 3" if docstrings else ""
        current.suggest(f"attractor corpus {quoted(file)}{options} --train")
