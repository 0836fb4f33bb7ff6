"""A head to watch: how its matrix and what enters it are found in the user's training state."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.checks import as_number, check_function, check_items, check_kinds
from attractor.errors import InvalidInputError
from attractor.precision import as_float64, check_shape
from attractor.tokens import Tokens


@dataclass(frozen=True)
class WatchedHead:
    """One attention head inside a model of any library, as functions of the training state.

    The head gives token ``x`` under query ``z`` the score ``x^T W z``. The state is whatever the
    loop hands to the monitor: a PyTorch module, a tree of parameters, a dictionary.

    Attributes:
        name: What the head is called in tables and files.
        matrix: From the state to ``W`` of shape ``(d, e)``, or to a pair of factors ``K`` of shape
            ``(d, width)`` and ``Q`` of shape ``(e, width)`` with ``W = scale K Q^T``. The weights
            of ``torch.nn.Linear`` are the factors transposed.
        tokens: What enters the head for a probe batch that stays the same: ``Tokens``; or a pair
            ``(keys, queries)``, or a triple with a mask, in the shapes that ``Tokens`` takes; or a
            function from the state to any of these, where layers below are trained as well. Heads
            that are given the same function share one call of it a record.
        scale: Factor of ``W``, such as ``width ** -0.5``.
        reading: A function from the state to what ``matrix`` and ``tokens`` are functions of in
            its place, such as a pass over the model that tells both of every head; None of a state
            whose numbers are not finite. Heads that are given the same one share one call of it a
            record. None where they are functions of the state itself.
        words: The tokens of the probe batch as texts, ``(sequence, token)``, for tables; None where
            they have none.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> probe = at.Tokens(keys, queries=[[1, 0], [0, 1]])
        >>> watched = at.WatchedHead("head 0", lambda state: state["W"], probe)
        >>> monitor = at.HeadMonitor(watched, every=1, budget=None)
        >>> monitor(0, {"W": np.array([[0.5, -0.1], [-0.5, 0.3]])})
        >>> round(monitor.records["head 0"][-1].numbers["margin_ratio"], 6)
        1.0
    """

    name: str
    matrix: Callable[[Any], Any]
    tokens: Any
    scale: float = 1.0
    reading: Callable[[Any], Any] | None = None
    words: Any = None

    def __post_init__(self) -> None:
        """Checks what can be checked without a state, and converts tokens that are constant.

        Raises:
            InvalidInputError: If something is of the wrong kind, or constant tokens are no tokens.
        """
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInputError("name", f"it is {self.name!r}", "Give a word for the head")
        if not callable(self.matrix):
            raise InvalidInputError(
                "matrix",
                f"that of head {self.name!r} is of type {type(self.matrix).__name__}",
                "Give a function from the training state to the matrix or its factors",
            )
        if not math.isfinite(as_number(self.scale)) or self.scale == 0:
            raise InvalidInputError("scale", f"it is {self.scale!r}", "Give a number, not zero")
        if self.reading is not None:
            check_function("reading", self.reading, "Give a function of the training state")
        if callable(self.tokens):
            check_function("tokens", self.tokens, "Give a function of the training state")
        else:
            tokens = as_tokens(self.name, self.tokens)
            if tokens is None:
                raise InvalidInputError(
                    "tokens",
                    f"those of head {self.name!r} hold NaN or infinity",
                    "Give finite keys and queries",
                )
            object.__setattr__(self, "tokens", tokens)
        if self.words is not None:
            object.__setattr__(self, "words", _as_words(self.words, self.tokens))

    @property
    def shared(self) -> list[Callable[[Any], Any]]:
        """The functions that it may share with other heads."""
        return [one for one in (self.reading, self.tokens) if callable(one)]

    def read_matrix(self, state: Any, tokens: Tokens) -> Float[np.ndarray, "d e"]:
        """The matrix of a state, or of what ``reading`` returned of it; it may hold NaN.

        Raises:
            InvalidInputError: If it does not fit the tokens.
        """
        check_kinds(tokens=(tokens, Tokens))
        found = self.matrix(state)
        argument = f"matrix of head {self.name!r}"
        if isinstance(found, tuple | list) and len(found) == 2:
            K, Q = (to_numpy(argument, factor) for factor in found)
            if K.ndim != 2 or Q.ndim != 2 or K.shape[1] != Q.shape[1]:
                raise InvalidInputError(
                    argument,
                    f"the factors have shapes {K.shape} and {Q.shape}",
                    "Give (d, width) and (e, width)",
                )
            W = K @ Q.T
        else:
            W = to_numpy(argument, found)
        shape = (tokens.key_dimension, tokens.query_dimension)
        if W.shape != shape:
            raise InvalidInputError(
                argument,
                f"it has shape {W.shape}, and the factors of two would be transposed",
                f"Give {shape}, the dimensions of keys and of queries",
            )
        return self.scale * W


def _as_words(given: Any, tokens: Any) -> tuple[tuple[str, ...], ...]:
    """Texts of tokens, a row for each sequence, all as long as the longest."""
    rows = [
        check_items(f"words[{place}]", row, str, 1)
        for place, row in enumerate(check_items("words", given, object, 1))
    ]
    length = max(map(len, rows))
    if isinstance(tokens, Tokens):
        check_shape("words", (len(rows), length), [tokens.sequences, tokens.length])
    return tuple((*map(str, row), *[""] * (length - len(row))) for row in rows)


def as_tokens(name: str, given: Any) -> Tokens | None:
    """Tokens from what a user gives for a head; None where they are not finite.

    Raises:
        InvalidInputError: If they are no tokens, or have an axis of instances.
    """
    if not isinstance(given, Tokens):
        if not isinstance(given, tuple | list) or len(given) not in (2, 3):
            raise InvalidInputError(
                "tokens",
                f"those of head {name!r} are of type {type(given).__name__}",
                "Give Tokens, or (keys, queries), or (keys, queries, mask)",
            )
        keys, queries = (
            to_numpy(what, array) for what, array in zip(("keys", "queries"), given, strict=False)
        )
        if not (np.isfinite(keys).all() and np.isfinite(queries).all()):
            return None
        given = Tokens(keys, queries, mask=_as_mask(given[2] if len(given) == 3 else None))
    if given.instances is not None:
        raise InvalidInputError(
            "tokens",
            f"those of head {name!r} have an axis of {given.instances} instances",
            "Give one probe batch, without that axis",
        )
    return given


def _as_mask(mask: Any) -> Any:
    """A mask off its device."""
    return mask.detach().cpu().numpy() if hasattr(mask, "detach") else mask


def to_numpy(argument: str, value: Any) -> Float[np.ndarray, "..."]:
    """A float64 copy of a PyTorch tensor on any device, a JAX or NumPy array, or a list.

    NaN and infinity are kept: training may diverge, and is not to be ended for it.

    Args:
        argument: The name to use in an error.
        value: The array.

    Raises:
        InvalidInputError: If it holds no real numbers, or numbers in half precision.
    """
    for leave in ("detach", "cpu"):  # the graph, then the device
        if hasattr(value, leave):
            value = getattr(value, leave)()
    try:
        return as_float64(argument, value, finite=False)
    except TypeError:  # a type of number that NumPy does not have
        raise InvalidInputError(
            argument,
            f"the numbers are stored as {getattr(value, 'dtype', type(value).__name__)}",
            "Give float32 or float64",
        ) from None
