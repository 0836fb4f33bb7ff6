"""Reading files of token sequences, corpora, heads, regression tasks and classifier results."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from attractor.containers import StoredArrays, StoredTensors
from attractor.errors import InvalidInputError
from attractor.files.classifiers_layout import CLASSIFIERS_SUFFIX
from attractor.files.classifiers_loaded import LoadedClassifiers
from attractor.files.corpus_layout import CORPUS_TEXTS, MARKS
from attractor.files.corpus_loaded import LoadedCorpus
from attractor.files.existing import ANY, CORPUS, HEAD, TOKENS, existing_file
from attractor.files.head_layout import HEAD_MARKS
from attractor.files.head_loaded import LoadedHead
from attractor.files.layout import SUFFIXES, TEXTS
from attractor.files.loaded import LoadedTokens
from attractor.files.regression_layout import REGRESSION_MARKS
from attractor.files.regression_loaded import LoadedRegression

Loaded = LoadedTokens | LoadedCorpus | LoadedHead | LoadedRegression | LoadedClassifiers
"""What a file may hold."""


def load(path: str | os.PathLike[str]) -> Loaded:
    """Reads a file of token sequences, a corpus, a head, a regression task or classifier results.

    A ``.npz`` or ``.safetensors`` file is one of token sequences, of the layout in ``LAYOUT``; or
    a corpus if it has ``sentences`` or ``contexts``, of the layout in ``CORPUS_LAYOUT``; or a head
    with the laws of its tokens and queries if it has ``W_Q``, ``W_K`` or ``W_V``, of the layout in
    ``HEAD_LAYOUT``; or else a task of in-context regression if it has ``covariance`` or
    ``weight_variance``, of the layout in ``REGRESSION_LAYOUT``. A ``.nc`` file is NetCDF with the
    results of classifiers, of the layout in ``CLASSIFIERS_LAYOUT``. Anything else is text in UTF-8,
    one sentence a line. Nothing in a file is ever unpickled or imported.

    Raises:
        InvalidInputError: If the file does not exist, lacks an array, or an array cannot be used.
        FileFormatError: If the file is damaged or not of the kind its name says.
    """
    file = existing_file(path, ANY)
    # The reader of each kind is imported with what that kind is made of, and no other.
    if file.suffix == CLASSIFIERS_SUFFIX:
        from attractor.files.classifiers_reading import read_classifiers

        return read_classifiers(file)
    if file.suffix not in SUFFIXES:
        from attractor.files.corpus_text import read_text

        return read_text(file)
    arrays, texts = _read_arrays(file)
    if any(mark in arrays for mark in MARKS):
        from attractor.files.corpus_arrays import interpret_corpus

        return interpret_corpus(arrays, texts, file.name)
    if any(mark in arrays for mark in HEAD_MARKS):
        from attractor.files.head_arrays import interpret_head

        return interpret_head(arrays, file.name)
    if any(mark in arrays for mark in REGRESSION_MARKS):
        from attractor.files.regression_arrays import interpret_regression

        return interpret_regression(arrays, file.name)
    from attractor.files.interpretation import interpret

    return interpret(arrays, texts, file.name)


def load_tokens(path: str | os.PathLike[str]) -> LoadedTokens:
    """Reads a file of token sequences, as ``load`` does.

    Raises:
        InvalidInputError: As ``load``, or if the file is a corpus or a head.
        FileFormatError: As ``load``.
    """
    file = existing_file(path, TOKENS)
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(
            "file",
            f"{file.name} ends in neither .npz nor .safetensors",
            "Save the arrays with numpy.savez or safetensors.numpy.save_file; "
            "`attractor corpus` takes text",
        )
    loaded = load(file)
    if not isinstance(loaded, LoadedTokens):
        held, command = _other_kind(loaded)
        raise InvalidInputError(
            "file", f"{file.name} is {held}", f"Give token sequences, or run `{command}` on it"
        )
    return loaded


def load_corpus(
    path: str | os.PathLike[str],
    *,
    context_length: int | None = None,
    vocabulary: int | None = None,
) -> LoadedCorpus:
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
    file = existing_file(path, CORPUS)
    if file.suffix not in (*SUFFIXES, CLASSIFIERS_SUFFIX):
        from attractor.files.corpus_text import read_text

        return read_text(file, context_length=context_length, vocabulary=vocabulary)
    loaded = load(file)
    if not isinstance(loaded, LoadedCorpus):
        held, command = _other_kind(loaded)
        raise InvalidInputError(
            "file",
            f"{file.name} has neither sentences nor contexts: it holds {held}",
            f"Give a corpus, or run `{command}` on it",
        )
    if vocabulary is not None:
        from attractor.files.corpus_arrays import with_vocabulary

        loaded = with_vocabulary(loaded, vocabulary)
    if context_length is not None:
        from attractor.next_token.vocabulary import with_context_length

        corpus = with_context_length(loaded.corpus, context_length)
        loaded = dataclasses.replace(loaded, corpus=corpus)
    return loaded


def load_head(path: str | os.PathLike[str]) -> LoadedHead:
    """Reads an attention head with the laws of its tokens and queries, as ``load`` does.

    Raises:
        InvalidInputError: As ``load``, or if the file holds something else.
        FileFormatError: As ``load``.
    """
    file = existing_file(path, HEAD)
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(
            "file",
            f"{file.name} ends in neither .npz nor .safetensors",
            "Save the arrays with numpy.savez or safetensors.numpy.save_file",
        )
    loaded = load(file)
    if not isinstance(loaded, LoadedHead):
        held, command = _other_kind(loaded)
        raise InvalidInputError(
            "file",
            f"{file.name} has none of {', '.join(HEAD_MARKS)}: it holds {held}",
            f"Give an attention head, or run `{command}` on it",
        )
    return loaded


def _other_kind(loaded: Loaded) -> tuple[str, str]:
    """What a file holds in words, and the command for it."""
    if isinstance(loaded, LoadedClassifiers):
        return "results of classifiers", "attractor claims --data"
    if isinstance(loaded, LoadedRegression):
        return "a task of in-context regression", "attractor claims --data"
    if isinstance(loaded, LoadedHead):
        return "an attention head", "attractor prompt-length"
    if isinstance(loaded, LoadedCorpus):
        return "a corpus", "attractor corpus"
    return "token sequences", "attractor check"


def _read_arrays(file: Path) -> tuple[Mapping[str, np.ndarray], dict[str, str]]:
    """The arrays by name, none of them read yet, and the texts that are known."""
    if file.suffix == ".npz":
        stored = StoredArrays(file)
        texts = {name: stored.text(name) for name in TEXTS if name in stored}
        return stored.without(texts), texts
    tensors = StoredTensors(file)
    misplaced = next((name for name in TEXTS if name in tensors), None)
    if misplaced is not None:
        raise InvalidInputError(
            misplaced,
            f"{file.name} has an array of this name, which is a text",
            f"Put it into the metadata: save_file(..., metadata={{{misplaced!r}: '...'}})",
        )
    known = (*TEXTS, *CORPUS_TEXTS)
    return tensors, {name: tensors.metadata[name] for name in known if name in tensors.metadata}
