"""Margin problems: the smallest matrix that satisfies a list of rank-one constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry.vectors import ordinary_factor
from attractor.margin.selection import Selection
from attractor.results import Described, Rows
from attractor.support.checks import check_choice, check_items, check_kind, check_text
from attractor.support.errors import DuplicateTokensWarning, InvalidInputError, warn_caller
from attractor.support.memory import require_memory
from attractor.support.precision import as_float64, as_plain, as_real, check_broadcast, finite_where
from attractor.tokens import Tokens
from attractor.tokens.arrangement import Arrangement, arranged_tokens

_ARRAYS = ("left", "right", "bounds", "equality", "present", "sequence", "query", "token")
_PORTION = 4096
"""Constraints written at a time, so that temporary arrays stay small."""
_NAMED = 5
"""Offending rows that a message names before it counts the rest."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MarginProblem(Described):
    """Rank-one constraints on a matrix W whose norm is to be smallest.

        min ||W||   subject to   a_j^T W b_j >= c_j   or, for equalities,   a_j^T W b_j = c_j

    Every support vector machine of the attention literature is of this form (*Transformers as
    Support Vector Machines*, Att-SVM and its variants). The norm is chosen when solving.

    Attributes:
        left: The ``a_j``, ``(*instances, m, d)``.
        right: The ``b_j``, ``(*instances, m, e)``.
        bounds: The ``c_j``, ``(*instances, m)``.
        equality: True for equalities, ``(*instances, m)``.
        present: False in slots that only fill up ragged batches, ``(*instances, m)``.
        sequence: Sequence each constraint is about, -1 in empty slots; None if not from tokens.
        query: Query each constraint is about, likewise.
        token: Token each constraint compares with the selected one, likewise.
        selection: The selection the constraints come from, or None.
        matrix: Name of the model's matrix the problem predicts.

    Example:
        >>> import attractor as at
        >>> problem = at.MarginProblem([[1, -1], [-1, 3]], [[1, 0], [0, 1]])  # the a_j and the b_j
        >>> problem
        MarginProblem(2 constraints on a 2 x 2 matrix, 0 equalities)
        >>> at.solve(problem).W
        array([[ 0.5, -0.1],
               [-0.5,  0.3]])
    """

    left: Float[np.ndarray, "*instances m d"]
    right: Float[np.ndarray, "*instances m e"]
    bounds: Float[np.ndarray, "*instances m"]
    equality: Bool[np.ndarray, "*instances m"]
    present: Bool[np.ndarray, "*instances m"]
    sequence: Int[np.ndarray, "*instances m"] | None
    query: Int[np.ndarray, "*instances m"] | None
    token: Int[np.ndarray, "*instances m"] | None
    selection: Selection | None
    matrix: str

    def __init__(
        self,
        left: Any,
        right: Any,
        bounds: Any = 1.0,
        equality: Any = False,
        present: Any = True,
        *,
        sequence: Any = None,
        query: Any = None,
        token: Any = None,
        selection: Selection | None = None,
        matrix: str = "attention",
    ) -> None:
        """Checks and stores constraints.

        Args:
            left: ``(m, d)``, or ``(instances, m, d)``.
            right: ``(m, e)``, or ``(instances, m, e)``.
            bounds: Broadcasts to ``(*instances, m)``.
            equality: Broadcasts to ``(*instances, m)``.
            present: Broadcasts to ``(*instances, m)``.
            sequence: ``(*instances, m)`` integers, or None.
            query: Likewise.
            token: Likewise.
            selection: Where the constraints come from.
            matrix: Name of the matrix the problem predicts.

        Raises:
            InvalidInputError: If shapes do not fit or entries are not finite real numbers.
        """
        left = as_float64("left", left, finite=False)
        right = as_float64("right", right, finite=False)
        for name, array, letter in (("left", left, "d"), ("right", right, "e")):
            if array.ndim not in (2, 3) or array.shape[-1] == 0:
                raise InvalidInputError(
                    name,
                    f"the shape is {array.shape}",
                    f"Give (constraints, {letter}), or (instances, constraints, {letter})",
                )
        rows = left.shape[:-1]
        if right.shape[:-1] != rows:
            raise InvalidInputError(
                "right",
                f"the shape is {right.shape}, but left has {left.shape}",
                f"Give one vector a constraint: {(*rows, 'e')}",
            )
        present = _spread("present", _flags("present", present), rows)
        bounds = _spread("bounds", as_float64("bounds", bounds, finite=False), rows)
        fields: dict[str, Any] = {
            "left": finite_where("left", left, present[..., None]),
            "right": finite_where("right", right, present[..., None]),
            "bounds": finite_where("bounds", bounds, present),
            "equality": _spread("equality", _flags("equality", equality), rows),
            "present": present,
        }
        for name, numbers in (("sequence", sequence), ("query", query), ("token", token)):
            fields[name] = None if numbers is None else _spread(name, _numbers(name, numbers), rows)
        if selection is not None:
            check_kind("selection", selection, Selection, "Give one, or None")
        check_text("matrix", matrix)
        self._keep(**fields, selection=selection, matrix=matrix)

    @classmethod
    def from_selection(
        cls, tokens: Tokens, selection: Selection, *, ties: str = "refuse"
    ) -> MarginProblem:
        """The problem whose solution keeps exactly the selected tokens (Att-SVM).

        With r the first selected token of a row: every other selected token t gives the equality
        ``(x_r - x_t)^T W z = 0``, every other token the row may attend to the inequality
        ``(x_r - x_t)^T W z >= 1`` (*Transformers as Support Vector Machines*, Att-SVM, and its
        generalization to several selected tokens).

        Args:
            tokens: The data set.
            selection: The tokens to keep, with the same leading axes.
            ties: ``"refuse"`` tied rows, or keep their tokens ``"equal"``.

        Raises:
            InvalidInputError: If the selection does not fit, or holds ties that are refused.

        Example:
            >>> import attractor as at
            >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
            >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
            >>> head = at.LinearHead([1, 0])
            >>> problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
            >>> problem.left
            array([[ 1., -1.],
                   [-1.,  3.]])
            >>> problem.right
            array([[1., 0.],
                   [0., 1.]])
        """
        constraints = constraints_of(tokens, selection, ties)
        return _unchecked(**constraints, selection=selection, matrix="attention")

    @classmethod
    def from_heads(
        cls,
        tokens: Tokens,
        selections: Selection | Sequence[Selection],
        *,
        arrangement: Arrangement = "stacked",
        ties: str = "refuse",
    ) -> MarginProblem:
        """The problem whose solution keeps the selected tokens of several attention heads.

        It is one problem for one matrix that holds those of all heads: stacked, ``(H d, e)``, with
        the vector ``a_j`` in the block of its head; side by side, ``(d, H e)``, with ``b_j`` there;
        or block-diagonal, ``(H d, H e)``, with both. ``split_heads`` takes solutions apart.

        For norms of entries it makes no difference. The Schatten norms of the block-diagonal
        matrix are those that descend in every head by itself: the largest spectral norm of a head,
        the sum of the nuclear norms. Blocks beside the diagonal only add to a Schatten norm, and
        no constraint asks for them.

        Args:
            tokens: The data set that all heads see.
            selections: The tokens that each head keeps: one selection for each, or one with a
                leading axis of heads, as ``optimal_tokens`` gives for ``PredictionHeads``.
            arrangement: ``"stacked"``, ``"side by side"`` or ``"block diagonal"``.
            ties: ``"refuse"`` tied rows, or keep their tokens ``"equal"``.

        Returns:
            The problem, about sequences ``h n + i``: sequence i of n, as head h sees it.

        Raises:
            InvalidInputError: If a selection does not fit, or holds ties that are refused.

        Example:
            >>> import attractor as at
            >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
            >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
            >>> heads = at.PredictionHeads([at.LinearHead([1, 0]), at.LinearHead([0, 1])])
            >>> problem = at.MarginProblem.from_heads(tokens, at.optimal_tokens(tokens, heads))
            >>> problem
            MarginProblem(4 constraints on a 4 x 2 matrix, 0 equalities)
            >>> at.split_heads(at.solve(problem).W, 2, "stacked")[1]
            array([[-0.5,  0.1],
                   [ 0.5, -0.3]])
        """
        check_choice("arrangement", arrangement, get_args(Arrangement))
        check_kind("tokens", tokens, Tokens, "Give Tokens(keys, queries)")
        selection = selection_of_heads(tokens, selections)
        heads = selection.mask.shape[-3] // tokens.sequences
        return cls.from_selection(arranged_tokens(tokens, heads, arrangement), selection, ties=ties)

    @property
    def instances(self) -> int | None:
        """Number of instances, or None without an axis of instances."""
        return self.left.shape[0] if self.left.ndim == 3 else None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape ``(d, e)`` of the matrix sought."""
        return self.left.shape[-1], self.right.shape[-1]

    @property
    def constraints(self) -> Int[np.ndarray, "*instances"]:
        """Number of constraints present."""
        return np.asarray(self.present.sum(-1))

    def margins(self, W: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch m"]:
        """``a_j^T W b_j`` for every constraint; NaN in empty slots.

        Args:
            W: Matrices; leading axes broadcast against the axis of instances.
        """
        W = as_real("W", W, ("...", self.left.shape[-1], self.right.shape[-1]))
        check_broadcast("W", W.shape[:-2], self.left.shape[:-2])
        # Sums of two large products must not overflow where the margin does not.
        factor = ordinary_factor(np.abs(W).max((-1, -2)))
        image = self.left @ (W * factor[..., None, None])
        with np.errstate(over="ignore", invalid="ignore"):
            margins = np.einsum("...me,...me->...m", image, self.right) / factor[..., None]
        return np.where(self.present, margins, np.nan)

    def gram(self) -> Float[np.ndarray, "*instances m m"]:
        """Inner products of the constraints: ``(A A^T) * (B B^T)``, elementwise; zero if absent."""
        present = self.present[..., None]
        left, right = np.where(present, self.left, 0), np.where(present, self.right, 0)
        return (left @ np.swapaxes(left, -1, -2)) * (right @ np.swapaxes(right, -1, -2))

    def apply_adjoint(
        self, multipliers: Float[np.ndarray, "*batch m"]
    ) -> Float[np.ndarray, "*batch d e"]:
        """``sum_j lambda_j a_j b_j^T`` over the constraints present.

        Args:
            multipliers: Leading axes broadcast against the axis of instances. Where they are not
                finite, nor are the sums.
        """
        multipliers = as_real("multipliers", multipliers, ("...", self.present.shape[-1]))
        check_broadcast("multipliers", multipliers.shape, self.present.shape)
        weights = np.where(self.present, multipliers, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.swapaxes(self.left, -1, -2) @ (weights[..., None] * self.right)

    def batched(self) -> MarginProblem:
        """The same constraints with an axis of instances, of length one if there was none."""
        return self if self.instances is not None else self._choose(np.s_[None])

    def stripped(self) -> MarginProblem:
        """The same constraints without their selection."""
        return self if self.selection is None else derived(self, selection=None)

    def __len__(self) -> int:
        """Number of instances."""
        if self.instances is None:
            raise TypeError("a problem without an axis of instances has no length")
        return self.instances

    def __getitem__(self, index: Any) -> MarginProblem:
        """Chooses instances; a single one comes without its empty slots."""
        if self.instances is None:
            raise InvalidInputError(
                "index", "this problem has no axis of instances", "Use it as it is"
            )
        if isinstance(index, (int, np.integer)):
            return self._choose((index, self.present[index]))
        return self._choose(index)

    def __iter__(self) -> Iterator[MarginProblem]:
        """The instances in turn."""
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        d, e = self.shape
        most = int(self.constraints.max(initial=0))
        equalities = int((self.equality & self.present).sum())
        lead = "" if self.instances is None else f"{self.instances} instances, up to "
        return (
            f"MarginProblem({lead}{most} constraints on a {d} x {e} matrix, "
            f"{equalities} equalities)"
        )

    def _summary(self) -> tuple[str, Rows]:
        d, e = self.shape
        present, most = self.present, int(self.constraints.max(initial=0))
        sizes = f"{'' if self.instances is None else 'up to '}{most:,}"
        several = [] if self.instances is None else [("instances", f"{self.instances:,}")]
        bounds = np.unique(self.bounds[present])
        equalities = int((self.equality & present).sum())
        rows = [
            *several,
            ("constraints", f"{sizes}, {equalities:,} of them equalities"),
            ("matrix", f"{d} x {e}"),
        ]
        if bounds.size:
            low, high = bounds[0], bounds[-1]
            rows.append(("bounds", f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"))
        if self.selection is not None:
            rows.append(("selection", repr(self.selection)))
        return "Margin problem", rows

    def _choose(self, index: Any) -> MarginProblem:
        selection = self.selection
        if selection is not None:
            instance = index[0] if isinstance(index, tuple) else index
            selection = Selection(selection.mask[instance], selection.tied[instance])
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        views = {name: None if array is None else array[index] for name, array in arrays.items()}
        return derived(self, **views, selection=selection)

    def _keep(self, **fields: Any) -> None:
        """Stores every attribute, arrays read-only."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)


