"""Independent coordinates, and independent blocks of them: Laplace, random signs, uniform."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from math import factorial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Bool, Complex, Float

from attractor.prompts.measures.arithmetic import (
    Generated,
    ScoreLine,
    checked_dimension,
    checked_positive,
    from_cumulants,
)
from attractor.prompts.measures.contract import Measure, as_numpy, of_independent_parts
from attractor.support.checks import check_items
from attractor.support.errors import InvalidInputError

Continued = tuple[
    Complex[np.ndarray, "..."], Complex[np.ndarray, "..."], Complex[np.ndarray, "..."]
]
"""A log moment generating function and its first two derivatives at complex slopes."""


class IndependentCoordinates(Measure):
    """Coordinates that are independent and alike: a scale times a standard law on the line.

    A subclass gives the derivatives of order 0, 1 and 2 of the standard law's log moment generating
    function, elementwise; the first two have to have the next one as their JAX derivative, which
    ``with_derivative`` arranges.
    """

    if TYPE_CHECKING:
        _dimension: int  # a field of the subclasses, where its place among the others is theirs

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._dimension

    @property
    @abc.abstractmethod
    def _scale(self) -> Float[Any, ""]:
        """The scale of the standard law."""

    @abc.abstractmethod
    def _cumulant(self, order: int, slope: Float[Array, "..."]) -> Float[Array, "..."]:
        """Derivative of an order of ``log E exp(slope X)`` for the standard law."""

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return self._cumulant(0, self._scale * direction).sum(-1)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self._scale * self._cumulant(1, self._scale * direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        return self._variances(direction)[..., None] * jnp.eye(self.dimension)

    def _covariance_product(
        self, direction: Float[Array, "*batch d"], vector: Float[Array, "*batch d"]
    ) -> Float[Array, "*rows d"]:
        return self._variances(direction) * vector

    @abc.abstractmethod
    def _continued(self, z: Complex[np.ndarray, "..."]) -> Continued:
        """The derivatives of order 0, 1 and 2 at complex slopes, the first up to ``2 pi i``."""

    def _generated(self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]) -> Generated:
        scale, P = float(self._scale), line.projection
        log_value, mean, trace = -q * (line.direction @ line.center), -(P @ line.center), 0j * q
        mean = np.broadcast_to(mean[:, None, None], (len(P), *q.shape)).astype(complex)
        for a, column in zip(line.direction, P.T, strict=True):
            value, slope, curvature = self._continued(scale * a * q)
            log_value = log_value + value
            mean += scale * np.multiply.outer(column, slope)
            trace += scale**2 * (column @ column) * curvature
        return from_cumulants(log_value, mean, trace)

    def _coordinate_moments(self, slope: float) -> Float[np.ndarray, "5"]:
        """``E x^(2 j)`` for ``j`` up to 4 of the standard law tilted by ``exp(slope x)``."""
        return np.array([1.0, *[np.inf] * 4])

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        scale = float(self._scale)
        own = [self._coordinate_moments(scale * float(a)) for a in direction]
        return of_independent_parts(scale ** (2.0 * np.arange(5)) * moments for moments in own)

    def _variances(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self._scale**2 * self._cumulant(2, self._scale * direction)


def with_derivative(
    function: Callable[[Array], Array], derivative: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """The elementwise function with the other one as its JAX derivative."""
    wrapped = jax.custom_jvp(function)

    @wrapped.defjvp
    def _jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        return wrapped(*primals), derivative(*primals) * tangents[0]

    return wrapped


def rightward(
    z: Complex[np.ndarray, "..."],
) -> tuple[Complex[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """``z`` or ``-z``, whichever has a real part above zero, and the sign taken.

    For laws that are even: exponentials are then computed where they do not grow.
    """
    sign = np.where(np.real(z) < 0, -1.0, 1.0)
    return sign * z, sign


class Product(Measure):
    """Independent blocks of coordinates, each with a law of its own.

    Attributes:
        factors: The laws, in the order of their coordinates.
    """

    factors: tuple[Measure, ...]

    def __init__(self, factors: Sequence[Measure]) -> None:
        """Stores the laws.

        Raises:
            InvalidInputError: If there is none.
        """
        self.factors = tuple(check_items("factors", factors, Measure, 1))

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return sum(factor.dimension for factor in self.factors)

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        logs = [one._log_normalizer(part) for one, part in self._blocks(direction)]
        return jnp.stack(logs).sum(0)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        means = [one._tilted_mean(part) for one, part in self._blocks(direction)]
        return jnp.concatenate(means, axis=-1)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        blocks = [one._tilted_covariance(part) for one, part in self._blocks(direction)]
        lead, d = blocks[0].shape[:-2], self.dimension
        whole = jax.vmap(block_diag)(*(block.reshape(-1, *block.shape[-2:]) for block in blocks))
        return whole.reshape(*lead, d, d)

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return jnp.stack([one._exists(part) for one, part in self._blocks(direction)]).all(0)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        refusals = (one._refusal(part) for one, part in self._blocks(direction))
        return next((refusal for refusal in refusals if refusal is not None), None)

    def _generated(
        self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]
    ) -> Generated | None:
        parts = zip(
            self._blocks(line.direction), self._blocks(line.projection), self._blocks(line.center),
            strict=True,
        )  # fmt: skip
        whole = None
        for (factor, a), (_, P), (_, c) in parts:
            found = factor._generated(ScoreLine(a, P, c), q)
            if found is None:
                return None
            whole = found if whole is None else whole.plus_independent(found)
        return whole

    def _variance_proxy(self) -> float:
        return max(factor._variance_proxy() for factor in self.factors)

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        return of_independent_parts(
            one._norm_moments(part) for one, part in self._blocks(direction)
        )

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        return np.concatenate([one._draw(count, random) for one in self.factors], axis=-1)

    def _blocks(self, direction: Any) -> Iterator[tuple[Measure, Any]]:
        """Each factor with its coordinates of the direction."""
        start = 0
        for factor in self.factors:
            yield factor, direction[..., start : start + factor.dimension]
            start += factor.dimension


class Laplace(IndependentCoordinates):
    """Coordinates of density ``exp(-|x| / b) / (2 b)``, tilted mean ``2 b^2 a / (1 - b^2 a^2)``.

    ``E exp(a^T X)`` is finite only where every ``|a_i| b < 1``. Beyond, attention over infinitely
    many tokens does not exist: over a finite prompt it follows the largest token.

    Attributes:
        scale: ``b``.
    """

    scale: Float[Any, ""]
    _dimension: int = eqx.field(static=True)

    def __init__(self, scale: Float[Any, ""] | Any, dimension: int) -> None:
        """Checks and stores scale and dimension.

        Raises:
            InvalidInputError: If the scale is not a number above 0, or the dimension not an
                integer >= 1.
        """
        self.scale = checked_positive("scale", scale)
        self._dimension = checked_dimension(dimension)

    @property
    def _scale(self) -> Float[Any, ""]:
        return self.scale

    def _cumulant(self, order: int, slope: Float[Array, "..."]) -> Float[Array, "..."]:
        inside = jnp.abs(slope) < 1
        x = jnp.where(inside, slope, 0)
        rest = (1 - x) * (1 + x)
        value = (-jnp.log1p(-x * x), 2 * x / rest, 2 * (1 + x * x) / rest**2)[order]
        return jnp.where(inside, value, jnp.nan)

    def _continued(self, z: Complex[np.ndarray, "..."]) -> Continued:
        rest = (1 - z) * (1 + z)
        return -np.log(rest), 2 * z / rest, 2 * (1 + z * z) / rest**2

    def _coordinate_moments(self, slope: float) -> Float[np.ndarray, "5"]:
        rates, powers = np.array([1 - slope, 1 + slope]), 2 * np.arange(5)
        shares = rates[::-1] / 2  # of the two sides
        return scipy.special.factorial(powers) * (shares / rates ** powers[:, None]).sum(-1)

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return (jnp.abs(direction) * self.scale < 1).all(-1)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        scale = float(self.scale)
        beyond = np.abs(direction) * scale >= 1
        if not beyond.any():
            return None
        entry = direction[beyond][0]
        return InvalidInputError(
            "direction",
            f"an entry is {entry:g}, and exp({entry:g} x) has no finite mean for Laplace tokens of "
            f"scale {scale:g}",
            f"Give entries between -{1 / scale:g} and {1 / scale:g}, or a finite prompt: "
            "Empirical(measure.sample(length, seed=0))",
        )

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        return random.laplace(scale=as_numpy(self.scale), size=(count, self.dimension))


class Rademacher(IndependentCoordinates):
    """Coordinates ``+c`` or ``-c``, each with probability one half.

    The tilted mean is ``c tanh(c a_i)``, the variance ``c^2 sech^2(c a_i)``: attention saturates.

    Attributes:
        scale: ``c``.
    """

    _dimension: int = eqx.field(static=True)
    scale: Float[Any, ""]

    def __init__(self, dimension: int, scale: Float[Any, ""] | Any = 1.0) -> None:
        """Checks and stores dimension and scale.

        Raises:
            InvalidInputError: If the dimension is not an integer >= 1, or the scale not a number
                above 0.
        """
        self._dimension = checked_dimension(dimension)
        self.scale = checked_positive("scale", scale)

    @property
    def _scale(self) -> Float[Any, ""]:
        return self.scale

    def _cumulant(self, order: int, slope: Float[Array, "..."]) -> Float[Array, "..."]:
        return (_log_cosh, _tanh, _squared_sech)[order](slope)

    def _continued(self, z: Complex[np.ndarray, "..."]) -> Continued:
        z, sign = rightward(z)
        decayed = np.exp(-2 * z)
        slope = -np.expm1(-2 * z) / (1 + decayed)
        return z + np.log1p(decayed) - np.log(2), sign * slope, 4 * decayed / (1 + decayed) ** 2

    def _variance_proxy(self) -> float:
        return float(self.scale) ** 2  # cosh(x) <= exp(x^2 / 2)

    def _coordinate_moments(self, slope: float) -> Float[np.ndarray, "5"]:
        return np.ones(5)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        signs = random.integers(2, size=(count, self.dimension)) * 2.0 - 1.0
        return as_numpy(self.scale) * signs


def _squared_sech(x: Float[Array, "..."]) -> Float[Array, "..."]:
    # Not 1 - tanh^2, which is zero where tanh rounds to one.
    return 4 * jax.nn.sigmoid(2 * x) * jax.nn.sigmoid(-2 * x)


_tanh = with_derivative(jnp.tanh, _squared_sech)


def _direct_log_cosh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    x = jnp.abs(x)
    near = jnp.log1p(2 * jnp.sinh(jnp.minimum(x, 1) / 2) ** 2)
    return jnp.where(x < 1, near, x + jnp.log1p(jnp.expm1(-2 * x) / 2))


_log_cosh = with_derivative(_direct_log_cosh, _tanh)


_NODES = 96
_TERMS = 12
_SINH = [1 / factorial(2 * k + 1) for k in range(_TERMS)]
"""Series of ``sinh(x) / x`` in ``x^2``."""
_SLOPE = [(2 * k + 2) / factorial(2 * k + 3) for k in range(_TERMS)]
"""Series of ``(x cosh x - sinh x) / x^3``."""
_CURVATURE = [2 ** (2 * k + 3) / factorial(2 * k + 4) for k in range(_TERMS)]
"""Series of ``(sinh^2 x - x^2) / x^4``."""


class Uniform(IndependentCoordinates):
    """Coordinates uniform on ``[-c, c]``, with the tilted mean ``c coth(c a_i) - 1 / a_i``.

    Attributes:
        half_width: ``c``.
    """

    half_width: Float[Any, ""]
    _dimension: int = eqx.field(static=True)

    def __init__(self, half_width: Float[Any, ""] | Any, dimension: int) -> None:
        """Checks and stores half-width and dimension.

        Raises:
            InvalidInputError: If the half-width is not a number above 0, or the dimension not an
                integer >= 1.
        """
        self.half_width = checked_positive("half_width", half_width)
        self._dimension = checked_dimension(dimension)

    @property
    def _scale(self) -> Float[Any, ""]:
        return self.half_width

    def _cumulant(self, order: int, slope: Float[Array, "..."]) -> Float[Array, "..."]:
        return (_log_normalizer, _slope, _curvature)[order](slope)

    def _continued(self, z: Complex[np.ndarray, "..."]) -> Continued:
        z, sign = rightward(z)
        near = np.abs(z) < 1
        x = np.where(near, z, 0) ** 2
        far = np.where(near, 1, z)
        sinh = np.polyval(_SINH[::-1], x)  # over z
        decayed = np.exp(-2 * far)
        value = np.where(near, np.log(sinh), far - np.log(2 * far) + np.log1p(-decayed))
        slope = np.where(
            near,
            z * np.polyval(_SLOPE[::-1], x) / sinh,
            (1 + decayed) / (1 - decayed) - 1 / far,
        )
        curvature = np.where(
            near,
            np.polyval(_CURVATURE[::-1], x) / sinh**2,
            1 / far**2 - 4 * decayed / (1 - decayed) ** 2,
        )
        return value, sign * slope, curvature

    def _variance_proxy(self) -> float:
        return float(self.half_width) ** 2 / 3  # sinh(x) / x <= exp(x^2 / 6), term by term

    def _coordinate_moments(self, slope: float) -> Float[np.ndarray, "5"]:
        x, weights = np.polynomial.legendre.leggauss(_NODES)
        weights = weights * np.exp(slope * x - abs(slope))
        return weights @ x[:, None] ** (2 * np.arange(5)) / weights.sum()

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        return as_numpy(self.half_width) * random.uniform(-1, 1, size=(count, self.dimension))


# Within one of zero, quotients of series whose terms are all positive; beyond, closed forms that
# subtract nothing of nearly the same size.


def _curvature(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``1 / x^2 - 1 / sinh^2 x``."""
    square, far = _split(x)
    sinh_squared = _series(_SINH, square) ** 2
    inverse_sinh_squared = 4 * jnp.exp(-2 * far) / jnp.expm1(-2 * far) ** 2
    inside = jnp.abs(x) < 1
    return jnp.where(inside, _series(_CURVATURE, square) / sinh_squared,
                     1 / far**2 - inverse_sinh_squared)  # fmt: skip


def _direct_slope(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``coth x - 1 / x``."""
    square, far = _split(x)
    near = x * _series(_SLOPE, square) / _series(_SINH, square)
    return jnp.where(jnp.abs(x) < 1, near, jnp.sign(x) * (1 / jnp.tanh(far) - 1 / far))


_slope = with_derivative(_direct_slope, _curvature)


def _direct_log_normalizer(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log(sinh(x) / x)``."""
    square, far = _split(x)
    near = jnp.log1p(square * _series(_SINH[1:], square))
    return jnp.where(jnp.abs(x) < 1, near, far - jnp.log(2 * far) + jnp.log1p(-jnp.exp(-2 * far)))


_log_normalizer = with_derivative(_direct_log_normalizer, _slope)


def _split(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Arguments of series and of closed forms: each harmless where the other is used."""
    size = jnp.where(x < 0, -x, x)
    return jnp.where(size < 1, x, 1) ** 2, jnp.where(size < 1, 1, size)


def _series(coefficients: list[float], square: Float[Array, "..."]) -> Float[Array, "..."]:
    return jnp.polyval(jnp.array(coefficients[::-1], dtype=square.dtype), square)
