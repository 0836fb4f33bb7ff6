"""``DataSet``: what every kind of data has that claims are examined on."""

from __future__ import annotations

import dataclasses
import enum
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

if TYPE_CHECKING:
    from attractor.papers._examine import Finding
    from attractor.papers.trial import Trial

Found = TypeVar("Found")


class DataKind(enum.Enum):
    """The kind of file that data are kept in; a claim speaks of one kind."""

    TOKENS = "token file"
    CORPUS = "corpus"
    HEAD = "head file"
    REGRESSION = "regression task file"
    CLASSIFIERS = "file of classifier results"

    @property
    def reader(self) -> str:
        """The command that reads such a file."""
        return _READERS[self]

    @property
    def suffix(self) -> str:
        """What the name of such a file ends in, where this library writes it."""
        return ".nc" if self is DataKind.CLASSIFIERS else ".npz"


_READERS = {
    DataKind.TOKENS: "attractor check",
    DataKind.CORPUS: "attractor corpus",
    DataKind.HEAD: "attractor prompt-length",
    DataKind.REGRESSION: "attractor claims --data",
    DataKind.CLASSIFIERS: "attractor claims --data",
}


class DataSet(ABC):
    """Data that a claim is examined on; a frozen dataclass of what a file of its kind holds.

    Attributes:
        kind: The kind of file that holds it.
        about: What the data are, in words.
    """

    kind: ClassVar[DataKind]
    about: str

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file from which the data can be read again.

        Raises:
            InvalidInputError: If such a file cannot hold all of it.
        """

    @property
    @abstractmethod
    def hash(self) -> str:
        """A number that tells data from other data."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How large it is; of two counterexamples the smaller one is shown."""

    @property
    @abstractmethod
    def size_in_words(self) -> str:
        """How large it is, for people."""

    @abstractmethod
    def smaller(self, trial: Trial, first: Finding) -> Self:
        """The data less what a counterexample does not need; itself where nothing can go.

        Args:
            trial: Examines candidates.
            first: What was found on the data.
        """

    def replace(self, **changes: Any) -> Self:
        """The data with some attributes changed."""
        return dataclasses.replace(self, **changes)  # pyright: ignore[reportArgumentType]

    def once(self, key: Any, compute: Callable[[], Found]) -> Found:
        """What ``compute`` gives, computed the first time only; checks share their work so."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    @cached_property
    def _known(self) -> dict[Any, Any]:
        return {}