def selection_of_heads(tokens: Tokens, selections: Selection | Sequence[Selection]) -> Selection:
    """Selections of attention heads as one, of all sequences of one head after another.

    Args:
        tokens: The data set that all heads see.
        selections: One for each head, or one with a leading axis of heads.

    Raises:
        InvalidInputError: If there is none, or one does not fit the tokens.
    """
    if isinstance(selections, Selection):
        several = selections.mask.ndim == tokens.mask.ndim + 1
        selections = [selections[head] for head in range(len(selections.mask))] if several else []
    each = check_items("selections", selections, Selection, 1)
    for one in each:
        _check_shape(tokens, one, "selections")
    first = tokens.mask.ndim - 3
    mask, tied = ([getattr(one, name) for one in each] for name in ("mask", "tied"))
    return Selection(np.concatenate(mask, axis=first), np.concatenate(tied, axis=first))


def check_one_data_set(tokens: Tokens) -> None:
    """Raises InvalidInputError if tokens have an axis of instances."""
    if tokens.instances is not None:
        raise InvalidInputError(
            "tokens", "they have an axis of instances", "Give one data set, such as tokens[0]"
        )


def check_tokens_kept(
    tokens: Tokens, selection: Selection, argument: str = "selection", *, several: bool = False
) -> None:
    """Checks that a selection keeps one admissible token of every row, or several.

    Raises:
        InvalidInputError: If it does not, or has another shape than the tokens.
    """
    _check_shape(tokens, selection, argument)
    kept = selection.mask.sum(-1)
    wrong = (kept == 0 if several else kept != 1) | (selection.mask & ~tokens.mask).any(-1)
    if wrong.any():
        row = tuple(int(i) for i in np.argwhere(wrong)[0])
        number = "one token or more" if several else "one token"
        raise InvalidInputError(
            argument,
            f"row {row} keeps the tokens {np.flatnonzero(selection.mask[row]).tolist()}",
            f"Select {number} in every row, among those it may attend to",
        )


