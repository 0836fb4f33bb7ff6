"""Writing corpus files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from attractor.checks import check_kinds, check_path
from attractor.errors import InvalidInputError
from attractor.files.arrays_writing import write_arrays
from attractor.files.corpus_arrays import interpret_corpus
from attractor.files.corpus_layout import PADDING
from attractor.files.layout import SUFFIXES
from attractor.next_token import Corpus
from attractor.next_token.embeddings import check_embeddings
from attractor.precision import as_float64

MOST_ENTRIES = 2**28
"""Entries of the padded array: one sentence far longer than the others makes it large."""


def save_corpus(
    path: str | os.PathLike[str], corpus: Corpus, embeddings: Any | None = None
) -> None:
    """Writes a corpus so that ``load`` gives the same samples.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        corpus: The corpus. Sentences of one token hold no sample and are left out.
        embeddings: ``(V, d)``, the vector of every token.

    Raises:
        InvalidInputError: If the name ends in anything else, the embeddings do not fit, or the
            longest sentence is too long for a rectangular array; nothing is written then.
    """
    check_kinds(corpus=(corpus, Corpus))
    path = check_path("path", path)
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(
            "path", f"{file.name} ends in neither .npz nor .safetensors", "Choose one of the two"
        )
    arrays = _arrays(corpus)
    if embeddings is not None:
        arrays["embeddings"] = check_embeddings(
            as_float64("embeddings", embeddings), corpus.vocabulary_size
        )
    names = json.dumps(corpus.vocabulary)
    interpret_corpus(arrays, {"vocabulary": names}, file.name)
    if file.suffix == ".npz":
        write_arrays(file, arrays | {"vocabulary": np.array(corpus.vocabulary, dtype=np.str_)})
    else:
        write_arrays(file, arrays, {"vocabulary": names})


def _arrays(corpus: Corpus) -> dict[str, np.ndarray]:
    sampled = corpus.lengths > 1
    lengths = corpus.lengths[sampled]
    if len(lengths) * int(lengths.max()) > MOST_ENTRIES:
        raise InvalidInputError(
            "corpus",
            f"{len(lengths):,} sentences of up to {lengths.max():,} tokens are too many for one "
            "rectangular array",
            "Cut long sentences, or write text with a sentence a line",
        )
    rows = np.full((len(lengths), int(lengths.max())), PADDING)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = corpus.tokens[sampled[corpus.sentence_of]]
    if corpus.every_prefix:
        arrays = {"sentences": rows}
    else:
        last = (np.arange(len(rows)), lengths - 1)
        arrays = {"labels": rows[last]}
        rows[last] = PADDING
        arrays["contexts"] = rows[:, :-1]
    counts = corpus.counts[sampled]
    if (counts != 1).any():
        arrays["counts"] = counts
    if corpus.context_length is not None:
        arrays["context_length"] = np.array(corpus.context_length)
    return arrays
