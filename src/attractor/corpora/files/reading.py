"""``load_corpus``: a corpus from arrays, or from text with a sentence a line."""

from __future__ import annotations

import os

from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.vocabulary import with_context_length
from attractor.files.contents import ARRAY_SUFFIXES
from attractor.files.reading import kinds, of_kind
from attractor.support.storage import existing_file


def load_corpus(
    path: str | os.PathLike[str],
    *,
    context_length: int | None = None,
    vocabulary: int | None = None,
) -> CorpusCase:
    """Reads a corpus, as ``load`` does.

    Args:
        path: Text with a sentence a line, or arrays.
        context_length: How many tokens before the label are the context; None for what the file
            says, or else all of them.
        vocabulary: How many of the most frequent tokens keep their names; the others become one.

    Raises:
        InvalidInputError: As ``load``, or if the file is one of token sequences or a head.
        FileFormatError: As ``load``.
    """
    file = existing_file(path, CorpusCase.missing)
    if file.suffix not in (*ARRAY_SUFFIXES, *(kind.suffix for kind in kinds())):
        from attractor.corpora.files.corpus_text import read_text

        return read_text(file, context_length=context_length, vocabulary=vocabulary)
    loaded = of_kind(CorpusCase, file, "has neither sentences nor contexts: it holds")
    if vocabulary is not None:
        loaded = loaded.with_vocabulary(vocabulary)
    if context_length is not None:
        loaded = loaded.replace(corpus=with_context_length(loaded.corpus, context_length))
    return loaded
