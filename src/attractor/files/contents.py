"""What a file of data holds: how it is read and written, hashed and made smaller."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import safetensors.numpy
from jaxtyping import Bool

from attractor.support.checks import check_kinds, check_path
from attractor.support.containers import StoredArrays, StoredTensors, parse_json
from attractor.support.errors import InvalidInputError
from attractor.support.storage import existing_file, write_file
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.attention import Head

ARRAY_SUFFIXES = (".npz", ".safetensors")
"""The endings of files of arrays."""

TEXTS = ("parameterization", "optimizer")
"""Entries that are texts: arrays without axes in ``.npz``, metadata in ``.safetensors``."""

Layout = Mapping[str, tuple[Any, str]]
"""The entries of a file: the shape or the dimensions of each, and its meaning."""

_Found = TypeVar("_Found")


class FileContents(ABC):
    """The contents of a file. A subclass is a kind of file.

    Attributes:
        words: The name of such a file: ``"corpus"``.
        held: The name of its contents, with an article.
        reader: The command that reads it.
        missing: The remedy where there is no file.
        suffix: The ending of its name, where this library writes it; other than ``.npz`` the ending
            distinguishes it from files of other kinds.
        layout: Its entries.
        takes_text: Whether it reads text of any ending that no other kind has.
    """

    words: ClassVar[str]
    held: ClassVar[str]
    reader: ClassVar[str] = "attractor claims --data"
    missing: ClassVar[str] = "Give a .npz or .safetensors file"
    suffix: ClassVar[str] = ".npz"
    layout: ClassVar[Layout]
    takes_text: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a file.

        Raises:
            InvalidInputError: If there is none, it holds something else, or something in it cannot
                be used.
            FileFormatError: If it is damaged or not what its name says.
        """

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file from which ``load`` gives the same.

        Args:
            path: The destination; replaced atomically.

        Raises:
            InvalidInputError: If the name ends in anything else, or such a file cannot hold all of
                it; nothing is written then.
        """

    def data_sets(self) -> Sequence[DataSet]:
        """The data sets that claims are examined on: itself, or one for every instance.

        Raises:
            InvalidInputError: If no claim speaks of such files, or something is missing that every
                claim asks for.
        """
        if not isinstance(self, DataSet):
            raise InvalidInputError(
                "data", f"no claim speaks of {self.held}", "Derive its class from DataSet as well"
            )
        return [self]


class ArrayFile(FileContents):
    """The contents of a ``.npz`` or ``.safetensors`` file.

    Attributes:
        marks: The arrays that distinguish it from files of other kinds.
    """

    marks: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], name: str
    ) -> Self:
        """Puts together what lies in a file.

        Args:
            arrays: The arrays by name.
            texts: The texts by name: those of token files, and the metadata of ``.safetensors``.
            name: Name of the file.

        Raises:
            InvalidInputError: If an array is missing, unknown, at odds with another, or cannot be
                used; or a text names nothing that is known.
        """

    @abstractmethod
    def to_arrays(self) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """The arrays and texts of a file from which the same can be read.

        Raises:
            InvalidInputError: If such a file cannot hold all of it.
        """

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a file; see ``FileContents``."""
        file = existing_file(path, cls.missing)
        arrays, texts = read_arrays(file)
        return cls.from_arrays(arrays, texts, file.name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file from which ``load`` gives the same.

        Args:
            path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.

        Raises:
            InvalidInputError: If the name ends in anything else, or such a file cannot hold all of
                it; nothing is written then.
        """
        file = Path(check_path("path", path))
        if file.suffix not in ARRAY_SUFFIXES:
            raise InvalidInputError(
                "path",
                f"{file.name} ends in neither .npz nor .safetensors",
                "Choose one of the two",
            )
        given, texts = self.to_arrays()
        arrays = {name: np.asarray(array) for name, array in given.items()}
        self.from_arrays(arrays, texts, file.name)
        _write_arrays(file, arrays, texts)


class DataSet(ABC):
    """Data that a claim is examined on; a frozen dataclass of what a file holds of one data set.

    Attributes:
        kind: The kind of file that holds it; the class itself where it is one.
        about: What the data are, in words.
    """

    kind: ClassVar[type[FileContents]]
    about: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if issubclass(cls, FileContents):
            cls.kind = cls

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file from which the data can be read again.

        Raises:
            InvalidInputError: If such a file cannot hold all of it.
        """

    @abstractmethod
    def arrays(self) -> Mapping[str, Any]:
        """All that outcomes depend on, by name, for hashing."""

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all that outcomes depend on."""
        return data_hash(None, None, **self.arrays())

    @property
    @abstractmethod
    def size(self) -> int:
        """A count of its entries; of two counterexamples the smaller one is shown."""

    @property
    @abstractmethod
    def size_in_words(self) -> str:
        """Its size in words."""

    def smaller(self, trial: Trial) -> Self:
        """The data less what a counterexample does not need; itself where nothing can go.

        Args:
            trial: Tries candidates.
        """
        return self

    def replace(self, **changes: Any) -> Self:
        """The data with some attributes changed."""
        return dataclasses.replace(self, **changes)  # pyright: ignore[reportArgumentType]

    def once(self, key: Any, compute: Callable[[], _Found]) -> _Found:
        """The value of ``compute()``, computed once for each key: checks share their work."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    @cached_property
    def _known(self) -> dict[Any, Any]:
        return {}

    def __repr__(self) -> str:
        """Its size, on one line."""
        return f"{type(self).__name__}({self.size_in_words})"


def check_known(arrays: Mapping[str, Any], layout: Layout, name: str, where: str = "here") -> None:
    """Refuses an array that a file of a kind may not have.

    Args:
        arrays: Those that it has.
        layout: What it may hold.
        name: Name of the file.
        where: ``"in a corpus"``, ``"for a head"``, for the error.
    """
    unknown = next((each for each in sorted(arrays) if each not in layout), None)
    if unknown is not None:
        raise InvalidInputError(
            unknown,
            f"{name} has an array of this name, which means nothing {where}",
            f"Rename or remove it; known are {', '.join(layout)}",
        )


def text_list(
    name: str, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]
) -> list[str] | None:
    """A list of texts: an array in ``.npz``, a JSON list in the metadata of ``.safetensors``.

    Args:
        name: Its name; None is returned where there is none.
        arrays: The arrays of a file.
        texts: Its texts.

    Raises:
        InvalidInputError: If it is anything else.
    """
    if name in texts:
        try:
            found = parse_json(texts[name])
        except ValueError:
            found = None
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise InvalidInputError(
                name, "its metadata is no list of texts", "Save json.dumps(list of texts)"
            )
        return found
    if name not in arrays:
        return None
    array = arrays[name]
    if array.ndim != 1 or array.dtype.kind != "U":
        raise InvalidInputError(
            name,
            f"its shape is {array.shape} and its type {array.dtype}",
            "Save an array of texts in .npz, or a JSON list in the metadata of .safetensors",
        )
    return array.tolist()


