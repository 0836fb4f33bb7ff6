"""Several attention heads, each with parameters of its own, and parameterizations by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.attention.parameterization import (
    KNOWN,
    Descent,
    Joint,
    KeyQuery,
    Parameterization,
    find_parameterization,
    plain_name,
)
from attractor.geometry import Frobenius, Geometry, Lp, Schatten
from attractor.support.checks import check_count, naming, suggest
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import fold_in
from attractor.tokens import Tokens
from attractor.tokens.arrangement import Arrangement, arranged

if TYPE_CHECKING:
    from jaxtyping import Array, PyTree

    from attractor.attention.rows import Rows

_HEAD_KEYS = 2**20
"""Where the numbers of the keys of attention heads begin: beyond those of arrays of one head."""
_SEVERAL = re.compile(r"(v?)(\d+)[x*](.+)")


class AttentionHeads(NamedTuple):
    """The parameters of several attention heads.

    Attributes:
        each: Those of each head, all of the same structure.
    """

    each: tuple[PyTree, ...]


@dataclass(frozen=True)
class MultiHead(Parameterization):
    """H attention heads with parameters of their own, whose predictions are added.

        f_i = sum_h v_h^T sum_t softmax(X_i W_h z_i)_t x_it

    The prediction heads ``v_h`` are those given to ``train``: one for each attention head, in a
    list, or one for all. Every attention head is an array of its own to optimizers, unless these
    are ``joined``. Recorded arrays have an axis ``attention_head``.

    The norm of the heads together is that of one matrix (``arrangement``). Where it is the largest
    of norms other than the spectral one and that of entries, it is not known.

    Attributes:
        attention: The parameterization of each attention head, or its name.
        heads: Their number H.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=1000,
        ...                parameterization="2 x W")
        >>> run.W().shape
        (2, 1, 2, 6, 6)
    """

    attention: Parameterization
    heads: int

    def __init__(self, attention: Parameterization | str = "W", heads: int = 2) -> None:
        """Checks the fields.

        Args:
            attention: The parameterization of each attention head, or its name: "W", "KQ" or "p".
            heads: Their number.

        Raises:
            InvalidInputError: If the heads are no parameterization of one attention head, or their
                number is no positive integer.
        """
        with naming(parameterization="attention"):
            one = get_parameterization(attention)
        if one.attention_heads is not None or one.trains_head:
            raise InvalidInputError(
                "attention",
                f"{one.name!r} is not one attention head with nothing beside it",
                'Give "W", "KQ", "p" or the like; Joint(MultiHead(...)) trains prediction heads',
            )
        object.__setattr__(self, "attention", one)
        object.__setattr__(self, "heads", check_count("heads", heads))

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The number of heads, and the name of what is trained of each."""
        return f"{self.heads} x {self.attention.name}"

    @property
    def attention_heads(self) -> int | None:
        """Number of attention heads."""
        return self.heads

    @property
    def settings(self) -> dict[str, int]:
        """Those of each head."""
        return self.attention.settings

    def in_gauge(self, parameters: AttentionHeads) -> AttentionHeads:
        """Every head turned by the same matrix."""
        return self.from_heads([self.attention.in_gauge(own) for own in parameters.each])

    def by_head(self, parameters: AttentionHeads) -> list[tuple[Parameterization, PyTree]]:
        """Each attention head with its parameters."""
        return [(self.attention, own) for own in parameters.each]

    def from_heads(self, parts: list[PyTree]) -> AttentionHeads:
        """All heads, put together again."""
        return AttentionHeads(tuple(parts))

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """Those of a head, with an axis of heads before them."""
        return {name: (self.heads, *own) for name, own in self.attention.shapes(d, e).items()}

    def from_arrays(self, arrays: Mapping[str, Any]) -> AttentionHeads:
        """Takes arrays apart along their axis of heads."""
        axes = self._axes()
        return self.from_heads(
            [
                self.attention.from_arrays(
                    {name: array[_at(axes[name], head)] for name, array in arrays.items()}
                )
                for head in range(self.heads)
            ]
        )

    def to_arrays(self, parameters: AttentionHeads) -> dict[str, Any]:
        """Arrays with an axis of heads."""
        parts = [self.attention.to_arrays(own) for own in parameters.each]
        return {name: _stack([p[name] for p in parts], axis) for name, axis in self._axes().items()}

    def scores(
        self, parameters: AttentionHeads, rows: Rows
    ) -> Float[Array, "attention_head sequence query token"]:
        """Scores ``x_t^T W_h z``, by head."""
        return _stack([self.attention.scores(own, rows) for own in parameters.each], 0)

    def effective_matrix(self, parameters: AttentionHeads) -> Float[Array, "attention_head d e"]:
        """The ``W_h``."""
        return _stack([self.attention.effective_matrix(own) for own in parameters.each], 0)

    def from_matrix(self, W: Float[Any, "*trials attention_head d e"]) -> AttentionHeads:
        """Parameters of each head whose matrix is the given one, or near to it."""
        heads = range(self.heads)
        return self.from_heads([self.attention.from_matrix(W[..., h, :, :]) for h in heads])

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """That of one head; ``descended`` says which norm of all of them is minimized."""
        return self.attention.effective_geometry(geometry)

    def descended(self, optimizer: Descent) -> Geometry | None:
        """The norm of the heads in one matrix that descending by an optimizer minimizes, if known.

        Arrays that share one step length add up the powers of their norms, which is the same
        norm of the stack, or with Schatten norms of the block-diagonal matrix. Where each takes
        a step of its own length, it is the largest of their norms: of the largest entries, or
        with spectral norms, once more a norm of such a matrix. With heads joined it is the norm of
        the matrix of all heads side by side.
        """
        geometry, own = optimizer.geometry, self.effective_geometry(optimizer.geometry)
        if geometry is None or own is None or self.heads == 1:
            return own
        largest = own if isinstance(self.attention, KeyQuery) else geometry
        if optimizer.joins_heads and not isinstance(self.attention, KeyQuery):
            return geometry
        if optimizer.steps_by_array and largest not in (Lp(np.inf), Schatten(np.inf)):
            return None
        return largest

    def arrangement(self, geometry: Geometry, *, joined: bool = False) -> Arrangement:
        """How the matrices of all heads become the one whose norm is that of the heads together.

        For norms of entries every arrangement has the same norm, and the stack is the smallest.

        Args:
            geometry: The norm.
            joined: Whether an optimizer joined the heads.
        """
        if not isinstance(geometry, Schatten) or geometry == Frobenius():
            return "stacked"
        if joined and not isinstance(self.attention, KeyQuery):
            return "side by side"
        return "block diagonal"

    def descended_norm(
        self, W: Float[Array, "attention_head d e"], optimizer: Descent
    ) -> Float[Array, ""]:
        """That norm of all heads; the Frobenius norm where it is not known."""
        geometry = self.descended(optimizer) or Frobenius()
        arrangement = self.arrangement(geometry, joined=optimizer.joins_heads)
        return geometry.norm(arranged(W, arrangement))

    def initial(self, key: Any, d: int, e: int) -> AttentionHeads:
        """Random parameters of each head; the first head has those of a head alone."""
        from attractor.attention.random_parameters import words_of

        words = words_of(key)
        parts = [self.attention.initial(key, d, e)]
        for head in range(1, self.heads):
            own = np.stack(fold_in(words, _HEAD_KEYS + head), axis=-1)
            parts.append(self.attention.initial(own, d, e))
        return self.from_heads(parts)

    def check_initial(self, arrays: Mapping[str, Any]) -> None:
        """As one head checks them.

        Raises:
            InvalidInputError: If training could not leave those of some head.
        """
        self.attention.check_initial(arrays)

    def prepare(self, tokens: Tokens) -> Tokens:
        """The tokens in the coordinates of one head.

        Raises:
            InvalidInputError: If the tokens do not suit it.
        """
        return self.attention.prepare(tokens)

    def _axes(self) -> dict[str, int]:
        """The axis of heads of each array, counted from the last."""
        return {name: -1 - len(shape) for name, shape in self.attention.shapes(1, 1).items()}


