"""``HeadCase``: the head that a claim on long prompts is examined on."""

from __future__ import annotations

import dataclasses
import os
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import jax
import numpy as np

from attractor.errors import InvalidInputError
from attractor.files import LoadedHead, save_head
from attractor.papers.data_set import DataKind, DataSet
from attractor.papers.smaller_head import smaller_head
from attractor.prompt.head import Head
from attractor.prompt.measures.contract import Measure
from attractor.provenance import data_hash

if TYPE_CHECKING:
    from attractor.papers._examine import Finding
    from attractor.papers.trial import Trial


@dataclasses.dataclass(frozen=True, eq=False)
class HeadCase(DataSet):
    """A head with the laws of its tokens and queries; what a head file holds.

    Attributes:
        head: The head.
        tokens: The law of the tokens; one that is neither Gaussian nor samples fits no file.
        queries: The law of the queries likewise.
        shortest_length: What is said of a prompt is said of so many tokens and more; a head file
            says nothing of it, and that is one.
        about: What the data are, in words.
    """

    kind: ClassVar[DataKind] = DataKind.HEAD
    head: Head
    tokens: Measure
    queries: Measure
    shortest_length: int = 1
    about: str = "head"

    @classmethod
    def from_loaded(cls, loaded: LoadedHead, name: str) -> HeadCase:
        """The case in what a head file holds.

        Args:
            loaded: What it holds.
            name: The name of the file.
        """
        return cls(loaded.head, loaded.tokens, loaded.queries, about=name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the case as a head file.

        Raises:
            InvalidInputError: If short prompts are left out, or a law is neither Gaussian nor
                samples: a head file cannot say so.
        """
        if self.shortest_length != 1:
            raise InvalidInputError(
                "shortest_length",
                "a head file does not say how long prompts are",
                "Save cases of prompts of every length",
            )
        save_head(path, self.head, self.tokens, self.queries)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """What a case holds, by name, for hashing."""
        parts = {"head": self.head, "tokens": self.tokens, "queries": self.queries}
        leaves = jax.tree_util.tree_leaves_with_path(parts)
        found = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
        kinds = {"law of tokens": self.tokens, "law of queries": self.queries}
        found |= {name: np.array(type(law).__name__) for name, law in kinds.items()}
        return found | {"shortest length": np.array(self.shortest_length)}

    @property
    def hash(self) -> str:
        """SHA-256 of the head, the laws, and what else the case holds."""
        return data_hash(None, None, **self.arrays)

    @property
    def size(self) -> int:
        """Numbers in the head and the laws."""
        leaves = jax.tree.leaves((self.head, self.tokens, self.queries))
        return sum(np.size(leaf) for leaf in leaves)

    @property
    def size_in_words(self) -> str:
        """Dimensions of tokens, queries and outputs, and the law of the tokens."""
        outputs = self.head.value_matrix.shape[0]
        return (
            f"tokens in R^{self.head.token_dimension} ({type(self.tokens).__name__}), "
            f"queries in R^{self.head.query_dimension}, outputs in R^{outputs}"
        )

    def smaller(self, trial: Trial, first: Finding) -> HeadCase:
        """The case less the dimensions and digits that a counterexample does not need."""
        return smaller_head(self, trial)

    @cached_property
    def U(self) -> np.ndarray:
        """The score matrix as NumPy float64."""
        return np.asarray(self.head.score_matrix, dtype=np.float64)

    @cached_property
    def V(self) -> np.ndarray:
        """The value matrix as NumPy float64."""
        return np.asarray(self.head.value_matrix, dtype=np.float64)

    @cached_property
    def token_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of a token."""
        return self._moments(self.tokens)

    @cached_property
    def query_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of a query."""
        return self._moments(self.queries)

    @cached_property
    def horizon(self) -> float:
        """``H = ||Gamma^(1/2) U Gamma_z^(1/2)||``: how large score deviations typically are."""
        tokens, queries = (root(moments[1]) for moments in (self.token_moments, self.query_moments))
        return float(np.linalg.norm(tokens.T @ self.U @ queries, 2))

    def _moments(self, law: Measure) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(law.mean, np.float64), np.asarray(law.covariance, np.float64)


def root(covariance: np.ndarray) -> np.ndarray:
    """A matrix ``F`` with ``F F^T`` the covariance, a column for each axis that is not flat."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-12 * max(values[-1], 0)
    return vectors[:, kept] * np.sqrt(values[kept])
