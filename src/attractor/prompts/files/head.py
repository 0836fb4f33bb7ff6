"""Attention heads with the laws of their tokens: their files, and the claims' data in them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attractor import prompts
from attractor.files.contents import ArrayFile, DataSet, Layout, check_known
from attractor.files.reading import array_file, of_kind
from attractor.prompts import measures
from attractor.prompts.files.head_laws import (
    FEWEST_QUERIES,
    LAYOUT,
    QUERIES,
    TOKENS,
    coordinate_names,
    fewest_tokens,
    law_entries,
    of_coordinates,
    read_law,
)
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

if TYPE_CHECKING:
    from attractor.files.contents import Trial
    from attractor.prompts.head import AttentionHead
    from attractor.prompts.measures.contract import Measure

HEAD_LAYOUT = {
    "W_Q": ("(k, e)", "query matrix, for queries of e numbers"),
    "W_K": ("(k, d)", "key matrix, for tokens of d numbers"),
    "W_V": ("(v, d)", "value matrix; times the output matrix, if that belongs to the head"),
    "divide_by_sqrt_head_dimension": ("()", "bool: True if scores are (W_K x)^T W_Q z / sqrt(k)"),
    **LAYOUT,
    "queries": ("(m, e)", "sampled queries z; without any entry for queries their law is tokens'"),
    **{
        QUERIES(entry): (QUERIES.shape(entry), f"for queries, as {entry} for tokens")
        for entry in LAYOUT
        if entry != "tokens"
    },
}
"""The entries of a head file: the shape of each, and its meaning.

