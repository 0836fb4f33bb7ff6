"""What laws of tokens compute with: checked arrays, square roots, moments beside a score.

Moments of a token beside its score, which errors of finite prompts need, are, for a direction
``a``, a matrix ``P`` and a center ``c``, with ``f = P (x - c)``,

    E[exp(q u)],    E[f exp(q u)],    E[f^T f exp(q u)],        u = a^T (x - c),

at complex ``q``, wherever they exist for its real part: the law's own moment generating function
with two derivatives, continued from the line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Complex, Float

from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64, double_precision


def square_root(covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """A matrix ``R`` with ``R R^T`` a covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))


MOST_COORDINATES = 2**20
"""Coordinates beyond which not even a few vectors are of use."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def checked(argument: str, value: Any, axes: tuple[str, ...], *, batched: bool = False) -> Any:
    """An array with the axes named: JAX arrays as they are, anything else as NumPy float64.

    Args:
        argument: The name to use in an error.
        value: Anything NumPy can read as an array of real numbers, or an array of JAX.
        axes: Names of the axes, the last ones of the array.
        batched: Whether other axes may come before them.

    Raises:
        InvalidInputError: If the number of axes is different, one of those named is empty, or an
            entry that is known already is not a finite number.
    """
    if not isinstance(value, jax.Array):
        array = as_float64(argument, value, largest=LARGEST)
    else:
        floating = jnp.issubdtype(value.dtype, jnp.floating) and value.dtype.itemsize >= 4
        array = value if floating else value.astype(float)  # half precision has no decompositions
        if not traced(array):
            as_float64(argument, array, largest=LARGEST)
    fits = array.ndim >= len(axes) if batched else array.ndim == len(axes)
    if not fits or 0 in array.shape[array.ndim - len(axes) :]:
        named = ", ".join(("...", *axes) if batched else axes)
        named = f"({named},)" if len(axes) == 1 and not batched else f"({named})"
        expected = f"Give {named}" if axes or batched else "Give one number"
        raise InvalidInputError(argument, f"the shape is {array.shape}", expected)
    return array


def checked_positive(argument: str, value: Any) -> Any:
    """One number above zero.

    Raises:
        InvalidInputError: If it is not.
    """
    number = checked(argument, value, ())
    if not traced(number) and not number > 0:
        raise InvalidInputError(argument, f"it is {float(number):g}", "Give a number above 0")
    return number


def checked_dimension(dimension: Any) -> int:
    """A whole number of coordinates, one at least.

    Raises:
        InvalidInputError: If it is not.
    """
    return check_count("dimension", dimension, 1, MOST_COORDINATES)


def checked_weights(argument: str, value: Any, axes: tuple[str, ...]) -> Any:
    """Relative weights: no one below zero, and some above in every row.

    Raises:
        InvalidInputError: If one is negative, or a row has none above zero.
    """
    weights = checked(argument, value, axes, batched=True)
    if traced(weights):
        return weights
    if (weights < 0).any():
        place = tuple(int(i) for i in np.argwhere(np.asarray(weights) < 0)[0])
        raise InvalidInputError(
            argument, f"the entry at {place} is {float(weights[place]):g}", "Give 0 or more"
        )
    if not (weights > 0).any(-1).all():
        raise InvalidInputError(argument, "they are all zero", "Give at least one above 0")
    return weights


def checked_map(dimension: int, matrix: Any, shift: Any) -> tuple[Any, Any]:
    """A matrix that takes tokens of a dimension, and a shift of what it gives, zero if None.

    Raises:
        InvalidInputError: If shapes do not fit, or an entry is not finite.
    """
    matrix = checked("matrix", matrix, ("k", "d"))
    if matrix.shape[1] != dimension:
        raise InvalidInputError(
            "matrix",
            f"the shape is {matrix.shape}",
            f"Give (k, {dimension}): a column a coordinate",
        )
    shift = np.zeros(matrix.shape[0]) if shift is None else checked("shift", shift, ("k",))
    if shift.shape[0] != matrix.shape[0]:
        raise InvalidInputError(
            "shift", f"the shape is {shift.shape}", f"Give ({matrix.shape[0]},)"
        )
    return matrix, shift


def traced(tree: Any) -> bool:
    """Whether a value in the tree is not known yet, inside ``jit``, ``grad``, ``vmap``."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def numpy_in_double(function: _Function) -> _Function:
    """Makes a function of JAX give NumPy float64 for NumPy arguments, whatever JAX is set to.

    With an array of JAX anywhere among the arguments the function is called as it is, in the
    precision in force, so that it works inside ``jit``, ``grad`` and ``vmap``.
    """
    compiled = jax.jit(function)

    @functools.wraps(function)
    def dispatched(*arguments: Any) -> Any:
        if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(arguments)):
            return function(*arguments)
        # Copies: JAX remembers an array that a compiled function has closed over, by its
        # identity, in the precision of that time, and would be given it in another one here.
        with double_precision():
            return jax.tree.map(np.asarray, compiled(*jax.tree.map(np.array, arguments)))

    return dispatched  # pyright: ignore[reportReturnType]