def read_arrays(file: Path) -> tuple[Mapping[str, np.ndarray], dict[str, str]]:
    """The arrays of a file by name, none of them read yet, and its texts.

    Raises:
        InvalidInputError: If there is an array where a text belongs.
        FileFormatError: If the file is damaged.
    """
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
    return tensors, dict(tensors.metadata)


def _write_arrays(file: Path, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> None:
    """Writes arrays and texts: of texts ``.npz`` makes arrays, ``.safetensors`` metadata."""
    if file.suffix == ".npz":
        named = {name: np.array(text) for name, text in texts.items()}
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **arrays, **named)
        write_file(file, content.getvalue())
        return
    listed = {name: array for name, array in arrays.items() if array.dtype.kind == "U"}
    metadata = {**texts, **{name: json.dumps(array.tolist()) for name, array in listed.items()}}
    # safetensors writes memory as it lies, whatever the strides.
    numbers = {
        name: np.asarray(array, order="C") for name, array in arrays.items() if name not in listed
    }
    write_file(file, safetensors.numpy.save(numbers, metadata=metadata or None))


_Data = TypeVar("_Data", bound=DataSet)


@dataclass
class Trial:
    """Tries smaller data on which a claim might still fail, as many as are allowed.

    Attributes:
        still_fails: Whether the claim's assumptions are met on data and its conclusion fails.
        left: How many may still be tried.
        details: What was measured on the counterexample besides the number that fails.
    """

    still_fails: Callable[[Any], bool]
    left: int
    details: Mapping[str, Any]

    def fails(self, candidate: DataSet | None, reserve: int = 0) -> bool:
        """Whether the claim still fails.

        Args:
            candidate: The data; None never fails.
            reserve: How many are to be left for later; if no more are, nothing fails.
        """
        if candidate is None or self.left <= reserve:
            return False
        self.left -= 1
        try:
            return self.still_fails(candidate)
        except InvalidInputError:  # a claim that cannot be measured does not fail
            return False

    def smaller_of(self, case: _Data, candidate: _Data | None) -> _Data:
        """The candidate, if it is other data on which the claim still fails; else the case."""
        if candidate is None or candidate.hash == case.hash or not self.fails(candidate):
            return case
        return candidate


