"""Tokens: the sequences attention reads, the queries it reads them for, and what is masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.results import Described, Rows
from attractor.support.checks import is_whole, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_real, check_broadcast, finite_where
from attractor.tokens.validation import (
    check_instance_numbers,
    check_keys,
    check_labels,
    check_mask,
    check_mask_size,
    check_queries,
    check_rows,
    check_weights,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Tokens(Described):
    """A data set of attention rows: keys, queries, mask, labels, and the values averaged.

    Query ``k`` of sequence ``i`` gives token ``t`` the score

        s_ikt = x_it^T W z_ik

    and attention returns the average of the values with weights ``softmax(s_ik)``. Several
    queries of one sequence share its keys. A leading axis, where there is one, counts
    instances: data sets of the same shape that are solved and trained side by side.

    Arrays are kept as read-only float64 with a query axis, whatever shape they came in.

    Attributes:
        keys: Token vectors ``x``, ``(*instances, sequence, token, d)``.
        queries: Query vectors ``z``, ``(*instances, sequence, query, e)``.
        values: What attention averages, ``(*instances, sequence, token, v)``; the keys unless
            given.
        labels: Targets ``(*instances, sequence, query)``, or None.
        weights: How much each row counts in the loss, ``(*instances, sequence, query)``, one on
            average, zero where the row is padding; None where all count the same.
        mask: True where a query may attend, ``(*instances, sequence, query, token)``; a row of
            padding has its first token alone, and so neither constraints nor gradients.
        instance_numbers: The number of each instance; it names the instance's randomness and
            stays with it when instances are sliced.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]  # two sequences of two tokens
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> tokens
        Tokens(2 sequences x 2 tokens, 1 queries each, keys in R^2, queries in R^2, labeled)
        >>> tokens.scores([[1, 0], [0, 1]])[:, 0]
        array([[ 1.,  0.],
               [ 1., -2.]])
    """

    keys: Float[np.ndarray, "*instances sequence token d"]
    queries: Float[np.ndarray, "*instances sequence query e"]
    values: Float[np.ndarray, "*instances sequence token v"]
    labels: Float[np.ndarray, "*instances sequence query"] | None
    weights: Float[np.ndarray, "*instances sequence query"] | None
    mask: Bool[np.ndarray, "*instances sequence query token"]
    instance_numbers: Int[np.ndarray, "instances"]

    def __init__(
        self,
        keys: Any,
        queries: Any,
        labels: Any = None,
        mask: Any = None,
        values: Any = None,
        *,
        weights: Any = None,
        rows: Any = None,
        instance_numbers: Any = None,
    ) -> None:
        """Checks and stores a data set.

        Args:
            keys: ``(n, T, d)``, or ``(instances, n, T, d)``.
            queries: ``(n, e)``, or ``(n, K, e)`` for K queries a sequence; with the axis of
                instances where keys have one.
            labels: ``(n,)`` or ``(n, K)``.
            mask: ``(n, T)`` or ``(n, K, T)``; True or 1 where a token may be attended to.
            values: ``(n, T, v)``; default: the keys.
            weights: ``(n,)`` or ``(n, K)``; rows of weight zero only fill up. Default: all alike.
            rows: ``(n,)`` or ``(n, K)``; False or 0 where a query is padding, which is left out:
                it has weight zero and needs no token to attend to. Default: none is. What mask and
                rows leave out may be NaN.
            instance_numbers: ``(instances,)`` distinct integers; default: 0, 1, 2, ...

        Raises:
            InvalidInputError: If an array has the wrong shape or type, holds NaN or infinity where
                mask and rows leave nothing out, a query has no token to attend to, or no query
                anywhere has two.
        """
        keys = check_keys(as_float64("keys", keys, finite=False))
        lead, (n, length) = keys.shape[:-3], keys.shape[-3:-1]
        queries = check_queries(as_float64("queries", queries, finite=False), lead, n)
        per_sequence = queries.shape[-2]
        same = values is None
        values = keys if same else as_float64("values", values, finite=False)
        if values.ndim != keys.ndim or values.shape[:-1] != keys.shape[:-1] or not values.shape[-1]:
            raise InvalidInputError(
                "values",
                f"the shape is {values.shape}, but keys have {keys.shape}",
                f"Give {(*keys.shape[:-1], 'v')}: one vector for every token",
            )
        shape = (*lead, n, per_sequence, length)
        padded = rows is not None
        rows = check_rows(rows, shape[:-1]) if padded else np.ones(shape[:-1], dtype=bool)
        mask = check_mask(mask, shape, rows if padded else None)
        attended = (mask & rows[..., None]).any(-2)[..., None]
        keys = finite_where("keys", keys, attended)
        values = keys if same else finite_where("values", values, attended)
        queries = finite_where("queries", queries, rows[..., None])
        if labels is not None:
            labels = check_labels(as_float64("labels", labels, finite=False), shape[:-1])
            labels = finite_where("labels", labels, rows)
        if weights is not None:
            weights = check_weights(as_float64("weights", weights, finite=False), rows)
        if not rows.all():
            weights = check_weights(rows * (1.0 if weights is None else weights), rows)
        numbers = check_instance_numbers(instance_numbers, lead[0] if lead else 1)
        fields = dict(keys=keys, queries=queries, values=values, labels=labels, weights=weights)
        for name, array in (fields | {"mask": mask}).items():
            object.__setattr__(self, name, array)
        object.__setattr__(self, "instance_numbers", numbers)

    @classmethod
    def cross_attention(
        cls, keys: Any, queries: Any, labels: Any = None, mask: Any = None
    ) -> Tokens:
        """Rows whose queries are given apart from the tokens: ``softmax(X W z)``."""
        return cls(keys, queries, labels, mask)

    @classmethod
    def self_attention(
        cls, keys: Any, labels: Any = None, query_position: int = 0, mask: Any = None
    ) -> Tokens:
        """Rows whose query is one of their own tokens: ``z_i = x_i,query_position``.

        Args:
            keys: ``(*instances, n, T, d)``.
            labels: ``(*instances, n)``.
            query_position: Position of the token that is the query; negative counts from the end.
            mask: ``(*instances, n, T)``.

        Raises:
            InvalidInputError: If there is no token at that position.
        """
        keys = check_keys(as_float64("keys", keys, finite=False))
        length = keys.shape[-2]
        if not is_whole(query_position) or not -length <= query_position < length:
            raise InvalidInputError(
                "query_position",
                f"{shown(query_position)} is outside a sequence of {length} tokens",
                f"Give an integer from {-length} to {length - 1}",
            )
        return cls(keys, keys[..., query_position, :], labels, mask)

    @classmethod
    def prompt_vector(
        cls, keys: Any, labels: Any = None, weights: Any = None, mask: Any = None
    ) -> Tokens:
        """Rows of a trained prompt vector ``p``: scores ``X weights p``, with ``p`` as ``W``.

        The query is the number one, so that ``W`` is the column ``p``; the values averaged stay
        the tokens ``X`` themselves.

        Args:
            keys: The tokens ``X``, ``(*instances, n, T, v)``.
            labels: ``(*instances, n)``.
            weights: Fixed key weights ``(v, d)``; default: the identity.
            mask: ``(*instances, n, T)``.

        Raises:
            InvalidInputError: If ``weights`` does not fit the tokens.
        """
        values = as_float64("keys", keys, finite=False)
        projected = values
        if weights is not None:
            weights = as_float64("weights", weights)
            if weights.ndim != 2 or weights.shape[0] != values.shape[-1]:
                raise InvalidInputError(
                    "weights",
                    f"the shape is {weights.shape}",
                    f"Give ({values.shape[-1]}, d): it multiplies tokens from the right",
                )
            projected = values @ weights
        return cls(projected, np.ones((*values.shape[:-2], 1)), labels, mask, values)

    @classmethod
    def causal(cls, keys: Any, labels: Any = None, mask: Any = None) -> Tokens:
        """One row per position, which sees itself and its past; the rows share their keys.

        Args:
            keys: ``(*instances, n, T, d)``.
            labels: ``(*instances, n, T)``: a label for every position.
            mask: ``(*instances, n, T)``, False on padding at the end of short sequences. A
                padded position still needs a row of its own, and sees only the first token:
                like the first position it gives no constraint and no gradient.

        Raises:
            InvalidInputError: If padding comes before a token, or shapes do not fit.
        """
        keys = check_keys(as_float64("keys", keys, finite=False))
        length = keys.shape[-2]
        check_mask_size("keys", (*keys.shape[:-2], length, length))
        admissible = np.tri(length, dtype=bool)
        if mask is not None:
            real = check_mask(mask, (*keys.shape[:-2], 1, length))[..., 0, :]
            if (real[..., 1:] & ~real[..., :-1]).any():
                raise InvalidInputError(
                    "mask", "padding stands before a token", "Pad causal sequences at the end"
                )
            keys = finite_where("keys", keys, real[..., None])
            if labels is not None:  # a row of padding is that of the first position once more
                labels = check_labels(as_float64("labels", labels, finite=False), real.shape)
                labels = np.where(real | np.isfinite(labels), labels, labels[..., :1])
            first_only = np.arange(length) == 0
            admissible = np.where(real[..., :, None], admissible, first_only)
        else:
            admissible = np.broadcast_to(admissible, (*keys.shape[:-2], length, length))
        return cls(keys, keys, labels, admissible)

    @property
    def instances(self) -> int | None:
        """Number of instances, or None without an axis of instances."""
        return self.keys.shape[0] if self.keys.ndim == 4 else None

    @property
    def sequences(self) -> int:
        """Number of sequences n in a data set."""
        return self.keys.shape[-3]

    @property
    def length(self) -> int:
        """Number of tokens T in a sequence, padding included."""
        return self.keys.shape[-2]

    @property
    def queries_per_sequence(self) -> int:
        """Number of queries K that each sequence answers."""
        return self.queries.shape[-2]

    @property
    def key_dimension(self) -> int:
        """Dimension d of the keys: the rows of W."""
        return self.keys.shape[-1]

    @property
    def query_dimension(self) -> int:
        """Dimension e of the queries: the columns of W."""
        return self.queries.shape[-1]

    @property
    def value_dimension(self) -> int:
        """Dimension v of the values: what a head reads."""
        return self.values.shape[-1]

    @property
    def single_token_rows(self) -> int:
        """Number of queries with one token to attend to: no constraint and no gradient."""
        return int((self.mask.sum(-1) == 1).sum())

    def __getitem__(self, index: Any) -> Tokens:
        """Chooses instances; they keep their numbers, and with them their randomness."""
        if self.instances is None:
            raise InvalidInputError(
                "index", "these tokens have no axis of instances", "Slice their arrays instead"
            )
        return Tokens(
            self.keys[index],
            self.queries[index],
            None if self.labels is None else self.labels[index],
            self.mask[index],
            None if self.values is self.keys else self.values[index],
            weights=None if self.weights is None else self.weights[index],
            instance_numbers=np.atleast_1d(self.instance_numbers[index]),
        )

    def scores(
        self, W: Float[np.ndarray, "*batch d e"]
    ) -> Float[np.ndarray, "*batch sequence query token"]:
        """Scores ``x_it^T W z_ik``, minus infinity where masked.

        Args:
            W: Matrices; leading axes broadcast against the axis of instances.
        """
        W = as_real("W", W, ("...", self.key_dimension, self.query_dimension))
        check_broadcast("W", W.shape[:-2], self.keys.shape[:-3])
        scores = np.einsum("...nkc,...ntc->...nkt", self.queries @ _turned(W), self.keys)
        return np.where(self.mask, scores, -np.inf)

    def adjoint(
        self, weights: Float[np.ndarray, "*batch sequence query token"]
    ) -> Float[np.ndarray, "*batch d e"]:
        """The adjoint of ``scores``: ``sum_ikt weights_ikt x_it z_ik^T``."""
        weights = as_real("weights", weights, ("...", *self.mask.shape[-3:]))
        check_broadcast("weights", weights.shape, self.mask.shape)
        weighted = np.einsum("...nkt,...ntc->...nkc", np.where(self.mask, weights, 0), self.keys)
        return np.einsum("...nkc,...nke->...ce", weighted, self.queries)

    def __repr__(self) -> str:
        lead = "" if self.instances is None else f"{self.instances} instances of "
        ragged = "" if self.mask.all() else ", masked"
        return (
            f"Tokens({lead}{self.sequences} sequences x {self.length} tokens, "
            f"{self.queries_per_sequence} queries each, keys in R^{self.key_dimension}, "
            f"queries in R^{self.query_dimension}{ragged}"
            f"{'' if self.labels is None else ', labeled'})"
        )

    def _summary(self) -> tuple[str, Rows]:
        several = [] if self.instances is None else [("instances", f"{self.instances:,}")]
        lengths = self.mask.sum(-1)
        attended = f"{lengths.min()} to {lengths.max()}" if np.ptp(lengths) else f"{lengths.max()}"
        rows = [
            *several,
            ("sequences", f"{self.sequences:,} of {self.length:,} tokens"),
            ("queries of each", f"{self.queries_per_sequence:,}"),
            ("tokens of a query", f"{attended}, as the mask allows"),
            ("keys", f"in R^{self.key_dimension}"),
            ("queries", f"in R^{self.query_dimension}"),
            ("values", "the keys" if self.values is self.keys else f"in R^{self.value_dimension}"),
            ("labels", _values_in_words(self.labels)),
        ]
        if self.weights is not None:
            rows.append(("weights of queries", _values_in_words(self.weights)))
        return "Tokens", rows


def _values_in_words(values: Float[np.ndarray, "..."] | None) -> str:
    """How often each of a few values occurs, or their range."""
    if values is None:
        return "none"
    found, counts = np.unique(values, return_counts=True)
    if len(found) > 4:
        return f"{found[0]:.4g} to {found[-1]:.4g}"
    return ", ".join(f"{count:,} of {one:g}" for one, count in zip(found, counts, strict=True))


def _turned(W: Any) -> Float[np.ndarray, "*batch 1 e d"]:
    """W transposed, with an axis for the sequences."""
    return np.swapaxes(W, -1, -2)[..., None, :, :]
