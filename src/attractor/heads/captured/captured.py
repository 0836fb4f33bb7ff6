"""What attention heads see and do on texts: their keys, queries and attention, without a model."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import softmax

from attractor.results import Described, Rows
from attractor.support.checks import check_count, check_function, check_items, check_kind, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import (
    LARGEST,
    as_float64,
    as_integers,
    as_plain,
    check_shape,
    check_unmasked,
    finite_where,
)


class Word(StrEnum):
    """A word of an answer.

    Attributes:
        message: What it means, in a line that pages of the library and glossaries of reports share.
    """

    message: str

    def __new__(cls, value: str, message: str) -> Self:
        """The word, known by itself, with its meaning."""
        word = str.__new__(cls, value)
        word._value_ = value
        word.message = message
        return word


class CaptureStatus(Word):
    """Whether the scores of a captured head are ``k^T q``, and if not, why not."""

    BILINEAR = "bilinear", "softmax of k^T q is the attention of the model"
    NOT_BILINEAR = (
        "not bilinear",
        "softmax of k^T q is not the attention of the model: a bias by position, say",
    )
    FRAME_UNKNOWN = (
        "frame unknown",
        "keys and queries are rotated by position in a way that could not be undone",
    )
    NOT_DETERMINED = (
        "not determined",
        "rounding of large scores, or a sink that takes nearly all, hides whether softmax of k^T q "
        "is the attention of the model",
    )
    NOT_SUPPORTED = (
        "not supported",
        "the model never called the attention that was registered, or in a way not known",
    )


CAPTURED_BY = "Give what capture_heads, load_captured or from_arrays returned"
"""What to do where heads are expected."""


@dataclasses.dataclass(frozen=True, eq=False)
class Projections:
    """The matrices that a layer makes queries and keys with: ``q = Q z + b`` and ``k = K x + c``.

    ``z`` and ``x`` are what the layer reads at the query and at a token, and any scale of the
    scores is in ``Q`` and ``b``; ``c`` changes no selection. Without positions the scores of a head
    are ``x^T K^T (Q z + b)``, and norms of the trained matrix are those of ``K^T Q``.

    Attributes:
        query: ``Q`` of each head, ``(heads, width, query_hidden)``.
        bias: ``b`` of each head, ``(heads, width)``; None where the layer has none.
        key: ``K`` of each key head, ``(key_heads, width, key_hidden)``; None where keys are no
            linear function of what the layer reads, as where positions rotate them.
    """

    query: Float[np.ndarray, "heads width query_hidden"]
    bias: Float[np.ndarray, "heads width"] | None = None
    key: Float[np.ndarray, "key_heads width key_hidden"] | None = None

    def __post_init__(self) -> None:
        """Checks kinds of numbers, and that the axes fit.

        Raises:
            InvalidInputError: If they do not.
        """
        heads, width, _ = _axes("query", self.query, 3)
        if self.bias is not None:
            _axes("bias", self.bias, 2)
            check_shape("bias", self.bias.shape, [heads, width])
        if self.key is not None:
            _axes("key", self.key, 3)
            check_shape("key", self.key.shape, ["key_heads", width, "key_hidden"])
        _make_finite(self, "query", "bias", "key")


@dataclasses.dataclass(frozen=True, eq=False)
class CapturedLayer:
    """All heads of a layer at the queries that were drawn: scores are ``keys @ queries``.

    Keys are those that the query meets, in its own frame: where positions rotate keys and
    queries, the rotation of the query is undone in both, which leaves their scores as they are.
    Several query heads may share a key head (grouped-query attention): head ``h`` of ``heads``
    reads key head ``h * key_heads // heads``.

    Attributes:
        queries: Queries, ``(queries, heads, width)``, any scale of the scores included.
        keys: Keys of every token, ``(queries, key_heads, tokens, width)``; zero where they were
            not finite and are not allowed.
        allowed: Tokens that the model's own mask lets the query attend to, ``(queries, tokens)``.
        attention: The attention that the model itself computed, ``(queries, heads, tokens)``; it
            need not add up to one, where a sink is in the denominator.
        values: Values, ``(queries, key_heads, tokens, value_width)``; None where not captured.
        self_check: Largest difference of a head between its attention and the softmax of its
            scores, ``(heads,)``, both as shares of what tokens get together, a bound on scores
            being the model's own; where rounding may be why, both are in double precision. NaN
            where no attention was seen, or none is left beside a sink.
        status: What can be said of each head.
        projections: The matrices that made keys and queries; None where they are not known.
    """

    queries: Float[np.ndarray, "queries heads width"]
    keys: Float[np.ndarray, "queries key_heads tokens width"]
    allowed: Bool[np.ndarray, "queries tokens"]
    attention: Float[np.ndarray, "queries heads tokens"]
    values: Float[np.ndarray, "queries key_heads tokens value_width"] | None
    self_check: Float[np.ndarray, "heads"]
    status: tuple[CaptureStatus, ...]
    projections: Projections | None = None

    def __post_init__(self) -> None:
        """Checks kinds of numbers, and that the axes fit.

        Raises:
            InvalidInputError: If they do not.
        """
        count, heads, width = _axes("queries", self.queries, 3)
        key_heads, tokens = _axes("keys", self.keys, 4)[1:3]
        _axes("allowed", self.allowed, 2, "b")
        _axes("attention", self.attention, 3)
        _axes("self_check", self.self_check, 1)
        check_items("status", self.status, CaptureStatus)
        check_shape("keys", self.keys.shape, [count, key_heads, tokens, width])
        if heads % key_heads:
            raise InvalidInputError(
                "keys", f"{key_heads} key heads do not divide {heads} heads", "Give whole groups"
            )
        check_shape("allowed", self.allowed.shape, [count, tokens])
        check_shape("attention", self.attention.shape, [count, heads, tokens])
        check_shape("self_check", self.self_check.shape, [heads])
        if self.values is not None:
            _axes("values", self.values, 4)
            check_shape("values", self.values.shape, [count, key_heads, tokens, "value_width"])
        if len(self.status) != heads:
            raise InvalidInputError(
                "status", f"it has {len(self.status)} entries for {heads} heads", "Give one a head"
            )
        _make_finite(self, "queries", "attention")
        _make_finite(self, "keys", "values", used=self.allowed[:, None, :, None])
        if self.projections is not None:
            made = check_kind("projections", self.projections, Projections, "Give matrices of each")
            check_shape("projections.query", made.query.shape, [heads, width, "query_hidden"])
            if made.key is not None:
                check_shape("projections.key", made.key.shape, [key_heads, width, "key_hidden"])

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.queries.shape[1]

    def key_head(self, head: int) -> int:
        """The key head that a head reads.

        Raises:
            InvalidInputError: If there is no such head.
        """
        head = check_count("head", head, 0, self.heads - 1)
        return head * self.keys.shape[1] // self.heads


class Captured(Described):
    """Heads of a model on texts: what ``capture_heads`` found, or arrays of any other origin.

    A layer is read from its file when it is asked for, one at a time.

    Attributes:
        document: The document of each query.
        position: The place of each query among its tokens.
        token: The tokens that each query sees, as texts, ``(queries, tokens)``.
        special: Which of them are no content: separators, padding.
        origin: What is known of the model and texts: names, hashes, versions.
    """

    def __init__(
        self,
        layers: Mapping[int, CapturedLayer | Callable[[], CapturedLayer]],
        *,
        document: Int[np.ndarray, "queries"],
        position: Int[np.ndarray, "queries"],
        token: np.ndarray | Sequence[Sequence[str]],
        special: Bool[np.ndarray, "queries tokens"],
        origin: Mapping[str, str] | None = None,
    ) -> None:
        """Puts together what was captured.

        Args:
            layers: The layers by their numbers, or functions that read them.
            document: The document of each query.
            position: The place of each query among its tokens.
            token: The tokens that each query sees.
            special: Which of them are no content.
            origin: What is known of the model and texts.

        Raises:
            InvalidInputError: If the axes do not fit.
        """
        if not isinstance(layers, Mapping) or not layers:
            raise InvalidInputError(
                "layers", f"{shown(layers)} is no table of layers", "Give one at least"
            )
        for number, layer in layers.items():
            check_count("layers", number, 0)
            if not isinstance(layer, CapturedLayer):
                check_function(f"layers[{number}]", layer, "Give layers, or what reads them")
        self.document = as_integers("document", document, ["queries"])
        self.position = as_integers("position", position, [len(self.document)])
        self.token = _texts("token", token)
        check_shape("token", self.token.shape, [len(self.document), "tokens"])
        self.special = _flags("special", special, self.token.shape, False)
        self.origin = _origin(origin)
        self._layers = dict(layers)

    def __repr__(self) -> str:
        count, tokens = self.token.shape
        return (
            f"Captured({len(self.layers)} layers at {count:,} queries of up to {tokens:,} tokens)"
        )

    def _summary(self) -> tuple[str, Rows]:
        count, tokens = self.token.shape
        rows = [
            ("layers", ", ".join(map(str, self.layers))),
            ("queries", f"{count:,} of {len(np.unique(self.document)):,} documents"),
            ("tokens of a query", f"up to {tokens:,}"),
        ]
        return "Captured heads", rows + sorted(self.origin.items())

    @property
    def layers(self) -> list[int]:
        """The numbers of the layers."""
        return sorted(self._layers)

    def layer(self, number: int) -> CapturedLayer:
        """A layer, in memory.

        Raises:
            InvalidInputError: If it was not captured, or does not fit the queries.
        """
        if check_count("layer", number, 0) not in self._layers:
            raise InvalidInputError(
                "layer", f"{number} was not captured", f"Give one of {self.layers}"
            )
        given = self._layers[number]
        found = given if isinstance(given, CapturedLayer) else given()
        check_shape(f"allowed of layer {number}", found.allowed.shape, list(self.token.shape))
        return found

    def __iter__(self) -> Iterator[tuple[int, CapturedLayer]]:
        """The layers in turn, with their numbers."""
        return ((number, self.layer(number)) for number in self.layers)

    @classmethod
    def from_arrays(
        cls,
        keys: Any,
        queries: Any,
        *,
        mask: Any = None,
        values: Any = None,
        document: Any = None,
        position: Any = None,
        token: Sequence[Sequence[str]] | None = None,
        special: Any = None,
        projections: Projections | None = None,
        origin: Mapping[str, str] | None = None,
    ) -> Captured:
        """Heads of one layer from plain arrays, whoever made them.

        Args:
            keys: Keys that each query meets, ``(queries, key_heads, tokens, width)``, or
                ``(queries, tokens, width)`` of one head.
            queries: Queries, scale of the scores included, ``(queries, heads, width)``, or
                ``(queries, width)`` of one head.
            mask: Tokens that each query may attend to, ``(queries, tokens)``; None for all.
            values: Values, axes as those of keys.
            document: The document of each query; None for another one each.
            position: The place of each query among its tokens; None for the last.
            token: The tokens as texts, ``(queries, tokens)``; None for their numbers.
            special: Tokens that are no content, ``(queries, tokens)``; None for none.
            projections: The matrices that made keys and queries; None where they are not known.
            origin: What is known of the model and texts.

        Raises:
            InvalidInputError: If an array is not of finite numbers, or axes do not fit.

        Example:
            >>> import numpy as np
            >>> import attractor as at
            >>> rng = np.random.default_rng(0)
            >>> keys, queries = rng.normal(size=(40, 6, 4)), rng.normal(size=(40, 4))
            >>> captured = at.Captured.from_arrays(keys, queries)
            >>> captured.layers
            [0]
        """
        keys = as_float64("keys", keys, finite=False, largest=LARGEST)
        queries = as_float64("queries", queries, largest=LARGEST)
        one = queries.ndim == 2
        if one:
            keys, queries = keys[:, None], queries[:, None]
        check_shape("queries", queries.shape, ["queries", "heads", "width"])
        count, heads, width = queries.shape
        check_shape("keys", keys.shape, [count, "key_heads", "tokens", width])
        key_heads, tokens = keys.shape[1:3]
        if values is not None:
            values = as_float64("values", values, finite=False)
            values = values[:, None] if one else values
        allowed = _flags("mask", mask, (count, tokens), True)
        if not allowed.any(-1).all():
            raise InvalidInputError(
                "mask", "some query may attend to nothing", "Leave out such a query"
            )
        if key_heads == 0 or heads % key_heads:
            raise InvalidInputError(
                "keys", f"{key_heads} key heads do not divide {heads} heads", "Give whole groups"
            )
        keys = finite_where("keys", keys, allowed[:, None, :, None])
        groups = np.repeat(keys, heads // key_heads, axis=1)
        scores = np.einsum("qhtw,qhw->qht", groups, queries)
        layer = CapturedLayer(
            queries=queries,
            keys=keys,
            allowed=allowed,
            attention=softmax(np.where(allowed[:, None], scores, -np.inf), axis=-1),
            values=values,
            self_check=np.zeros(heads),
            status=(CaptureStatus.BILINEAR,) * heads,
            projections=projections,
        )
        names = np.array([str(number) for number in range(tokens)], dtype=object)
        return cls(
            {0: layer},
            document=np.arange(count) if document is None else document,
            position=np.full(count, tokens - 1) if position is None else position,
            token=np.tile(names, (count, 1)) if token is None else token,
            special=_flags("special", special, (count, tokens), False),
            origin=origin,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all layers to a NetCDF file, one after another.

        Args:
            path: The file, ending in ``.nc``; one that is there is replaced.

        Raises:
            InvalidInputError: If the path cannot be written.
            WriteError: If writing fails, on a full disk say; what was there stays as it was.
        """
        from attractor.heads.captured.captured_file import writing_captured

        with writing_captured(path) as writer:
            for number, layer in self:
                writer.write(number, layer)
            writer.describe(self)


