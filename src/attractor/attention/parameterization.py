"""Parameterizations: which numbers are trained, and the effective matrix they make up."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from attractor.geometry import Frobenius, Geometry, Nuclear, Schatten
from attractor.support.checks import check_count, check_flags, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_shaped
from attractor.support.randomness import (
    check_seed,
    fold_in,
    generator,
    random_rotation,
    unit_interval,
)
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from jaxtyping import Array, PyTree

    from attractor.attention.heads import Head
    from attractor.attention.rows import Rows


class Parameters(NamedTuple):
    """Everything that is trained, as optimizers see it.

    Attributes:
        attention: The parameters of the attention layer.
        head: The head, where it is trained as well; None where it is fixed.
    """

    attention: PyTree
    head: Head | None


@runtime_checkable
class Descent(Protocol):
    """What the norm that is descended follows from: an ``Optimizer``, without its room."""

    @property
    def geometry(self) -> Geometry | None:
        """The norm."""
        ...

    @property
    def matrix_geometry(self) -> Geometry | None:
        """The norm of ``W`` itself, where that does not follow from the norm."""
        ...

    @property
    def steps_by_array(self) -> bool:
        """Whether every array takes a step of its own length."""
        ...

    @property
    def joins_heads(self) -> bool:
        """Whether the arrays of attention heads are one."""
        ...


class Parameterization(abc.ABC):
    """A map from trained parameters to the attention matrix ``W``.

    Instances are hashable, and those that are equal share compiled code.

    Attributes:
        name: What a user calls it.
        trains_head: Whether the head is trained beside the attention layer.
    """

    name: ClassVar[str]
    trains_head: bool = False

    @property
    def attention_heads(self) -> int | None:
        """Number of attention heads, whose arrays have an axis; None of one without that axis."""
        return None

    @property
    def settings(self) -> dict[str, int]:
        """Settings that a run is known by besides the name and the shapes of its arrays."""
        return {}

    def by_head(self, parameters: PyTree) -> list[tuple[Parameterization, PyTree]]:
        """Each attention head: what its parameters mean, and they themselves."""
        return [(self, parameters)]

    def from_heads(self, parts: list[PyTree]) -> PyTree:
        """Trees with the structure of the parameters of ``by_head``, put together again."""
        (only,) = parts
        return only

    def descended(self, optimizer: Descent) -> Geometry | None:
        """The norm of ``W`` that descending by an optimizer minimizes, if known."""
        return optimizer.matrix_geometry or self.effective_geometry(optimizer.geometry)

    def descended_norm(self, W: Float[Array, "d e"], optimizer: Descent) -> Float[Array, ""]:
        """That norm of a matrix; the Frobenius norm where it is not known."""
        return (self.descended(optimizer) or Frobenius()).norm(W)

    @abc.abstractmethod
    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the trained arrays, for keys in R^d and queries in R^e."""

    @abc.abstractmethod
    def from_arrays(self, arrays: Mapping[str, Any]) -> PyTree:
        """The attention parameters made of arrays with the names of ``shapes``."""

    @abc.abstractmethod
    def to_arrays(self, parameters: PyTree) -> dict[str, Any]:
        """The arrays that make up attention parameters, by name."""

    @abc.abstractmethod
    def scores(self, parameters: PyTree, rows: Rows) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T W z`` of every token for every query of one data set."""

    @abc.abstractmethod
    def effective_matrix(self, parameters: PyTree) -> Float[Array, "d e"]:
        """The attention matrix ``W`` of the parameters."""

    @abc.abstractmethod
    def from_matrix(self, W: Float[Any, "*trials d e"]) -> PyTree:
        """Parameters whose matrices are the given ones, or as near to them as possible."""

    @abc.abstractmethod
    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """The norm of ``W`` that descending ``geometry`` in the parameters minimizes, if known."""

    def initial(self, key: Any, d: int, e: int) -> PyTree:
        """Random parameters of a trial, or of several.

        Entries are independent and uniform on ``[-1/sqrt(f), 1/sqrt(f)]``, where f is the first
        dimension of the array: the default of a linear layer. They are those of ``jax.random``.

        Args:
            key: A key, or an array of them: every leaf then has a leading axis of trials.
            d: Dimension of keys.
            e: Dimension of queries.
        """
        from attractor.attention.random_parameters import between, words_of

        words = words_of(key)
        shapes = self.shapes(d, e)
        arrays = {}
        for number, (name, shape) in enumerate(shapes.items()):
            own = words if len(shapes) == 1 else fold_in(words, number)
            arrays[name] = between(unit_interval(own, shape), shape[0] ** -0.5)
        return self.from_arrays(arrays)

    def in_gauge(self, parameters: PyTree) -> PyTree:
        """Parameters as training starts from them where they are random: these, without a gauge."""
        return parameters

    def check_initial(self, arrays: Mapping[str, Any]) -> None:  # noqa: B027 - most have nothing
        """Checks initial arrays beyond their shapes.

        Raises:
            InvalidInputError: If training could not leave them.
        """

    def prepare(self, tokens: Tokens) -> Tokens:
        """The tokens in the coordinates of this parameterization.

        Raises:
            InvalidInputError: If the tokens do not suit it.
        """
        return tokens


@dataclass(frozen=True)
class AttentionMatrix(Parameterization):
    """The matrix ``W`` itself is trained."""

    name: ClassVar[str] = "W"

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """``W`` alone."""
        return {"W": (d, e)}

    def from_arrays(self, arrays: Mapping[str, Any]) -> Float[Any, "*trials d e"]:
        """``W``."""
        return arrays["W"]

    def to_arrays(self, parameters: Float[Any, "*trials d e"]) -> dict[str, Any]:
        """``W``."""
        return {"W": parameters}

    def scores(
        self, parameters: Float[Array, "d e"], rows: Rows
    ) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T W z``."""
        return _token_scores(rows, rows.queries @ parameters.T)

    def effective_matrix(self, parameters: Float[Array, "d e"]) -> Float[Array, "d e"]:
        """``W``."""
        return parameters

    def from_matrix(self, W: Float[Any, "*trials d e"]) -> Float[Any, "*trials d e"]:
        """``W``."""
        return W

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """The geometry itself."""
        return geometry


