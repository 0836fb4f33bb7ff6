"""``Case``: the data that a claim is examined on."""

from __future__ import annotations

import dataclasses
import os
import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float

from attractor.attention import ConcaveHead, LinearHead, ReLUHead, get_parameterization
from attractor.checks import check_kinds
from attractor.errors import DuplicateTokensWarning, InvalidInputError, TiedTokensWarning
from attractor.files import LoadedTokens, load_tokens, save_tokens
from attractor.geometry import Frobenius, Geometry
from attractor.margin import MarginProblem, Solution, solve
from attractor.papers.data_set import DataKind, DataSet
from attractor.papers.smaller_tokens import smaller_tokens
from attractor.precision import as_shaped
from attractor.provenance import data_hash
from attractor.selection import Selection, optimal_tokens, token_scores
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.papers._examine import Finding
    from attractor.papers.trial import Trial


@dataclasses.dataclass(frozen=True, eq=False)
class Case(DataSet):
    """One data set with everything a statement may speak of; what a token file holds.

    Attributes:
        tokens: A single data set, with labels.
        head: The head: fixed, or where its training starts; only a linear one can be saved.
        parameterization: What is trained: ``"W"``, ``"KQ"``, ``"p"``, ``"v, p"``, ``"v, W"``.
        initial: Where training starts, as ``train`` takes it; None for what the claim chooses.
        chosen: Tokens that the statement is to speak of; None for the optimal ones.
        optimizer: How to train, as on the command line; None for what the claim chooses.
        steps: How long to train; None for what the claim chooses.
        about: What the data are, in words.
    """

    kind: ClassVar[DataKind] = DataKind.TOKENS
    tokens: Tokens
    head: LinearHead | ConcaveHead | ReLUHead
    parameterization: str = "W"
    initial: Any = None
    chosen: Selection | None = None
    optimizer: str | None = None
    steps: int | None = None
    about: str = "data"

    def __post_init__(self) -> None:
        if self.tokens.instances is not None:
            raise InvalidInputError(
                "tokens",
                "they have an axis of instances",
                "Make a case of each, of tokens[0] first",
            )
        layer = get_parameterization(self.parameterization)
        object.__setattr__(self, "parameterization", layer.name)
        object.__setattr__(self, "tokens", layer.prepare(self.tokens))

    @classmethod
    def from_scores(
        cls,
        keys: Any,
        scores: Any,
        *,
        parameterization: str = "p",
        queries: Any = None,
        **other: Any,
    ) -> Case:
        """A case whose token scores are given, in place of labels and a head.

        Args:
            keys: ``(n, T, d)``.
            scores: ``(n, T)``.
            parameterization: What is trained.
            queries: ``(n, e)``; ones for a prompt vector.
            **other: The other attributes.
        """
        keys = as_shaped("keys", keys, ("n", "T", "d"))
        values = as_shaped("scores", scores, keys.shape[:2])[..., None]
        queries = np.ones((len(keys), 1)) if queries is None else queries
        tokens = Tokens(keys, queries, np.ones(len(keys)), values=values)
        return cls(tokens, LinearHead(np.ones(1)), parameterization, **other)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> list[Case]:
        """The cases in a token file: one for every instance.

        Raises:
            InvalidInputError: If the file cannot be used, or says neither scores nor a head.
            FileFormatError: If it is damaged.
        """
        return cls.from_loaded(load_tokens(path), Path(path).name)

    @classmethod
    def from_loaded(cls, loaded: LoadedTokens, name: str) -> list[Case]:
        """The cases in what a token file holds: one for every instance.

        Args:
            loaded: What it holds.
            name: The name of the file.

        Raises:
            InvalidInputError: If it says neither scores nor a head.
        """
        if loaded.head is None:
            raise InvalidInputError(
                "head",
                f"{name} has no such array, and no scores",
                "Add head (d,), or scores (n, T) in place of labels and head",
            )
        count, shared = (
            loaded.tokens.instances,
            {
                "parameterization": loaded.parameterization,
                "initial": loaded.initial,
                "optimizer": loaded.optimizer,
                "steps": loaded.steps,
            },
        )
        if count is None:
            return [cls(loaded.tokens, loaded.head, chosen=loaded.selection, about=name, **shared)]
        weights = np.asarray(loaded.head.weight)
        heads = weights if weights.ndim == 2 else np.broadcast_to(weights, (count, *weights.shape))
        numbers = loaded.tokens.instance_numbers
        return [
            cls(
                loaded.tokens[place],
                LinearHead(heads[place]),
                chosen=None if loaded.selection is None else loaded.selection[place],
                about=f"{name}, instance {numbers[place]}",
                **shared,
            )
            for place in range(count)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the case as a token file.

        Raises:
            InvalidInputError: If the head is not linear: token files hold no other.
        """
        if not isinstance(self.head, LinearHead):
            raise InvalidInputError(
                "head", f"a token file holds no {self.head.name} head", "Save cases of linear heads"
            )
        save_tokens(
            path,
            self.tokens,
            self.head,
            parameterization=self.parameterization,
            initial=self.initial,
            selection=self.chosen,
            optimizer=self.optimizer,
            steps=self.steps,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """What a case holds besides tokens and head, by name, for hashing."""
        leaves = jax.tree_util.tree_leaves_with_path(self.initial)
        found = {f"initial{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}
        if self.chosen is not None:
            found["selection"] = self.chosen.mask
        words = {"parameterization": self.parameterization, "optimizer": self.optimizer}
        return found | {name: np.array(f"{word}") for name, word in words.items()}

    @property
    def hash(self) -> str:
        """SHA-256 of tokens, head, and what else the case holds."""
        return data_hash(self.tokens, self.head, **self.arrays())

    @property
    def size(self) -> int:
        """Numbers in the keys."""
        return self.tokens.keys.size

    @property
    def size_in_words(self) -> str:
        """Sequences, tokens, dimension, and what is trained."""
        tokens = self.tokens
        sizes = f"n = {tokens.sequences}, T = {tokens.length}, d = {tokens.key_dimension}"
        return f"{sizes}, {self.parameterization} trained"

    def smaller(self, trial: Trial, first: Finding) -> Case:
        """The case less the sequences, tokens and digits that a counterexample does not need."""
        return smaller_tokens(self, trial, first)

    @property
    def several_rows(self) -> bool:
        """Whether more than one row has a choice between tokens."""
        return int((self.tokens.mask.sum(-1) > 1).sum()) > 1

    @cached_property
    def scores(self) -> Float[np.ndarray, "sequence query token"]:
        """Token scores; minus infinity where masked."""
        return token_scores(self.tokens, self.head)

    @cached_property
    def optimal(self) -> Selection:
        """The tokens of the highest scores; tied ones together."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TiedTokensWarning)
            return optimal_tokens(self.tokens, self.head)

    @property
    def selection(self) -> Selection:
        """The tokens that the statement speaks of: those chosen, or the optimal ones."""
        return self.optimal if self.chosen is None else self.chosen

    def solution(
        self,
        geometry: Geometry = Frobenius(),  # noqa: B008 - immutable
        selection: Selection | None = None,
    ) -> Solution:
        """The solution of the margin problem of a selection; that of the case if None."""
        check_kinds(geometry=(geometry, Geometry), selection=(selection, Selection | None))
        selection = self.selection if selection is None else selection

        def compute() -> Solution:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DuplicateTokensWarning)
                problem = MarginProblem.from_selection(self.tokens, selection, ties="equal")
            found = solve(problem, geometry)
            assert isinstance(found, Solution)
            return found

        return self.once(("solution", geometry.name, selection.mask.tobytes()), compute)
