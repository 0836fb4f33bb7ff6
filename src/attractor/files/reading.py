"""Reading files of token sequences and corpora."""

from __future__ import annotations

import dataclasses
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from attractor.errors import FileFormatError, InvalidInputError
from attractor.files.corpus_arrays import interpret_corpus, with_vocabulary
from attractor.files.corpus_layout import CORPUS_TEXTS, MARKS
from attractor.files.corpus_loaded import LoadedCorpus
from attractor.files.corpus_text import read_text
from attractor.files.interpretation import interpret
from attractor.files.layout import SUFFIXES, TEXTS
from attractor.files.loaded import LoadedTokens
from attractor.next_token.vocabulary import with_context_length


def load(path: str | os.PathLike[str]) -> LoadedTokens | LoadedCorpus:
    """Reads a file of token sequences or a corpus.

    A ``.npz`` or ``.safetensors`` file is one of token sequences, of the layout in ``LAYOUT``, or
    a corpus if it has ``sentences`` or ``contexts``, of the layout in ``CORPUS_LAYOUT``. Anything
    else is text in UTF-8, one sentence a line. Nothing in a file is ever unpickled or imported.

    Raises:
        InvalidInputError: If the file does not exist, lacks an array, or an array cannot be used.
        FileFormatError: If the file is damaged or not of the kind its name says.
    """
    file = _existing(path, "Give a .npz or .safetensors file, or text with a sentence a line")
    if file.suffix not in SUFFIXES:
        return read_text(file)
    arrays, texts = _read_arrays(file)
    if any(mark in arrays for mark in MARKS):
        return interpret_corpus(arrays, texts, file.name)
    return interpret(arrays, texts, file.name)


def load_tokens(path: str | os.PathLike[str]) -> LoadedTokens:
    """Reads a file of token sequences, as ``load`` does.

    Raises:
        InvalidInputError: As ``load``, or if the file is a corpus.
        FileFormatError: As ``load``.
    """
    file = _existing(
        path, "Give a .npz or .safetensors file; `attractor example tokens PATH` writes one"
    )
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(
            "file",
            f"{file.name} ends in neither .npz nor .safetensors",
            "Save the arrays with numpy.savez or safetensors.numpy.save_file; "
            "`attractor corpus` takes text",
        )
    loaded = load(file)
    if isinstance(loaded, LoadedCorpus):
        raise InvalidInputError(
            "file",
            f"{file.name} is a corpus",
            "Give token sequences, or run `attractor corpus` on it",
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
        InvalidInputError: As ``load``, or if the file is one of token sequences.
        FileFormatError: As ``load``.
    """
    file = _existing(
        path, "Give text with a sentence a line; `attractor example corpus PATH` writes one"
    )
    if file.suffix not in SUFFIXES:
        return read_text(file, context_length=context_length, vocabulary=vocabulary)
    loaded = load(file)
    if isinstance(loaded, LoadedTokens):
        raise InvalidInputError(
            "file",
            f"{file.name} has neither sentences nor contexts: it holds token sequences",
            "Give a corpus, or run `attractor check` on it",
        )
    if vocabulary is not None:
        loaded = with_vocabulary(loaded, vocabulary)
    if context_length is not None:
        corpus = with_context_length(loaded.corpus, context_length)
        loaded = dataclasses.replace(loaded, corpus=corpus)
    return loaded


def _existing(path: str | os.PathLike[str], remedy: str) -> Path:
    file = Path(path)
    if not file.is_file():
        raise InvalidInputError("file", f"there is no file {file}", remedy)
    return file


def _read_arrays(file: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    return _read_npz(file) if file.suffix == ".npz" else _read_safetensors(file)


def _read_npz(file: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    if not zipfile.is_zipfile(file):
        raise FileFormatError(
            f"{file} is damaged or is not an .npz file: it is no complete zip archive. "
            "Write it again with numpy.savez."
        )
    arrays = {}
    name = "its list of arrays"
    try:
        with np.load(file, allow_pickle=False) as stored:
            for name in stored.files:
                arrays[name] = stored[name]
    except ValueError as error:
        if "Object arrays" in str(error):
            raise InvalidInputError(
                name,
                "the array holds Python objects, which are never loaded",
                "Save a rectangular array of numbers; pad ragged sequences and use mask",
            ) from None
        raise FileFormatError(f"{file} is damaged: {name} cannot be read ({error}).") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, MemoryError) as error:
        raise FileFormatError(f"{file} is damaged: {name} cannot be read ({error}).") from None
    texts = {name: _text(name, arrays.pop(name)) for name in TEXTS if name in arrays}
    return arrays, texts


def _text(name: str, array: np.ndarray) -> str:
    if array.dtype.kind != "U" or array.ndim:
        raise InvalidInputError(
            name,
            f"it is an array of type {array.dtype} and shape {array.shape}, not a text",
            f"Save it as a text: numpy.savez(..., {name}='...')",
        )
    return str(array)


def _read_safetensors(file: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    try:
        with safetensors.safe_open(file, framework="np") as stored:
            metadata = stored.metadata() or {}
        arrays = safetensors.numpy.load_file(file)
    except (safetensors.SafetensorError, OSError) as error:
        raise FileFormatError(
            f"{file} is damaged or is not a safetensors file ({error})."
        ) from None
    except (KeyError, TypeError) as error:
        raise FileFormatError(
            f"{file} holds numbers of a kind NumPy does not know ({error}). "
            "Save them as float32 or float64."
        ) from None
    misplaced = next((name for name in TEXTS if name in arrays), None)
    if misplaced is not None:
        raise InvalidInputError(
            misplaced,
            f"{file.name} has an array of this name, which is a text",
            f"Put it into the metadata: save_file(..., metadata={{{misplaced!r}: '...'}})",
        )
    known = (*TEXTS, *CORPUS_TEXTS)
    return arrays, {name: metadata[name] for name in known if name in metadata}
