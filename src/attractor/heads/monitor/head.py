"""A head to watch: how its matrix and what enters it are found in the user's training state."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.support.checks import (
    as_number,
    check_count,
    check_function,
    check_items,
    check_kinds,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, check_shape
from attractor.tokens import Tokens
from attractor.tokens.validation import as_mask


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
        tokens: What enters the head for a probe batch that stays the same: ``Tokens``; or
            ``(keys, queries)``, ``(keys, queries, mask)`` or ``(keys, queries, mask, rows)``, in
            the shapes that ``Tokens`` takes, with rows False where a query is padding; or a
            function from the state to any of these, where layers below are trained as well. Heads
            that are given the same function share one call of it a record.
        scale: Factor of ``W``, such as ``width ** -0.5``.
        reading: A function from the state to what ``matrix`` and ``tokens`` are functions of in
            its place, such as a pass over the model that tells both of every head; None of a state
            whose numbers are not finite. Heads that are given the same one share one call of it a
            record. None where they are functions of the state itself.
        words: The tokens of the probe batch as texts, ``(sequence, token)``, for tables; None where
            they have none.
        known_constraints: The constraints that the probe batch makes, where that is known before
            anything is trained; else None.

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
    known_constraints: int | None = field(default=None, init=False, repr=False, compare=False)

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
            object.__setattr__(self, "known_constraints", constraints_of(tokens))
        if self.words is not None:
            object.__setattr__(self, "words", _as_words(self.words, self.tokens))

    @classmethod
    def from_module(
        cls,
        name: str,
        module: Any,
        head: int,
        run: Callable[[Any], Any],
        *,
        rows: Any = None,
        words: Any = None,
    ) -> WatchedHead:
        """A head of an attention module of PyTorch or transformers, biases and padding included.

        Every record runs the model on a probe batch of yours and reads what entered the module:

            WatchedHead.from_module("0.2", model.encoder.layers[0].self_attn, 2,
                                    lambda model: model(probe, src_key_padding_mask=padding))

        Heads whose ``run`` is the same function share one pass, whatever their modules; the model
        is in evaluation mode meanwhile, without gradients. With ``q = Q z + b`` and ``k = K x + c``
        the matrix is ``K^T [Q, b]`` times the scale of the scores, its query ``(z, 1)``, both in
        orthonormal coordinates of the rows of ``K`` and of ``Q``, as in an audit; ``c`` adds the
        same to all scores of a query and is left out, unless there are learned tokens
        (``add_bias_kv``). Padding is left out: in ``torch.nn.MultiheadAttention`` the queries that
        ``key_padding_mask`` names, elsewhere those at tokens that nothing may attend to.

        Args:
            name: What the head is called.
            module: A ``torch.nn.MultiheadAttention``, a module with one inside, or an attention
                module of transformers, such as ``model.encoder.layer[0].attention.self``. Where
                positions rotate its keys, each query becomes a sequence with keys of its own.
            head: The number of the head.
            run: A function of the training state that runs the model, once, on the probe batch.
            rows: The queries to look at, ``(sequences, queries)``, such as the last one; None for
                all. Each makes a constraint of every token it may attend to but one.
            words: The tokens of the probe batch as texts, for tables.

        Raises:
            InvalidInputError: If an argument is of the wrong kind, the module has no such head, or
                PyTorch is not installed.
        """
        try:
            from attractor.heads.monitor.modules import pass_of
        except ImportError:
            raise InvalidInputError(
                "module", "PyTorch is not installed", 'Install "attractor[torch]"'
            ) from None
        head = check_count("head", head, 0)
        check_function("run", run, "Give a function of the training state that runs the model")
        chosen = None if rows is None else as_mask("rows", rows)
        reading, attending = pass_of(run, module)
        count = getattr(attending, "num_heads", None)
        if isinstance(count, int) and head >= count:
            raise InvalidInputError(
                "head", f"the module has {count} heads, and no {head}", f"Give 0 to {count - 1}"
            )
        return cls(
            name,
            matrix=lambda read: read.head(attending, head, chosen)[1],
            tokens=lambda read: read.head(attending, head, chosen)[0],
            reading=reading,
            words=words,
        )

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
            K, Q = (as_float64(argument, factor, finite=False) for factor in found)
            if K.ndim != 2 or Q.ndim != 2 or K.shape[1] != Q.shape[1]:
                raise InvalidInputError(
                    argument,
                    f"the factors have shapes {K.shape} and {Q.shape}",
                    "Give (d, width) and (e, width)",
                )
            W = K @ Q.T
        else:
            W = as_float64(argument, found, finite=False)
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


def constraints_of(tokens: Tokens) -> int:
    """Number of tokens that queries leave out, where each selects one."""
    return int(tokens.mask.sum() - tokens.mask.any(-1).sum())


def as_tokens(name: str, given: Any) -> Tokens | None:
    """Tokens from what a user gives for a head; None where they are None, or not finite.

    Raises:
        InvalidInputError: If they are no tokens, or have an axis of instances.
    """
    if given is None:
        return None
    if not isinstance(given, Tokens):
        if not isinstance(given, tuple | list) or len(given) not in (2, 3, 4):
            raise InvalidInputError(
                "tokens",
                f"those of head {name!r} are of type {type(given).__name__}",
                "Give Tokens, or (keys, queries), with a mask and rows behind if need be",
            )
        keys, queries = (
            as_float64(what, array, finite=False)
            for what, array in zip(("keys", "queries"), given, strict=False)
        )
        if not (np.isfinite(keys).all() and np.isfinite(queries).all()):
            return None
        mask, rows = (*given[2:], None, None)[:2]
        given = Tokens(keys, queries, mask=mask, rows=rows)
    if given.instances is not None:
        raise InvalidInputError(
            "tokens",
            f"those of head {name!r} have an axis of {given.instances} instances",
            "Give one probe batch, without that axis",
        )
    return given
