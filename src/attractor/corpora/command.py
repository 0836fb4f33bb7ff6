"""What a corpus hides, and where training on it goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor import corpora
from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Report, Seed, recorded, report_output
from attractor.cli.session import session
from attractor.cli.texts import layout_block
from attractor.corpora.corpus import MOST_TRAINED, STEPS
from attractor.corpora.embeddings import parse_embedding
from attractor.corpora.files.corpus import CORPUS_LAYOUT, CorpusCase
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, check_paths, existing_file


def corpus(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Text, or arrays in .npz or .safetensors.")
    ],
    out: Report = None,
    context: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens before the label in a context; default: all of them."),
    ] = None,
    vocabulary: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tokens that keep their names; the rarer ones become one. With --train at most "
            f"{MOST_TRAINED - 1}.",
        ),
    ] = None,
    embedding: Annotated[
        str | None,
        typer.Option(
            help="Vectors of tokens: one-hot, or gaussian:D for random ones in D dimensions; "
            "default: those of the file, or one-hot."
        ),
    ] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Train on the corpus, or on the part that allows it.")
    ] = False,
    steps: Annotated[
        int, typer.Option(min=1, help="With --train: steps of each stage of training.")
    ] = STEPS,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reads a corpus, finds its structure, trains, and reports."""
    arguments = recorded(locals())
    with session("corpus", as_json=as_json, quiet=quiet, out=[out]) as current:
        check_paths([report_output("corpus", out)], [Input("FILE", file)])
        existing_file(file, CorpusCase.missing)
        if train and vocabulary is not None and vocabulary >= MOST_TRAINED:
            raise InvalidInputError(
                "vocabulary",
                f"training takes at most {MOST_TRAINED - 1} tokens and one for all others, not "
                f"{vocabulary}",
                f"Give --vocabulary {MOST_TRAINED - 1}, or leave out --train",
            )

        if embedding is not None:
            parse_embedding(embedding)
        loaded = corpora.load_corpus(file, context_length=context, vocabulary=vocabulary)
        whole = loaded.corpus
        if train and whole.vocabulary_size > MOST_TRAINED:
            current.complain(
                "warning",
                f"the vocabulary has {whole.vocabulary_size:,} tokens, and training takes at most "
                f"{MOST_TRAINED - 1} and one for all others: no more than a smaller part is "
                f"trained on. To train on all, give --vocabulary {MOST_TRAINED - 1}.",
            )

        from attractor.corpora.looking import look  # which loads JAX

        look(
            current, loaded, file, embedding, out, seed, arguments, train=train, steps=steps
        )  # fmt: skip


COMMAND = Command(
    corpus,
    "Find the collocation and the orders that a corpus hides, and check what next-"
    "token theory assumes of it; with --train, train on it and say where it went; "
    "with --out write a report with pictures.",
    {
        "attractor corpus corpus.txt --train": 4,
        "attractor corpus text.txt --vocabulary 50 --context 3 --train": 34,
    },
    (
        "FILE is text in UTF-8, one sentence a line with white space between tokens, where every "
        "prefix with the token after it is a sample; or .npz or .safetensors with these arrays.",
        layout_block(CORPUS_LAYOUT),
        "`attractor example corpus corpus.txt` writes such a file. Exit codes: 0 done, whatever "
        "was found; 2 bad input, or --train and nothing that could be trained; 130 interrupted.",
    ),
)