def _check_shape(tokens: Tokens, selection: Selection, argument: str = "selection") -> None:
    if selection.mask.shape != tokens.mask.shape:
        raise InvalidInputError(
            argument,
            f"its mask has shape {selection.mask.shape}",
            f"Select among {tokens.mask.shape}, the shape of tokens.mask",
        )


def derived(problem: MarginProblem, **changes: Any) -> MarginProblem:
    """A problem with some attributes replaced; arrays are not copied, nor checked again."""
    return _unchecked(**{**vars(problem), **changes})


def _unchecked(**fields: Any) -> MarginProblem:
    problem = object.__new__(MarginProblem)
    problem._keep(**fields)
    return problem


def norms_of(problem: MarginProblem) -> Float[np.ndarray, "*instances m"]:
    """``||a_j|| ||b_j||``."""
    return np.linalg.norm(problem.left, axis=-1) * np.linalg.norm(problem.right, axis=-1)


def places_of(
    problem: MarginProblem, constraints: Bool[np.ndarray, "*instances m"]
) -> tuple[Int[np.ndarray, "chosen"], ...]:
    """Instance, if there is an axis of them, sequence, query and token of the constraints chosen.

    Args:
        problem: Constraints that come from tokens.
        constraints: True for those chosen.
    """
    assert problem.sequence is not None and problem.query is not None and problem.token is not None
    chosen = np.nonzero(constraints)
    numbers = (problem.sequence, problem.query, problem.token)
    return (*chosen[:-1], *(array[chosen] for array in numbers))


