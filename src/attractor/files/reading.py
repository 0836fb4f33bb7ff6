"""Reading files of token sequences, corpora, heads, in-context tasks and classifier results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from attractor.files.contents import ARRAY_SUFFIXES, ArrayFile, FileContents, read_arrays
from attractor.files.token_file import LoadedTokens
from attractor.support.checks import shown
from attractor.support.errors import InvalidInputError
from attractor.support.plugins import load_plugins
from attractor.support.storage import existing_file

ANY = "Give a .npz, .safetensors or .nc file, or text with a sentence a line"
"""The remedy for a file that is not there."""

_Kind = TypeVar("_Kind", bound=FileContents)
_GROUP = "attractor.files"
_REGISTERED: list[type[FileContents]] = []


def kinds() -> list[type[FileContents]]:
    """The kinds of file that ``load`` knows: of installed distributions, then those registered."""
    return [*load_plugins(_GROUP).values(), *_REGISTERED]


def register_file(kind: type[FileContents]) -> type[FileContents]:
    """Has ``load`` know a kind of file; a decorator of its class.

    Args:
        kind: A kind that is known by its ending, or by its arrays. Where a file is of several
            kinds by its arrays, it is of the one that was registered first.

    Raises:
        InvalidInputError: If it is no such class, or nothing tells it from files of other kinds.
    """
    if not (isinstance(kind, type) and issubclass(kind, FileContents)):
        raise InvalidInputError(
            "kind", f"{shown(kind)} is no class of file", "Derive it from FileContents or ArrayFile"
        )
    by_arrays, known = issubclass(kind, ArrayFile) and kind.marks, kinds()
    if not by_arrays and kind.suffix in (*ARRAY_SUFFIXES, *(each.suffix for each in known)):
        raise InvalidInputError(
            "kind",
            f"{kind.__name__} names no arrays that only its files have, and no ending of its own",
            "Give it marks = ('name of an array',), or suffix = '.ending' and a read method",
        )
    if kind not in known:
        _REGISTERED.append(kind)
    return kind


def load(path: str | os.PathLike[str]) -> FileContents:
    """Reads a file of token sequences, a corpus, a head, a regression task or classifier results.

    A ``.npz`` or ``.safetensors`` file is one of token sequences, of the layout in ``LAYOUT``; or
    a corpus if it has ``sentences`` or ``contexts``, of the layout in ``CORPUS_LAYOUT``; or a head
    with the laws of its tokens and queries if it has ``W_Q``, ``W_K`` or ``W_V``, of the layout in
    ``HEAD_LAYOUT``; or else a task of in-context regression if it has ``covariance`` or
    ``weight_variance``, of the layout in ``REGRESSION_LAYOUT``; or else in-context tasks if it has
    ``prompts``, of the layout in ``IN_CONTEXT_LAYOUT``. A ``.nc`` file is NetCDF with the
    results of classifiers, of the layout in ``CLASSIFIERS_LAYOUT``. Anything else is text in UTF-8,
    one sentence a line. Kinds of other distributions (entry points ``attractor.files``) and of
    one's own (``register_file``) are known by their arrays or endings likewise. Nothing in a file
    is ever unpickled or imported.

    Raises:
        InvalidInputError: If the file does not exist, lacks an array, or an array cannot be used.
        FileFormatError: If the file is damaged or not of the kind its name says.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> np.savez("two.npz", keys=[[[1, 0], [0, 1]]], queries=[[1, 0]], labels=[1], head=[1, 0])
        >>> at.load("two.npz").tokens
        Tokens(1 sequences x 2 tokens, 1 queries each, keys in R^2, queries in R^2, labeled)
    """
    file, known = existing_file(path, ANY), kinds()
    if file.suffix in ARRAY_SUFFIXES:
        arrays, texts = read_arrays(file)
        for kind in known:
            if issubclass(kind, ArrayFile) and any(mark in arrays for mark in kind.marks):
                return kind.from_arrays(arrays, texts, file.name)
        return LoadedTokens.from_arrays(arrays, texts, file.name)
    for kind in known:
        if kind.suffix == file.suffix:
            return kind.read(file)
    return next(kind for kind in known if kind.takes_text).read(file)


def load_tokens(path: str | os.PathLike[str]) -> LoadedTokens:
    """Reads a file of token sequences, as ``load`` does.

    Raises:
        InvalidInputError: As ``load``, or if the file is a corpus or a head.
        FileFormatError: As ``load``.
    """
    file = array_file(path, LoadedTokens, "; `attractor corpus` takes text")
    return of_kind(LoadedTokens, file, "is")


def array_file(path: str | os.PathLike[str], kind: type[FileContents], also: str = "") -> Path:
    """A file of arrays by its ending."""
    file = existing_file(path, kind.missing)
    if file.suffix not in ARRAY_SUFFIXES:
        raise InvalidInputError(
            "file",
            f"{file.name} ends in neither .npz nor .safetensors",
            f"Save the arrays with numpy.savez or safetensors.numpy.save_file{also}",
        )
    return file


def of_kind(kind: type[_Kind], file: Path, found: str) -> _Kind:
    """The contents of a file, which are of one kind; ``found`` begins what is wrong if not."""
    loaded = load(file)
    if not isinstance(loaded, kind):
        raise InvalidInputError(
            "file",
            f"{file.name} {found} {loaded.held}",
            f"Give {kind.held}, or run `{loaded.reader}` on it",
        )
    return loaded