def get_parameterization(parameterization: str | Parameterization) -> Parameterization:
    """Returns the parameterization with a name; an instance is returned as it is.

    The names are those of the papers: "W", "(K, Q)", "p", and "(v, W)", "(v, p)", "(v, K, Q)"
    with the prediction head; "4 x W" of four attention heads, "(v, 4 x W)" of these with their
    prediction heads. Parentheses, commas and spaces make no difference.

    Raises:
        InvalidInputError: If there is no such parameterization.
    """
    if isinstance(parameterization, Parameterization):
        return parameterization
    if isinstance(parameterization, str):
        if found := find_parameterization(parameterization):
            return found
        several = _SEVERAL.fullmatch(plain_name(parameterization))
        if several and (one := find_parameterization(several[3])):
            heads = MultiHead(one, int(several[2]))
            return Joint(heads) if several[1] else heads
    raise InvalidInputError(
        "parameterization",
        f"there is none named {parameterization!r}",
        f"{suggest(parameterization, KNOWN)}Known: {', '.join(repr(name) for name in KNOWN)}; "
        "and '4 x W' of four attention heads, say",
    )


def one_attention_head(parameterization: str | Parameterization, what: str) -> Parameterization:
    """The parameterization with a name, where several attention heads have no meaning.

    Args:
        parameterization: As for ``get_parameterization``.
        what: What is done with it.

    Raises:
        InvalidInputError: If there is none, or it has attention heads.
    """
    found = get_parameterization(parameterization)
    if found.attention_heads is not None:
        raise InvalidInputError(
            "parameterization",
            f"{found.name!r} has attention heads, and {what} is of one alone",
            'Give one, such as "W"; train(...) takes several',
        )
    return found


def _at(axis: int, place: int) -> tuple[Any, ...]:
    return (..., place, *(slice(None),) * (-1 - axis))


def _stack(arrays: list[Any], axis: int) -> Any:
    return arrays[0].__array_namespace__().stack(arrays, axis=axis)