Matrices act from the left on columns: a linear layer of PyTorch has its ``weight`` so, while code
that writes ``x @ W`` has the transpose.
"""

_MATRICES = ("W_Q", "W_K", "W_V")
_DIVISION = "divide_by_sqrt_head_dimension"
"""The truth value that a head file must hold: nothing else in it says what scores are."""
_DIGITS = (0, 1, 2)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class HeadCase(ArrayFile, DataSet):
    """A head with the laws of its tokens and queries; what a head file holds.

    Attributes:
        head: The score matrix ``U = W_K^T W_Q``, divided as a file says, and the value matrix.
        tokens: The law of the tokens, of any form; see ``save_head`` for those that fit a file.
        queries: The law of the queries likewise; that of the tokens where a file has none.
        shortest_length: Statements on prompts are on those of so many tokens and more; a head
            file does not hold it, and it is one.
        about: What the data are, in words.
    """

    words: ClassVar[str] = "head file"
    held: ClassVar[str] = "an attention head"
    reader: ClassVar[str] = "attractor prompt-length"
    missing: ClassVar[str] = (
        "Give a .npz or .safetensors file; `attractor example head PATH` writes one"
    )
    layout: ClassVar[Layout] = HEAD_LAYOUT
    marks: ClassVar[tuple[str, ...]] = _MATRICES
    head: AttentionHead
    tokens: Measure
    queries: Measure
    shortest_length: int = 1
    about: str = "head"

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], name: str
    ) -> HeadCase:
        """Puts together what lies in a head file; see ``ArrayFile``."""
        _check_names(arrays, name)
        W_Q, W_K, W_V = (_matrix(each, arrays[each]) for each in _MATRICES)
        if len(W_Q) != len(W_K):
            raise InvalidInputError(
                "W_Q",
                f"it has {len(W_Q)} rows and W_K has {len(W_K)}",
                f"Give {HEAD_LAYOUT['W_Q'][0]} and {HEAD_LAYOUT['W_K'][0]}: queries and keys have "
                "one dimension; transpose matrices that multiply from the right",
            )
        d, e = W_K.shape[1], W_Q.shape[1]
        if W_V.shape[1] != d:
            raise InvalidInputError(
                "W_V", f"the shape is {W_V.shape}", f"Give (v, {d}): tokens have {d} numbers"
            )
        head = prompts.AttentionHead.from_factors(
            keys=W_K,
            queries=W_Q,
            values=W_V,
            divide_by_sqrt_head_dimension=_division(arrays[_DIVISION]),
        )
        given = {**dict.fromkeys(arrays), **texts}
        form = TOKENS.form(given, name)
        if form is None:
            raise InvalidInputError(
                "tokens",
                f"{name} has neither them nor another law of theirs",
                "Add tokens (n, d), sampled ones, or covariance (d, d), or mixture_means (K, d), "
                "or coordinate_laws (d,)",
            )
        tokens = read_law(arrays, texts, TOKENS, form, d, fewest_tokens(d))
        form = QUERIES.form(given, name)
        if form is not None:
            queries = read_law(arrays, texts, QUERIES, form, e, FEWEST_QUERIES)
        elif d == e:
            queries = tokens
        else:
            raise InvalidInputError(
                "queries",
                f"{name} has none, and they are no tokens: W_Q is for {e} numbers, W_K for {d}",
                f"Add queries (m, {e}) or query_covariance ({e}, {e})",
            )
        return cls(head, tokens, queries, about=name)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The arrays of a head file.

        The score matrix is kept as it is: as ``W_Q``, beside the identity as ``W_K``, not divided.

        Raises:
            InvalidInputError: If short prompts are left out, or a law is of none of the forms: a
                head file cannot say so.
        """
        if self.shortest_length != 1:
            raise InvalidInputError(
                "shortest_length",
                "a head file does not say how long prompts are",
                "Save cases of prompts of every length",
            )
        given = {
            "W_Q": self.head.score_matrix,
            "W_K": np.eye(self.head.token_dimension),
            "W_V": self.head.value_matrix,
            _DIVISION: np.array(False),
            **law_entries(TOKENS, self.tokens),
        }
        if self.queries is not self.tokens:
            given |= law_entries(QUERIES, self.queries)
        return given, {}

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the case holds, by name, for hashing."""
        found = {name: np.asarray(leaf) for name, leaf in self._leaves()}
        kinds = {"law of tokens": self.tokens, "law of queries": self.queries}
        found |= {name: np.array(type(law).__name__) for name, law in kinds.items()}
        for name, law in kinds.items():  # whose numbers alone do not say which laws they are of
            if type(law).__name__ in ("Product", "Pushforward"):
                found[f"{name}, by coordinate"] = np.array(coordinate_names(law) or "other")
        return found | {"shortest length": np.array(self.shortest_length)}

    @property
    def size(self) -> int:
        """Numbers in the head and the laws."""
        return sum(np.size(leaf) for _, leaf in self._leaves())

    def _leaves(self) -> list[tuple[str, Any]]:
        """The arrays of the head and the laws, by where they are."""
        import jax

        parts = {"head": self.head, "tokens": self.tokens, "queries": self.queries}
        leaves = jax.tree_util.tree_leaves_with_path(parts)
        return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]

    @property
    def size_in_words(self) -> str:
        """Dimensions of tokens, queries and outputs, and the law of the tokens."""
        outputs = self.head.value_matrix.shape[0]
        return (
            f"tokens in R^{self.head.token_dimension} ({type(self.tokens).__name__}), "
            f"queries in R^{self.head.query_dimension}, outputs in R^{outputs}"
        )

    def smaller(self, trial: Trial) -> HeadCase:
        """The case less what a counterexample does not need.

        Outputs go first, then coordinates of tokens and of queries, then samples, and in the end
        digits, all of them where that is enough.
        """
        case = self
        for without in (_without_output, _without_token_coordinate, _without_query_coordinate):
            for place in reversed(range(max(case.V.shape[0], *case.U.shape))):
                case = _if_it_fails(case, partial(without, place=place), trial)
        for name in ("tokens", "queries"):
            before = None
            while before is not case:
                before = case
                case = _if_it_fails(case, partial(_with_half, name=name), trial)
        rounded = [partial(_rounded, digits=digits) for digits in _DIGITS]
        for simplified in (_without_scores, _with_ones, _with_standard_laws, *rounded):
            case = _if_it_fails(case, simplified, trial)
        return case

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


def save_head(
    path: str | os.PathLike[str],
    head: AttentionHead,
    tokens: Measure,
    queries: Measure | None = None,
) -> None:
    """Writes a head with the laws of its tokens and queries, so that ``load`` gives the same.

    The score matrix is kept as it is: as ``W_Q``, beside the identity as ``W_K``, not divided.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        head: The head.
        tokens: The law of the tokens: ``Gaussian``; ``Empirical`` with samples as its points, with
            weights where these are all of the law, with noise or without; a ``Mixture`` of
            Gaussian components; or a ``Product`` of coordinates that are Gaussian, ``Uniform``,
            ``Rademacher`` or ``Laplace``, around any mean.
        queries: The law of the queries likewise; None for that of the tokens.

    Raises:
        InvalidInputError: If the name ends in anything else, a law is another one, or shapes do
            not fit; nothing is written then.
    """
    check_kinds(
        head=(head, prompts.AttentionHead),
        tokens=(tokens, measures.Measure),
        queries=(queries, measures.Measure | None),
    )
    HeadCase(head, tokens, tokens if queries is None else queries).save(path)


def _check_names(arrays: Mapping[str, np.ndarray], file: str) -> None:
    check_known(arrays, HEAD_LAYOUT, file, "for a head")
    for name in _MATRICES:
        if name not in arrays:
            raise InvalidInputError(
                name, f"{file} has no such array", f"Add {name} {HEAD_LAYOUT[name][0]}"
            )
    if _DIVISION not in arrays:
        raise InvalidInputError(
            _DIVISION,
            f"{file} does not say whether scores are divided by the root of the head dimension, "
            "and it is never guessed",
            f"Add {_DIVISION}=True for (W_K x)^T W_Q z / sqrt(k), as most software has it, "
            "or False",
        )


def _matrix(name: str, value: Any) -> np.ndarray:
    array = as_float64(name, value)
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInputError(name, f"the shape is {array.shape}", f"Give {HEAD_LAYOUT[name][0]}")
    return array


def _division(value: np.ndarray) -> bool:
    if value.dtype != bool or value.shape != ():
        raise InvalidInputError(
            _DIVISION,
            f"its shape is {value.shape} and its type {value.dtype}",
            "Save one truth value, such as numpy.array(True)",
        )
    return bool(value)


def _if_it_fails(
    case: HeadCase, change: Callable[[HeadCase], HeadCase | None], trial: Trial
) -> HeadCase:
    """The case with a change, or itself where the claim does not fail on that."""
    try:
        return trial.smaller_of(case, change(case))
    except InvalidInputError:  # rounding made a law impossible
        return case


def _with_matrices(case: HeadCase, U: np.ndarray, V: np.ndarray) -> HeadCase:

    return case.replace(head=prompts.AttentionHead(U, V))


def _without_output(case: HeadCase, place: int) -> HeadCase | None:
    kept = _others(case.V.shape[0], place)
    return None if kept is None else _with_matrices(case, case.U, case.V[kept])


def _without_token_coordinate(case: HeadCase, place: int) -> HeadCase | None:
    kept = _others(case.U.shape[0], place)
    if kept is None:
        return None
    smaller = _with_matrices(case, case.U[kept], case.V[:, kept])
    return smaller.replace(tokens=of_coordinates(case.tokens, kept))


def _without_query_coordinate(case: HeadCase, place: int) -> HeadCase | None:
    kept = _others(case.U.shape[1], place)
    if kept is None:
        return None
    smaller = _with_matrices(case, case.U[:, kept], case.V)
    return smaller.replace(queries=of_coordinates(case.queries, kept))


def _others(count: int, place: int) -> np.ndarray | None:
    """All places but one; None where there is no such place, or no other."""
    return np.delete(np.arange(count), place) if place < count and count > 1 else None


def _with_half(case: HeadCase, name: str) -> HeadCase | None:
    """The case with half the samples, or None where that is too few for a file, or none are."""
    law = getattr(case, name)
    if not isinstance(law, measures.Empirical) or law.weights is not None:
        return None
    count = len(law.points) // 2
    fewest = fewest_tokens(law.dimension) if name == "tokens" else FEWEST_QUERIES
    return (
        None if count < fewest else case.replace(**{name: measures.Empirical(law.points[:count])})
    )


def _without_scores(case: HeadCase) -> HeadCase:
    return _with_matrices(case, np.zeros_like(case.U), case.V)


def _with_ones(case: HeadCase) -> HeadCase:
    return _with_matrices(case, case.U, np.eye(*case.V.shape))


def _with_standard_laws(case: HeadCase) -> HeadCase:
    """The case with standard normal laws where they are Gaussian."""
    laws = {"tokens": case.tokens, "queries": case.queries}
    standard = {
        name: measures.Gaussian.isotropic(law.dimension)
        for name, law in laws.items()
        if isinstance(law, measures.Gaussian)
    }
    return case.replace(**standard)


def _rounded(case: HeadCase, digits: int) -> HeadCase:
    rounded = _with_matrices(case, np.round(case.U, digits), np.round(case.V, digits))
    return rounded.replace(
        tokens=_rounded_law(case.tokens, digits),
        queries=_rounded_law(case.queries, digits),
    )


def _rounded_law(law: Measure, digits: int) -> Measure:

    if isinstance(law, measures.Gaussian):
        return measures.Gaussian(np.round(law.mean, digits), np.round(law.covariance, digits))
    if isinstance(law, measures.Empirical):
        return measures.Empirical(np.round(law.points, digits), law.weights)
    return law


def load_head(path: str | os.PathLike[str]) -> HeadCase:
    """Reads an attention head with the laws of its tokens and queries, as ``load`` does.

    Raises:
        InvalidInputError: As ``load``, or if the file holds something else.
        FileFormatError: As ``load``.
    """
    file = array_file(path, HeadCase)
    return of_kind(HeadCase, file, f"has none of {', '.join(HeadCase.marks)}: it holds")
