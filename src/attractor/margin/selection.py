"""Selections: which tokens of each row attention keeps, should keep, or does keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.attention.readout import Readout
from attractor.geometry import lengths
from attractor.geometry.vectors import in_ordinary_units
from attractor.results import Described, Rows
from attractor.support.checks import check_function, check_kinds
from attractor.support.errors import InvalidInputError, TiedTokensWarning, warn_caller
from attractor.support.loaded import is_of_loaded
from attractor.support.precision import as_plain, as_real
from attractor.support.randomness import seeded
from attractor.tokens import Tokens

_LISTED = 8
"""Positions that a summary lists."""
_TIE_ROUNDINGS = 8
"""Roundings, relative to the product of the norms that make a score, within which two tie."""


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Described):
    """The tokens chosen in each attention row.

    Attributes:
        mask: True where a token is chosen.
        tied: True for rows with several tokens because nothing tells them apart, as opposed to
            several chosen on purpose.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> selection = at.Selection.from_index(tokens, [0, 1])
        >>> selection.index
        array([0, 1])
    """

    mask: Bool[np.ndarray, "*batch sequence query token"]
    tied: Bool[np.ndarray, "*batch sequence query"]

    @classmethod
    def from_index(cls, tokens: Tokens, index: Any) -> Selection:
        """Chooses one token in each row by its position.

        Args:
            tokens: The data set.
            index: ``(*instances, n)`` with one query a sequence, else ``(*instances, n, K)``;
                further leading axes are allowed.

        Raises:
            InvalidInputError: If the shape does not fit, or a position is masked or outside.
        """
        check_kinds(tokens=(tokens, Tokens))
        array = as_plain("selection", index)
        if array.dtype.kind not in "iu":
            raise InvalidInputError(
                "selection", f"the data type is {array.dtype}", "Give token positions, integers"
            )
        rows = tokens.mask.shape[:-1]
        if tokens.queries_per_sequence == 1 and array.shape[-len(rows) + 1 :] == rows[:-1]:
            array = array[..., None]
        if array.ndim < len(rows) or array.shape[array.ndim - len(rows) :] != rows:
            expected = rows[:-1] if rows[-1] == 1 else rows
            raise InvalidInputError(
                "selection", f"the shape is {array.shape}", f"Give {expected}: one token a row"
            )
        mask = array[..., None] == np.arange(tokens.length)
        wrong = ~(mask & tokens.mask).any(-1)
        if wrong.any():
            row = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise InvalidInputError(
                "selection",
                f"row {row} chooses token {array[row]}, which is masked or does not exist",
                f"Give positions from 0 to {tokens.length - 1} that the mask allows",
            )
        return cls(mask, np.zeros(mask.shape[:-1], dtype=bool))

    @property
    def index(
        self,
    ) -> Int[np.ndarray, "*batch sequence"] | Int[np.ndarray, "*batch sequence query"]:
        """Position of the chosen token, -1 where several are; no query axis if it has length 1."""
        position = np.where(self.mask.sum(-1) == 1, self.mask.argmax(-1), -1)
        return position[..., 0] if self.mask.shape[-2] == 1 else position

    @property
    def ties(self) -> int:
        """Number of rows in which several tokens are tied."""
        return int(self.tied.sum())

    def __getitem__(self, instance: Any) -> Selection:
        """Chooses along the leading axis."""
        if self.mask.ndim == 3:
            raise InvalidInputError("index", "this selection has no leading axis", "Use it whole")
        return Selection(self.mask[instance], self.tied[instance])

    def __eq__(self, other: object) -> bool:
        """Whether the same tokens are chosen, however they came to be."""
        return isinstance(other, Selection) and np.array_equal(self.mask, other.mask)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        rows = int(np.prod(self.mask.shape[:-1]))
        several = int((self.mask.sum(-1) > 1).sum())
        return f"Selection({rows} rows, {several} with several tokens, {self.ties} of them ties)"

    def _summary(self) -> tuple[str, Rows]:
        chosen = self.mask.sum(-1)
        places = self.mask.reshape(-1, self.mask.shape[-1]).sum(0)
        most = np.argsort(-places, kind="stable")[:_LISTED]
        listed = ", ".join(f"{place} ({places[place]:,})" for place in most if places[place])
        more = ", ..." if (places > 0).sum() > _LISTED else ""
        rows = [
            ("rows", f"{chosen.size:,}"),
            ("with one token", f"{int((chosen == 1).sum()):,}"),
            ("with several", f"{int((chosen > 1).sum()):,}, {self.ties:,} of them ties"),
            ("positions, most chosen first", f"{listed}{more}"),
        ]
        if empty := int((chosen == 0).sum()):
            rows.insert(3, ("with none", f"{empty:,}"))
        return "Selection", rows


def token_scores(
    tokens: Tokens, head: Readout | Callable[[Any], Any]
) -> Float[np.ndarray, "*instances sequence query token"]:
    """Token scores ``gamma_ikt = y_ik h(x_it)``, minus infinity where masked.

    The score of a token is what the head would answer if attention kept that token alone, signed
    by the label (*Transformers as Support Vector Machines*, definition of token scores).

    Args:
        tokens: The data set, with labels -1 and +1.
        head: A head of one prediction, or another function from outputs ``(*instances, ..., v)``
            to predictions. For ``PredictionHeads`` scores have a leading axis of attention heads.

    Raises:
        InvalidInputError: If the tokens carry no labels, or the head does not fit the values or
            gives logits, for which the score of a token is not defined.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> at.token_scores(tokens, head)[:, 0]
        array([[ 1.,  0.],
               [ 1., -0.]])
    """
    check_kinds(tokens=(tokens, Tokens))
    if tokens.labels is None:
        raise InvalidInputError(
            "tokens", "they carry no labels, so tokens have no score", "Pass labels to Tokens"
        )
    own = _own_head(head, tokens)
    if own is not None and own.classes is not None:
        raise InvalidInputError(
            "head",
            f"it gives {own.classes} logits for each output, for which tokens have no score",
            "Give a head of one prediction, or choose tokens with Selection.from_index",
        )
    predictions = _predictions(head if own is None else own, tokens)
    if predictions.shape[1 if _by_head(own) else 0 :] != tokens.values.shape[:-1]:
        raise InvalidInputError(
            "head",
            f"it maps values of shape {tokens.values.shape} to {predictions.shape}",
            f"It must give one number a token: {tokens.values.shape[:-1]}",
        )
    return np.where(tokens.mask, tokens.labels[..., None] * predictions[..., None, :], -np.inf)


def optimal_tokens(tokens: Tokens, head: Readout | Callable[[Any], Any]) -> Selection:
    """The tokens with the highest score in each row; ties are kept together and reported.

    Two scores tie when they differ by no more than rounding leaves of equal ones. For
    ``PredictionHeads`` the selection has a leading axis: the tokens best for each attention head.

    Raises:
        InvalidInputError: If the tokens carry no labels, or the head does not fit the values or
            gives logits.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> at.optimal_tokens(tokens, head).index
        array([0, 0])
    """
    scores = token_scores(tokens, head)
    top = scores.max(-1, keepdims=True)
    mask = scores >= top - score_rounding(tokens, head)[..., None]
    tied = mask.sum(-1) > 1
    if tied.any():
        rows = [tuple(int(i) for i in row) for row in np.argwhere(tied)]
        warn_caller(
            f"{len(rows)} rows have several tokens of the same, highest score; the first is row "
            f"{rows[0]}, tokens {np.flatnonzero(mask[rows[0]]).tolist()}",
            TiedTokensWarning,
        )
    return Selection(mask, tied)


def attended_tokens(tokens: Tokens, W: Float[np.ndarray, "*batch d e"]) -> Selection:
    """The token with the highest attention score in each row, for each matrix.

    Scores that differ by no more than rounding leaves of equal ones, such as those of ``W = 0``
    or of exact copies of a token, are kept together as a tie.

    Args:
        tokens: The data set.
        W: Matrices; leading axes broadcast against the axis of instances. Those that are not
            finite choose nothing.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> at.attended_tokens(tokens, [[1, 0], [0, -1]]).index
        array([0, 1])
    """
    check_kinds(tokens=(tokens, Tokens))
    W = as_real("W", W, ("...", tokens.key_dimension, tokens.query_dimension))
    W = in_ordinary_units(W)  # which token has the highest score does not depend on it
    scores = tokens.scores(W)
    reach = lengths(tokens.queries @ np.swapaxes(W, -1, -2)[..., None, :, :])
    size = np.where(tokens.mask, lengths(tokens.keys)[..., None, :], 0).max(-1)
    rounding = _TIE_ROUNDINGS * np.finfo(np.float64).eps * reach * size
    mask = tokens.mask & (scores >= scores.max(-1, keepdims=True) - rounding[..., None])
    return Selection(mask, mask.sum(-1) > 1)


def _by_head(head: Readout | None) -> bool:
    """Whether a head is one for each of several attention heads."""
    return getattr(head, "each", None) is not None


def _own_head(head: Readout | Callable[[Any], Any], tokens: Tokens) -> Readout | None:
    """A head that reads a batch, also for an Equinox module of the user's; None for a function."""
    if isinstance(head, Readout):
        return head
    if is_of_loaded(head, "equinox", "Module"):
        from attractor.attention.heads import as_head

        return as_head(head, tokens.value_dimension)
    check_function("head", head, "Give a head, such as LinearHead(v), or a function")
    return None


@seeded(purpose="a head of a user's")
def _predictions(head: Callable[[Any], Any], tokens: Tokens) -> Float[np.ndarray, "..."]:
    """What a head says about each token alone."""
    return np.asarray(head(tokens.values), dtype=np.float64)


def score_rounding(
    tokens: Tokens, head: Readout | Callable[[Any], Any]
) -> Float[np.ndarray, "*instances sequence query"]:
    """Rounding of a token score: a few units of the terms it is summed from."""
    own = _own_head(head, tokens)
    size = np.abs(_predictions(head, tokens)) if own is None else own.reach(tokens.values)
    largest = np.where(tokens.mask, size[..., None, :], 0).max(-1)
    assert tokens.labels is not None
    return _TIE_ROUNDINGS * np.finfo(np.float64).eps * np.abs(tokens.labels) * largest