def tokens_of(
    problem: MarginProblem, constraints: Bool[np.ndarray, "*instances m"]
) -> Bool[np.ndarray, "*instances sequence query token"]:
    """The tokens that the constraints chosen compare with the selected one, as a mask."""
    assert problem.selection is not None
    mask = np.zeros(problem.selection.mask.shape, dtype=bool)
    mask[places_of(problem, constraints)] = True
    return mask


def _flags(argument: str, value: Any) -> Bool[np.ndarray, "..."]:
    """A copy as booleans."""
    array = as_plain(argument, value)
    if array.dtype != bool:
        raise InvalidInputError(
            argument, f"the data type is {array.dtype}", "Give booleans: True or False"
        )
    return array.copy()


def _numbers(argument: str, value: Any) -> Int[np.ndarray, "..."]:
    """Numbers of sequences, queries or tokens; -1 in empty slots."""
    array = as_plain(argument, value)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(
            argument, f"the data type is {array.dtype}", "Give integers, counted from 0"
        )
    if (array < -1).any():
        raise InvalidInputError(
            argument, f"one is {array.min()}", "Give integers from 0, or -1 in empty slots"
        )
    return array


def _spread(argument: str, array: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
    """A copy broadcast to one number a constraint."""
    try:
        return np.broadcast_to(array, rows).copy()
    except ValueError:
        raise InvalidInputError(
            argument, f"the shape is {array.shape}", f"Give one entry a constraint: {rows}"
        ) from None


def constraints_of(tokens: Tokens, selection: Selection, ties: str) -> dict[str, Any]:
    """Arguments of ``MarginProblem`` for ``MarginProblem.from_selection``, which describes them."""
    check_choice("ties", ties, ("refuse", "equal"))
    check_kind("tokens", tokens, Tokens, "Give Tokens(keys, queries, labels)")
    example = "Give one, such as Selection.from_index(tokens, index)"
    check_kind("selection", selection, Selection, example)
    _check_shape(tokens, selection)
    batched = tokens.instances is not None
    lead = np.s_[:] if batched else np.s_[None]
    keys, queries, mask = tokens.keys[lead], tokens.queries[lead], tokens.mask[lead]
    selected, tied = selection.mask[lead], selection.tied[lead]
    _check(selected, tied, mask, ties, batched)

    representative = selected.argmax(-1)  # (instance, sequence, query)
    constrained = mask & (np.arange(mask.shape[-1]) != representative[..., None])
    instance, sequence, query, token = np.nonzero(constrained)
    counts = constrained.sum((1, 2, 3))
    slots = int(counts.max(initial=0))
    starts = np.cumsum(counts) - counts
    place = (instance, np.arange(instance.size) - starts[instance])

    chosen = representative[instance, sequence, query]
    equal = selected[instance, sequence, query, token]
    shape = (len(counts), slots)
    width = keys.shape[-1] + queries.shape[-1]

    def remedy(available: float) -> str:
        fitting = int(available // (8 * width * len(counts)))
        return f"About {fitting:,} constraints an instance would fit; give fewer tokens"

    require_memory(
        "tokens",
        f"{slots:,} constraints for each of {len(counts)} instances",
        needed=8 * counts.size * slots * width,
        remedy=remedy,
    )
    left = np.zeros((*shape, keys.shape[-1]))
    right = np.zeros((*shape, queries.shape[-1]))
    for start in range(0, instance.size, _PORTION):
        j = np.s_[start : start + _PORTION]
        i, n, slot = instance[j], sequence[j], (place[0][j], place[1][j])
        left[slot] = keys[i, n, chosen[j]] - keys[i, n, token[j]]
        right[slot] = queries[i, n, query[j]]
    if not np.isfinite(left).all():
        raise InvalidInputError(
            "tokens", "the difference of two keys is not finite", "Scale the keys down"
        )
    apart, queried = (np.asarray(rows.any(-1))[place] for rows in (left, right))
    _warn_of_impossible(apart, queried, ~equal, (instance, sequence, query, token), batched)

    result: dict[str, Any] = {
        "left": left,
        "right": right,
        "bounds": _scatter(np.where(equal, 0.0, 1.0), place, shape, 0.0),
        "equality": _scatter(equal, place, shape, False),
        "present": _scatter(np.ones_like(equal), place, shape, False),
        "sequence": _scatter(sequence, place, shape, -1),
        "query": _scatter(query, place, shape, -1),
        "token": _scatter(token, place, shape, -1),
    }
    return result if batched else {name: array[0] for name, array in result.items()}


def _check(
    selected: Bool[np.ndarray, "instances n k t"],
    tied: Bool[np.ndarray, "instances n k"],
    mask: Bool[np.ndarray, "instances n k t"],
    ties: str,
    batched: bool,
) -> None:
    """Raises InvalidInputError unless every row selects tokens it may attend to, without ties."""
    wrong = np.asarray(~selected.any(-1) | (selected & ~mask).any(-1))
    if wrong.any():
        raise InvalidInputError(
            "selection",
            f"no token, or a masked one, is selected in {_rows(wrong, batched)}",
            "Select at least one token in every row, among those it may attend to",
        )
    if ties == "refuse" and tied.any():
        raise InvalidInputError(
            "selection",
            f"several tokens are tied in {_rows(tied, batched)}, so which is kept is undecided",
            "Select one of them, or keep them all with equal weight, by "
            'MarginProblem.from_selection(tokens, selection, ties="equal")',
        )


def _warn_of_impossible(
    apart: Bool[np.ndarray, "constraints"],
    queried: Bool[np.ndarray, "constraints"],
    inequality: Bool[np.ndarray, "constraints"],
    places: tuple[np.ndarray, ...],
    batched: bool,
) -> None:
    """Warns of constraints ``0 >= 1``: copies of the selected token, and queries that are zero.

    Args:
        apart: Whether the token differs from the selected one.
        queried: Whether the query is not zero.
        inequality: Whether the constraint is an inequality.
        places: Instance, sequence, query and token of each constraint.
        batched: Whether the data have an axis of instances.
    """
    no_query = inequality & ~queried
    copies = inequality & ~apart & ~no_query
    instance, sequence, query, token = places
    for impossible, what in (
        (copies, "tokens equal to the selected one, which no matrix can tell apart"),
        (no_query, "queries that are zero, under which every token has the same score"),
    ):
        found = np.flatnonzero(impossible)
        if not found.size:
            continue
        named = [
            (f"instance {instance[j]}, " if batched else "")
            + f"sequence {sequence[j]}, query {query[j]}, token {token[j]}"
            for j in found[:_NAMED]
        ]
        more = f"; and {found.size - _NAMED} more" if found.size > _NAMED else ""
        warn_caller(
            f"{found.size} constraints cannot be met: {what} ({'; '.join(named)}{more})",
            DuplicateTokensWarning,
        )


def _scatter(
    values: np.ndarray, place: tuple[np.ndarray, np.ndarray], shape: tuple[int, ...], fill: Any
) -> np.ndarray:
    """Values put in their slots, the rest filled."""
    result = np.full(shape, fill, dtype=values.dtype)
    result[place] = values
    return result


def _rows(wrong: Bool[np.ndarray, "instances n k"], batched: bool) -> str:
    """The rows marked, in words."""
    found = np.argwhere(wrong)
    named = [
        (f"instance {i}, " if batched else "") + f"sequence {n}, query {k}"
        for i, n, k in found[:_NAMED]
    ]
    more = f"; and {len(found) - _NAMED} more rows" if len(found) > _NAMED else ""
    return "; ".join(named) + more