def of_all(pieces: Sequence[CapturedLayer]) -> CapturedLayer:
    """A layer from its queries in several pieces."""

    def joined(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in pieces])

    self_check, status = worst([(one.self_check, one.status) for one in pieces])
    return CapturedLayer(
        queries=joined("queries"),
        keys=joined("keys"),
        allowed=joined("allowed"),
        attention=joined("attention"),
        values=None if pieces[0].values is None else joined("values"),
        self_check=self_check,
        status=status,
        projections=pieces[0].projections,
    )


_WORST_FIRST = [*list(CaptureStatus)[1:], CaptureStatus.BILINEAR]


def worst(
    pieces: Sequence[tuple[Float[np.ndarray, "heads"], tuple[CaptureStatus, ...]]],
) -> tuple[Float[np.ndarray, "heads"], tuple[CaptureStatus, ...]]:
    """Self-checks and statuses of heads from several pieces: the worst that one of them says."""
    of_heads = zip(*(status for _, status in pieces), strict=True)
    status = tuple(min(each, key=_WORST_FIRST.index) for each in of_heads)
    return np.max([self_check for self_check, _ in pieces], axis=0), status


def _axes(name: str, array: np.ndarray, count: int, kind: str = "f") -> tuple[int, ...]:
    check_kind(name, array, np.ndarray, "Give an array")
    check_unmasked(name, array)
    if array.dtype.kind != kind or array.dtype == np.float16:
        wanted = "true and false" if kind == "b" else "float32 or float64"
        raise InvalidInputError(name, f"it holds {array.dtype}", f"Give {wanted}")
    check_shape(name, array.shape, [f"axis {number}" for number in range(count)])
    return array.shape


def _make_finite(given: Any, *names: str, used: Any = True) -> None:
    for name in names:
        if (array := getattr(given, name)) is not None:
            object.__setattr__(given, name, finite_where(name, array, used))


def _flags(name: str, value: Any, shape: tuple[int, ...], default: bool) -> np.ndarray:
    if value is None:
        return np.full(shape, default)
    array = as_plain(name, value)
    if array.dtype != bool:
        raise InvalidInputError(name, f"it holds {array.dtype}", "Give true and false")
    check_shape(name, array.shape, list(shape))
    return array


def _texts(name: str, value: Any) -> np.ndarray:
    rows = [
        check_items(f"{name}[{place}]", row, str)
        for place, row in enumerate(check_items(name, value, object, 1))
    ]
    if len({len(row) for row in rows}) > 1:
        raise InvalidInputError(name, "its rows differ in length", "Pad them with ''")
    return np.array(rows, dtype=object)


def _origin(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    check_kind("origin", given, Mapping, "Give texts by name")
    for name, text in given.items():
        check_kind("origin", name, str, "Give texts by name")
        check_kind(f"origin[{name!r}]", text, str, "Give a text")
    return dict(given)
