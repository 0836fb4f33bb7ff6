"""Token sequences with all that a claim may speak of: one data set of a token file."""

from __future__ import annotations

import dataclasses
import os
import warnings
from functools import cached_property, partial
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Bool, Float

from attractor.attention import ConcaveHead, LinearHead, ReLUHead, get_parameterization
from attractor.files import data_hash
from attractor.files.contents import DataSet, FileContents, Trial, drop
from attractor.files.reading import load_tokens
from attractor.files.token_file import LoadedTokens, weight_of
from attractor.geometry import Frobenius, Geometry
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.selection import Selection, optimal_tokens, token_scores
from attractor.support.checks import check_kinds
from attractor.support.errors import DuplicateTokensWarning, InvalidInputError, TiedTokensWarning
from attractor.support.precision import as_shaped
from attractor.tokens import Tokens

_DIGITS = (0, 1, 2, 3)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
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

    kind: ClassVar[type[FileContents]] = LoadedTokens
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
        return list(load_tokens(path).data_sets())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the case as a token file.

        Raises:
            InvalidInputError: If the head is not linear: token files hold no other.
        """
        if not isinstance(self.head, LinearHead):
            raise InvalidInputError(
                "head", f"a token file holds no {self.head.name} head", "Save cases of linear heads"
            )
        training = self.initial, self.chosen, self.optimizer, self.steps
        LoadedTokens(self.tokens, weight_of(self.head), self.parameterization, *training).save(path)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that a case holds besides tokens and head, by name, for hashing."""
        leaves = jax.tree_util.tree_leaves_with_path(self.initial)
        found = {f"initial{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}
        if self.chosen is not None:
            found["selection"] = self.chosen.mask
        words = {"parameterization": self.parameterization, "optimizer": self.optimizer}
        return found | {name: np.array(f"{word}") for name, word in words.items()}

    @cached_property
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

    def smaller(self, trial: Trial) -> Case:
        """The case less what a counterexample does not need.

        Sequences go first, in halves and then smaller parts, then tokens, then digits of all
        numbers.
        """
        # Masks in place of smaller arrays let every trial use what is compiled for this shape. With
        # a head that is trained, rows without a choice still have labels, which count.
        joint = get_parameterization(self.parameterization).trains_head
        build = _packed if joint else _masked
        case = _with_start(self, trial)

        def fails(kept: Bool[np.ndarray, "sequence token"]) -> bool:
            return trial.fails(build(case, kept), reserve=len(_DIGITS) + 1)

        kept = start = np.asarray(case.tokens.mask.any(-2))
        before = -1
        while before != kept.sum():  # a token less may allow a sequence less
            before = kept.sum()
            kept = drop(
                kept, [_places(_row(kept, i)) for i in range(len(kept)) if kept[i].any()], fails
            )
            kept = drop(kept, [[place] for place in _places(kept)], fails)
        found = case
        if (kept != start).any():
            packed = _packed(case, kept)
            found = packed if trial.fails(packed) else build(case, kept)
            assert found is not None  # it was found to fail
        return _rounded(found, trial)

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


def _with_start(case: Case, trial: Trial) -> Case:
    """The case with the start for which it fails, where its measurement names one."""
    start = trial.details.get("start")
    if start is None or case.initial is not None or case.parameterization not in ("p", "W"):
        return case
    matrix = np.asarray(start, dtype=float)
    candidate = case.replace(initial=matrix[:, 0] if case.parameterization == "p" else matrix)
    return candidate if trial.fails(candidate) else case


def _row(kept: np.ndarray, number: int) -> np.ndarray:
    return kept & (np.arange(len(kept)) == number)[:, None]


def _places(chosen: Bool[np.ndarray, "sequence token"]) -> list[tuple[int, ...]]:
    return [(int(i), int(t)) for i, t in np.argwhere(chosen)]


def _masked(case: Case, kept: Bool[np.ndarray, "sequence token"]) -> Case | None:
    """The case with other tokens masked; a sequence without any keeps one, and so no choice."""
    tokens, selected = case.tokens, case.selection.mask
    alone = np.arange(tokens.length) == selected.argmax(-1)[..., None]
    rows = np.asarray(kept.any(-1))[:, None, None]
    mask = np.where(rows, tokens.mask & kept[:, None], alone)
    chosen = np.where(rows, selected, alone)
    return _replaced(case, tokens.keys, tokens.queries, tokens.labels, mask, tokens.values, chosen)


def _packed(case: Case, kept: Bool[np.ndarray, "sequence token"]) -> Case | None:
    """The case in arrays that hold nothing but what is kept."""
    tokens = case.tokens
    rows = np.asarray(kept.any(-1))
    order = np.argsort(~kept[rows], axis=-1, kind="stable")
    order = order[:, : int(kept.sum(-1).max())]
    along = order[:, None]
    mask = np.take_along_axis((tokens.mask & kept[:, None])[rows], along, -1)
    seen = np.asarray(mask.any(-2))[..., None]
    keys, values = (
        np.where(seen, np.take_along_axis(array[rows], order[..., None], 1), 0.0)
        for array in (tokens.keys, tokens.values)
    )
    chosen = np.take_along_axis(case.selection.mask[rows], along, -1)
    labels = None if tokens.labels is None else tokens.labels[rows]
    return _replaced(case, keys, tokens.queries[rows], labels, mask, values, chosen)


def _replaced(
    case: Case,
    keys: np.ndarray,
    queries: np.ndarray,
    labels: np.ndarray | None,
    mask: np.ndarray,
    values: np.ndarray,
    chosen: np.ndarray,
) -> Case | None:
    """A case with other tokens, or None where they are none or a chosen one is missing."""
    selection = None
    if case.chosen is not None:
        if (chosen & ~mask).any() or not chosen.any(-1).all():
            return None
        selection = Selection(chosen, np.zeros(chosen.shape[:-1], bool))
    try:
        tokens = Tokens(keys, queries, labels, mask, values)
    except InvalidInputError:
        return None
    return case.replace(tokens=tokens, chosen=selection)


def _rounded(case: Case, trial: Trial) -> Case:
    """The case with as few digits as will do."""
    tokens, chosen = case.tokens, case.selection.mask
    for digits in _DIGITS:
        short = partial(_short, digits=digits)
        keys, queries, values = (short(a) for a in (tokens.keys, tokens.queries, tokens.values))
        head, start = short(case.head.weight), jax.tree.map(short, case.initial)
        candidate = _replaced(case, keys, queries, tokens.labels, tokens.mask, values, chosen)
        if candidate is not None:
            candidate = candidate.replace(head=LinearHead(head), initial=start)
            if _same_numbers(case, candidate):
                return case
            if trial.fails(candidate):
                return candidate
    return case


def _short(array: Any, digits: int) -> np.ndarray:
    """An array rounded to a number of digits behind the first one of its largest entry."""
    array = np.asarray(array, dtype=float)
    largest = float(np.abs(array).max(initial=0.0))
    if largest == 0:
        return array
    return np.round(array, digits - int(np.floor(np.log10(largest)))) + 0.0  # no negative zeros


def _same_numbers(case: Case, other: Case) -> bool:
    pairs = zip(_numbers(case), _numbers(other), strict=True)
    return all(np.array_equal(one, two) for one, two in pairs)


def _numbers(case: Case) -> list[Any]:
    tokens = case.tokens
    return jax.tree.leaves(
        (tokens.keys, tokens.queries, tokens.values, case.head.weight, case.initial)
    )