class KeyQueryFactors(NamedTuple):
    """The factors of ``W = K Q^T``.

    Attributes:
        K: Turns tokens into keys.
        Q: Turns queries into vectors that keys are multiplied with.
    """

    K: Float[Any, "*trials d width"]
    Q: Float[Any, "*trials e width"]


@dataclass(frozen=True)
class KeyQuery(Parameterization):
    """Key and query matrices are trained apart: ``W = K Q^T``.

    Gradient descent in the factors leads to small nuclear norm of ``W``, as ``min (||K||_F^2 +
    ||Q||_F^2) / 2`` over all factors of ``W`` is its nuclear norm, as long as the width is no less
    than the rank. Source: *Transformers as Support Vector Machines* (arXiv 2308.16898).

    ``W`` stays what it is where both factors are multiplied by an orthogonal matrix,
    ``(K R)(Q R)^T = K Q^T``: a gauge. Training that depends on it descends no norm of ``W`` alone.

    Attributes:
        width: Number of columns m of both factors; None for the dimension d of the keys.
        gauge: Number of the orthogonal matrix R by which random factors are multiplied before
            training; 0 leaves them as they are. Given ones are turned by ``in_gauge``.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(
        ...     tokens, head, at.normalized_gradient_descent(0.1), steps=1000, parameterization="KQ"
        ... )
        >>> run.data.K.sizes["row"], at.verify(run).solution.geometry
        (6, Nuclear())
    """

    name: ClassVar[str] = "KQ"
    width: int | None = None
    # Training starts in it and never sees it, so that all gauges share compiled code.
    gauge: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            InvalidInputError: If the width is not a positive integer, or the gauge is no seed.
        """
        if self.width is not None:
            check_count("width", self.width)
        check_seed("gauge", self.gauge)

    @property
    def settings(self) -> dict[str, int]:
        """The gauge, where there is one."""
        return {"gauge": self.gauge} if self.gauge else {}

    def in_gauge(self, parameters: KeyQueryFactors) -> KeyQueryFactors:
        """The factors ``(K R, Q R)``, R orthogonal and uniform (Haar's measure); as they are for 0.

        Those of identity matrices are R itself.
        """
        if not self.gauge:
            return parameters
        R = random_rotation(generator(self.gauge, purpose="gauge"), parameters.K.shape[-1])
        return KeyQueryFactors(parameters.K @ R, parameters.Q @ R)

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """``K`` and ``Q``."""
        width = d if self.width is None else int(self.width)
        return {"K": (d, width), "Q": (e, width)}

    def from_arrays(self, arrays: Mapping[str, Any]) -> KeyQueryFactors:
        """``K`` and ``Q``."""
        return KeyQueryFactors(arrays["K"], arrays["Q"])

    def to_arrays(self, parameters: KeyQueryFactors) -> dict[str, Any]:
        """``K`` and ``Q``."""
        return parameters._asdict()

    def scores(
        self, parameters: KeyQueryFactors, rows: Rows
    ) -> Float[Array, "sequence query token"]:
        """Scores ``(K^T x_t)^T (Q^T z)``."""
        turned = (rows.queries @ parameters.Q) @ parameters.K.T
        return _token_scores(rows, turned)

    def effective_matrix(self, parameters: KeyQueryFactors) -> Float[Array, "d e"]:
        """``K Q^T``."""
        return parameters.K @ parameters.Q.mT

    def from_matrix(self, W: Float[Any, "*trials d e"]) -> KeyQueryFactors:
        """Balanced factors ``U sqrt(s)`` and ``V sqrt(s)`` of ``W = U s V^T``.

        With a width below the rank of ``W`` they are those of the nearest matrix of that rank.
        """
        xp = W.__array_namespace__()
        width = self.shapes(*W.shape[-2:])["K"][1]
        U, values, V = xp.linalg.svd(W, full_matrices=False)
        kept = min(width, values.shape[-1])
        root = xp.sqrt(values[..., None, :kept])
        padding = [(0, 0)] * (W.ndim - 1) + [(0, width - kept)]
        K, Q = (U[..., :kept] * root, V[..., :kept, :].mT * root)
        return KeyQueryFactors(xp.pad(K, padding), xp.pad(Q, padding))

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """Nuclear for Frobenius; for any other none is known."""
        return Nuclear() if geometry == Frobenius() else None

    def check_initial(self, arrays: Mapping[str, Any]) -> None:
        """Refuses ``K = Q = 0``.

        Raises:
            InvalidInputError: If both factors of a trial are zero.
        """
        zero = [~np.any(array, axis=(-2, -1)) for array in arrays.values()]
        if np.logical_and(*zero).any():
            raise InvalidInputError(
                "initial",
                "K = Q = 0 is a saddle point: the gradient is zero there and training never leaves",
                "Give a nonzero K or a nonzero Q",
            )


@dataclass(frozen=True)
class PromptVector(Parameterization):
    """A prompt vector ``p`` is trained and the key weights are fixed: scores ``X weights p``.

    It is one query for all sequences; the queries of the tokens are not used. The effective
    matrix is the column ``p``, for keys ``X weights`` and the number one as query. Source:
    *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596).

    Attributes:
        weights: The fixed weights, ``(d, d')``; None for the identity.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> run = at.train(tokens, head, at.gradient_descent(1.0), steps=100, parameterization="p")
        >>> run.data.p.sizes["row"]
        2
        >>> at.verify(run).solution.W.ravel().round(6)
        array([2., 1.])
    """

    name: ClassVar[str] = "p"
    # They end in the tokens, so that prompts with different weights share compiled code.
    weights: Float[np.ndarray, "d m"] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Casts the weights.

        Raises:
            InvalidInputError: If they are no matrix of finite numbers.
        """
        if self.weights is not None:
            object.__setattr__(self, "weights", as_shaped("weights", self.weights, ("d", "m")))

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """``p``."""
        return {"p": (d,)}

    def from_arrays(self, arrays: Mapping[str, Any]) -> Float[Any, "*trials d"]:
        """``p``."""
        return arrays["p"]

    def to_arrays(self, parameters: Float[Any, "*trials d"]) -> dict[str, Any]:
        """``p``."""
        return {"p": parameters}

    def scores(
        self, parameters: Float[Array, "d"], rows: Rows
    ) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T p``, with the weights in the keys already."""
        return (rows.keys @ parameters)[:, None, :]

    def effective_matrix(self, parameters: Float[Array, "d"]) -> Float[Array, "d 1"]:
        """The column ``p``."""
        return parameters[:, None]

    def from_matrix(self, W: Float[Any, "*trials d 1"]) -> Float[Any, "*trials d"]:
        """The column as a vector."""
        return W[..., 0]

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """The geometry itself; of a single column every Schatten norm is the Euclidean one."""
        return Frobenius() if isinstance(geometry, Schatten) else geometry

    def prepare(self, tokens: Tokens) -> Tokens:
        """Tokens with keys ``X weights`` and the number one as query.

        Raises:
            InvalidInputError: If there are several queries a sequence, or the weights do not fit.
        """
        if tokens.queries_per_sequence != 1:
            raise InvalidInputError(
                "tokens",
                f"each sequence has {tokens.queries_per_sequence} queries, but a prompt is one",
                "Give tokens with one query and one label a sequence",
            )
        keys = tokens.keys
        if self.weights is not None:
            weights = as_float64("weights", self.weights)
            if weights.ndim != 2 or weights.shape[0] != tokens.key_dimension:
                raise InvalidInputError(
                    "weights",
                    f"the shape is {weights.shape}",
                    f"Give ({tokens.key_dimension}, m): it multiplies tokens from the right",
                )
            keys = keys @ weights
        return Tokens(
            keys,
            np.ones((*tokens.queries.shape[:-1], 1)),
            tokens.labels,
            tokens.mask,
            tokens.values,
            weights=tokens.weights,
            instance_numbers=tokens.instance_numbers,
        )


@dataclass(frozen=True)
class Joint(Parameterization):
    """The head is trained beside the attention layer: ``(v, W)``, ``(v, p)``, ``(v, (K, Q))``.

    The head given to ``train`` is where its training starts. Source: *Max-Margin Token Selection
    in Attention Mechanism* (arXiv 2306.13596), joint training of the prompt and the head.

    Attributes:
        attention: How the attention layer is parameterized.
    """

    attention: Parameterization
    trains_head: bool = True

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            InvalidInputError: If one is of another kind.
        """
        check_kinds(attention=(self.attention, Parameterization))
        check_flags(trains_head=self.trains_head)

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """``v`` and the name of the attention parameters."""
        return f"v, {self.attention.name}"

    @property
    def attention_heads(self) -> int | None:
        """That of the attention layer."""
        return self.attention.attention_heads

    @property
    def settings(self) -> dict[str, int]:
        """Those of the attention layer."""
        return self.attention.settings

    def by_head(self, parameters: PyTree) -> list[tuple[Parameterization, PyTree]]:
        """As of the attention layer."""
        return self.attention.by_head(parameters)

    def from_heads(self, parts: list[PyTree]) -> PyTree:
        """As of the attention layer."""
        return self.attention.from_heads(parts)

    def descended(self, optimizer: Descent) -> Geometry | None:
        """As of the attention layer."""
        return self.attention.descended(optimizer)

    def descended_norm(self, W: Float[Array, "d e"], optimizer: Descent) -> Float[Array, ""]:
        """As of the attention layer."""
        return self.attention.descended_norm(W, optimizer)

    def initial(self, key: Any, d: int, e: int) -> PyTree:
        """As of the attention layer."""
        return self.attention.initial(key, d, e)

    def in_gauge(self, parameters: PyTree) -> PyTree:
        """As the attention layer turns them."""
        return self.attention.in_gauge(parameters)

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """Those of the attention layer: the head has its own."""
        return self.attention.shapes(d, e)

    def from_arrays(self, arrays: Mapping[str, Any]) -> PyTree:
        """The attention parameters."""
        return self.attention.from_arrays(arrays)

    def to_arrays(self, parameters: PyTree) -> dict[str, Any]:
        """The arrays of the attention layer."""
        return self.attention.to_arrays(parameters)

    def scores(self, parameters: PyTree, rows: Rows) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T W z``."""
        return self.attention.scores(parameters, rows)

    def effective_matrix(self, parameters: PyTree) -> Float[Array, "d e"]:
        """The attention matrix."""
        return self.attention.effective_matrix(parameters)

    def from_matrix(self, W: Float[Any, "*trials d e"]) -> PyTree:
        """Attention parameters of given matrices."""
        return self.attention.from_matrix(W)

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """That of the attention layer."""
        return self.attention.effective_geometry(geometry)

    def check_initial(self, arrays: Mapping[str, Any]) -> None:
        """As the attention layer checks them.

        Raises:
            InvalidInputError: If training could not leave them.
        """
        self.attention.check_initial(arrays)

    def prepare(self, tokens: Tokens) -> Tokens:
        """The tokens in the coordinates of the attention layer.

        Raises:
            InvalidInputError: If the tokens do not suit it.
        """
        return self.attention.prepare(tokens)


def _token_scores(
    rows: Rows, turned: Float[Array, "sequence query d"]
) -> Float[Array, "sequence query token"]:
    """The product of every key with every query of its sequence, turned into a vector of keys."""
    import jax.numpy as jnp

    return jnp.einsum("ntd,nkd->nkt", rows.keys, turned)


def attention_layer(parameterization: Parameterization) -> Parameterization:
    """The parameterization of the attention layer alone, without a head that is trained."""
    return parameterization.attention if isinstance(parameterization, Joint) else parameterization


_NAMED: tuple[Parameterization, ...] = (AttentionMatrix(), KeyQuery(), PromptVector())
KNOWN = {one.name: one for each in _NAMED for one in (each, Joint(each))}


def find_parameterization(name: str) -> Parameterization | None:
    """The parameterization of one attention head with a name, which papers spell differently."""
    found = (known for own, known in KNOWN.items() if plain_name(own) == plain_name(name))
    return next(found, None)


def plain_name(name: str) -> str:
    """A name without parentheses, commas and spaces."""
    return "".join(letter for letter in name if letter not in "(), ")