class ScoreLine(NamedTuple):
    """What is asked of a law.

    Attributes:
        direction: ``a``, of the scores ``u``.
        projection: ``P``.
        center: ``c``.
    """

    direction: Float[np.ndarray, "d"]
    projection: Float[np.ndarray, "p d"]
    center: Float[np.ndarray, "d"]


class Generated(NamedTuple):
    """The three moments at places ``q``, the slope its real part, the frequency its imaginary one.

    Each is over ``exp(log_scale)``, so that nothing overflows.

    Attributes:
        log_scale: A logarithm of the size at a slope.
        value: ``E exp(q u)``.
        vector: ``E[f exp(q u)]``.
        square: ``E[f^T f exp(q u)]``.
    """

    log_scale: Float[np.ndarray, "slope"]
    value: Complex[np.ndarray, "slope frequency"]
    vector: Complex[np.ndarray, "p slope frequency"]
    square: Complex[np.ndarray, "slope frequency"]

    def plus_independent(self, other: Generated) -> Generated:
        """The moments of a sum of independent tokens: ``u`` and ``f`` add up."""
        crossed = (self.vector * other.vector).sum(0)
        return Generated(
            self.log_scale + other.log_scale,
            self.value * other.value,
            self.vector * other.value + self.value * other.vector,
            self.square * other.value + 2 * crossed + self.value * other.square,
        )

    def moved(
        self, q: Complex[np.ndarray, "slope frequency"], score: float, shift: Float[np.ndarray, "p"]
    ) -> Generated:
        """The moments of tokens moved so that ``u`` grows by a number and ``f`` by a vector."""
        turn = np.exp(1j * np.imag(q) * score)
        along = np.tensordot(shift, self.vector, 1)
        return Generated(
            self.log_scale + np.real(q)[:, 0] * score,
            turn * self.value,
            turn * (self.vector + shift[:, None, None] * self.value),
            turn * (self.square + 2 * along + (shift @ shift) * self.value),
        )


def mixed(weights: Float[np.ndarray, "part"], parts: Sequence[Generated]) -> Generated:
    """The moments of a mixture, with weights of sum one."""
    scales = np.stack([part.log_scale for part in parts])
    log_scale = scales.max(0)
    shares = weights[:, None] * np.exp(scales - log_scale)
    value, vector, square = (
        np.sum(
            [
                share[:, None] * getattr(part, name)
                for share, part in zip(shares, parts, strict=True)
            ],
            axis=0,
        )
        for name in ("value", "vector", "square")
    )
    return Generated(log_scale, value, vector, square)


def from_cumulants(
    log_value: Complex[np.ndarray, "slope frequency"],
    mean: Complex[np.ndarray, "p slope frequency"],
    trace: Complex[np.ndarray, "slope frequency"],
) -> Generated:
    """The moments from the logarithm of the first, and mean and variance of ``f``, tilted.

    Args:
        log_value: A logarithm of ``E exp(q u)``.
        mean: The mean of ``f`` under the law tilted by ``q``.
        trace: The trace of its covariance there.
    """
    log_scale = np.real(log_value).max(-1)
    value = np.exp(log_value - log_scale[:, None])
    return Generated(log_scale, value, value * mean, value * (trace + (mean * mean).sum(0)))