def drop(
    kept: Bool[np.ndarray, "*places"],
    pieces: list[list[tuple[int, ...]]],
    fails: Callable[[Any], bool],
) -> Bool[np.ndarray, "*places"]:
    """Drops every piece that can go, many at a time at first.

    Args:
        kept: What there is.
        pieces: Parts to drop one by one, each a list of places.
        fails: Whether the claim still fails where so much is kept.
    """
    size = max(1, len(pieces) // 2)
    while True:
        start = 0
        while start < len(pieces):
            fewer = kept.copy()
            for piece in pieces[start : start + size]:
                fewer[tuple(np.transpose(piece))] = False
            if fewer.any() and fails(fewer):
                kept, pieces = fewer, pieces[:start] + pieces[start + size :]
            else:
                start += size
        if size == 1:
            return kept
        size //= 2


_TOKEN_ARRAYS = ("keys", "queries", "values", "labels", "weights", "mask", "instance_numbers")
_KINDS = "biufcU"  # truth values, integers, floats, complex numbers, text


def data_hash(tokens: Tokens | None = None, head: Head | None = None, **arrays: Any) -> str:
    """SHA-256 over the names, shapes, types and bytes of all arrays, in 64 hexadecimal digits.

    Arrays are taken by name in alphabetical order, in C order and little-endian, so that the hash
    is the same on every machine. How an array lies in memory and in which order arrays are given
    do not matter; a 0.0 that becomes -0.0 does.

    Args:
        tokens: Their keys, queries, values, labels, weights, mask and instance numbers; or None.
        head: Its name and its arrays; or None.
        **arrays: Anything else the result depends on.

    Raises:
        InvalidInputError: If an array holds anything but numbers, truth values or text.
    """
    check_kinds(tokens=(tokens, Tokens | None))
    if head is not None:
        from attractor.attention import Head

        check_kinds(head=(head, Head))
    parts: dict[str, Any] = {f"array {name}": array for name, array in arrays.items()}
    if tokens is not None:
        parts |= {f"tokens {name}": getattr(tokens, name) for name in _TOKEN_ARRAYS}
    if head is not None:
        parts |= {f"head {name}": array for name, array in head.arrays().items()}
        parts["head"] = np.array(head.name)
    total = hashlib.sha256()
    for name in sorted(parts):
        if parts[name] is None:
            continue
        array = _canonical(name, parts[name])
        # Lengths go first: otherwise two different lists of arrays could give the same bytes.
        for text in (name, str(array.shape), array.dtype.str):
            total.update(f"{len(text)} {text}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _canonical(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in _KINDS:
        raise InvalidInputError(
            name.removeprefix("array "),
            f"it holds values of type {array.dtype}, which have no fixed bytes",
            "Give a rectangular array of numbers",
        )
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
