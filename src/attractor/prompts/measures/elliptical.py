"""Laws that are the same in every direction: uniform on a sphere, and Student's t.

The sphere needs ratios of modified Bessel functions. With ``nu >= -1/2`` and ``q = x^2``, both
functions here are smooth in ``q``, zero included:

    bessel_ratio(nu, q) = I_{nu+1}(x) / (x I_nu(x)),
    log_ascending(nu, q) = log(Gamma(nu + 1) (2 / x)^nu I_nu(x)),    with derivative ratio / 2.

Thirty-two orders higher, the expansion for large orders is exact to rounding wherever the argument
lies; from there the recurrence ``1 / bessel_ratio(nu - 1) = 2 nu + q bessel_ratio(nu)`` leads down,
adds nothing but positive numbers, and makes errors smaller at every step.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Bool, Complex, Float

from attractor.prompts.measures.arithmetic import (
    Generated,
    ScoreLine,
    checked_dimension,
    checked_positive,
    from_cumulants,
)
from attractor.prompts.measures.contract import Measure, as_numpy
from attractor.support.errors import InvalidInputError

_STEPS = 32
_TERMS = 6
_SERIES_TERMS = 20
_COMPLEX_TERMS = 40


def bessel_ratio(nu: float, q: Float[Array, "..."]) -> Float[Array, "..."]:
    """``I_{nu+1}(x) / (x I_nu(x))`` as a function of ``q = x^2 >= 0``."""
    return _descend(nu, q)[0]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def log_ascending(nu: float, q: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log(Gamma(nu + 1) (2 / x)^nu I_nu(x))`` as a function of ``q = x^2 >= 0``, zero at zero."""
    near = q < 4 * (nu + 1)
    return jnp.where(near, _log_series(nu, jnp.where(near, q, 0)), _log_from_above(nu, q))


@log_ascending.defjvp
def _log_ascending_jvp(
    nu: float, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    return log_ascending(nu, *primals), bessel_ratio(nu, *primals) / 2 * tangents[0]


def _log_series(nu: float, q: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log_ascending`` by its power series, where each term is less than the one before."""
    beyond_one = jnp.zeros_like(q)
    for k in range(_SERIES_TERMS, 0, -1):
        beyond_one = q / (4 * k * (nu + k)) * (1 + beyond_one)
    return jnp.log1p(beyond_one)


def _log_from_above(nu: float, q: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log_ascending`` by the expansion for large orders and the recurrence."""
    order = nu + _STEPS
    length = jnp.sqrt(order**2 + q)
    excess = q / (length + order)
    rising, at_zero = (_series(0, order, s) for s in (length, jnp.full_like(length, order)))
    highest = (
        excess
        - order * jnp.log1p(excess / (2 * order))
        - jnp.log1p(excess / order) / 2
        + jnp.log1p((rising - at_zero) / at_zero)
    )
    return highest + _descend(nu, q)[1]


def _descend(nu: float, q: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """The ratio of order ``nu``, and by how much ``log_ascending`` is above that of the start."""
    order = nu + _STEPS
    length = jnp.sqrt(order**2 + q)
    start = 1 / (length + order) + _series(1, order, length) / (
        length**2 * _series(0, order, length)
    )

    def step(carry: tuple[Array, Array], m: Array) -> tuple[tuple[Array, Array], None]:
        higher, total = carry
        return (1 / (2 * m + q * higher), total + jnp.log1p(q * higher / (2 * m))), None

    orders = order - jnp.arange(_STEPS, dtype=q.dtype)
    return jax.lax.scan(step, (start, jnp.zeros_like(q)), orders)[0]


def _series(which: int, order: float, length: Float[Array, "..."]) -> Float[Array, "..."]:
    """``sum_k P_k(order^2 / length^2) / length^k`` for one of the two expansions."""
    square, total = order**2 / length**2, jnp.zeros_like(length)
    for row in reversed(_expansions()[which]):
        polynomial = jnp.full_like(square, row[-1])
        for coefficient in row[-2::-1]:
            polynomial = polynomial * square + coefficient
        total = total / length + polynomial
    return total


@functools.cache
def _expansions() -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    """Coefficients of Debye's expansions for large orders: of ``I``, and of ``I'`` less ``I``.

    ``u_0 = 1``, ``u_{k+1} = p^2 (1 - p^2) u_k' / 2 + integral of (1 - 5 t^2) u_k / 8 from 0 to p``.
    Those of the derivative differ by ``p (p^2 - 1) (u_k / 2 + p u_k')``. Powers of ``p`` that a
    polynomial has in common are left out: its rows are in ``p^2``.
    """
    polynomial, rising, difference = [Fraction(1)], [], []
    for k in range(_TERMS + 1):
        rising.append(tuple(float(c) for c in polynomial[k::2]))
        difference.append(tuple(-float(c / 2 + i * c) for i, c in enumerate(polynomial))[k::2])
        following = [Fraction(0)] * (len(polynomial) + 3)
        for i, c in enumerate(polynomial):
            following[i + 1] += c * i / 2 + c / (8 * (i + 1))
            following[i + 3] -= c * i / 2 + 5 * c / (8 * (i + 3))
        polynomial = following
    return rising, difference[:-1]


def continued(
    nu: float, z: Complex[np.ndarray, "..."]
) -> tuple[Complex[np.ndarray, "..."], Complex[np.ndarray, "..."]]:
    """A logarithm of ``Gamma(nu + 1) (2 / z)^nu I_nu(z)``, and ``I_{nu+1}(z) / (z I_nu(z))``.

    At complex ``z`` off the imaginary axis, where the zeros are. By the power series while its
    terms hardly cancel, by SciPy's Bessel functions beyond; NaN where these underflow, for orders
    beyond 500.
    """
    z = np.where(np.real(z) < 0, -z, z)  # both are even
    near = np.abs(z) ** 2 < 16 * (nu + 1)
    q = np.where(near, z, 0) ** 2
    lower = upper = np.ones_like(q)
    for k in range(_COMPLEX_TERMS, 0, -1):
        lower = 1 + q / (4 * k * (nu + k)) * lower
        upper = 1 + q / (4 * k * (nu + 1 + k)) * upper
    far = np.where(near, 1, z)
    scaled = scipy.special.ive(nu, far)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = (
            np.log(scaled) + np.real(far) + scipy.special.gammaln(nu + 1) - nu * np.log(far / 2)
        )
        ratio = scipy.special.ive(nu + 1, far) / (far * scaled)
        beyond = np.where(np.abs(scaled) < 1e-290, np.nan, beyond)
        value = np.where(near, np.log(lower), beyond)
    return value, np.where(near, upper / lower / (2 * (nu + 1)), ratio)


class Sphere(Measure):
    """The uniform law on the sphere of radius ``r`` in R^d.

    The tilted mean is ``r I_{d/2}(r |a|) / I_{d/2-1}(r |a|) a / |a|``. Its covariance is the
    identity for ``r = sqrt(d)``, and yet attention is not linear.

    Attributes:
        radius: ``r``.
    """

    _dimension: int = eqx.field(static=True)
    radius: Float[Any, ""]

    def __init__(self, dimension: int, radius: Float[Any, ""] | Any) -> None:
        """Checks and stores dimension and radius.

        Raises:
            InvalidInputError: If the dimension is not an integer >= 2, or the radius not a number
                above 0.
        """
        self._dimension = checked_dimension(dimension)
        if dimension == 1:
            raise InvalidInputError(
                "dimension", "it is 1, where a sphere is two points", "Give Rademacher(1, radius)"
            )
        self.radius = checked_positive("radius", radius)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._dimension

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return log_ascending(self._order, self._square(direction))

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        gain = self.radius**2 * bessel_ratio(self._order, self._square(direction))
        return gain[..., None] * direction

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        ratio = partial(bessel_ratio, self._order)
        square = self._square(direction)
        gain, slope = jax.jvp(ratio, (square,), (jnp.ones_like(square),))
        outer = direction[..., :, None] * direction[..., None, :]
        across = self.radius**2 * gain[..., None, None] * jnp.eye(self.dimension)
        return across + 2 * self.radius**4 * slope[..., None, None] * outer

    def _generated(self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]) -> Generated:
        radius, d = float(self.radius), self.dimension
        a, P, c = line
        length = float(np.linalg.norm(a))
        along = P @ a / (length or 1.0)
        log_value, ratio = continued(self._order, radius * length * q)
        gain = radius**2 * ratio * q  # the tilted mean is gain a
        # Every token has the same length, so that the trace of their covariance is known.
        spread = radius**2 - (gain * length) ** 2
        across = radius**2 * ratio
        return from_cumulants(
            log_value - q * (a @ c),
            gain * (P @ a)[:, None, None] - (P @ c)[:, None, None],
            across * ((P**2).sum() - along @ along) + (spread - (d - 1) * across) * (along @ along),
        )

    def _variance_proxy(self) -> float:
        # Term by term E exp(a^T X) is at most exp(r^2 |a|^2 / (2 d)).
        return float(self.radius) ** 2 / self.dimension

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        return float(self.radius) ** (2.0 * np.arange(5))

    def _square(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return ((self.radius * direction) ** 2).sum(-1)

    @property
    def _order(self) -> float:
        return self._dimension / 2 - 1

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        directions = random.normal(size=(count, self.dimension))
        lengths = np.linalg.norm(directions, axis=-1, keepdims=True)
        return as_numpy(self.radius) * directions / lengths


class StudentT(Measure):
    """``c G sqrt(n / S)`` for standard Gaussian ``G`` in R^d and ``S`` of a chi-squared law.

    ``E exp(a^T X)`` is infinite for every direction but zero, so that only finite prompts of such
    tokens have attention. At zero the mean is 0 for ``n > 1`` and the covariance
    ``c^2 n / (n - 2) I`` for ``n > 2``; they are NaN, and infinite or NaN, for heavier tails.

    Attributes:
        degrees_of_freedom: ``n``.
        scale: ``c``.
    """

    degrees_of_freedom: Float[Any, ""]
    _dimension: int = eqx.field(static=True)
    scale: Float[Any, ""]

    def __init__(
        self,
        degrees_of_freedom: Float[Any, ""] | Any,
        dimension: int,
        scale: Float[Any, ""] | Any = 1.0,
    ) -> None:
        """Checks and stores degrees of freedom, dimension and scale.

        Raises:
            InvalidInputError: If degrees of freedom or scale are not numbers above 0, or the
                dimension is not an integer >= 1.
        """
        self.degrees_of_freedom = checked_positive("degrees_of_freedom", degrees_of_freedom)
        self._dimension = checked_dimension(dimension)
        self.scale = checked_positive("scale", scale)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._dimension

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return jnp.where(self._exists(direction), 0.0, jnp.nan)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        there = self._exists(direction) & (self.degrees_of_freedom > 1)
        return jnp.where(there[..., None], jnp.zeros_like(direction), jnp.nan)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        n = jnp.asarray(self.degrees_of_freedom)
        variance = self.scale**2 * jnp.where(n > 2, n / jnp.where(n > 2, n - 2, 1), jnp.inf)
        there = (self._exists(direction) & (n > 1))[..., None, None]
        # Zero times an infinite variance would be NaN off the diagonal.
        diagonal = jnp.where(jnp.eye(self.dimension, dtype=bool), variance, 0.0)
        return jnp.where(there, diagonal, jnp.nan)

    def _covariance_product(
        self, direction: Float[Array, "*batch d"], vector: Float[Array, "*batch d"]
    ) -> Float[Array, "*rows d"]:
        return (self._tilted_covariance(direction) @ vector[..., None])[..., 0]

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return (direction == 0).all(-1)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        if not direction.any():
            return None
        return InvalidInputError(
            "measure",
            "Student's t has no exponential moment, whatever the degrees of freedom, so that "
            "attention over infinitely many tokens does not exist",
            "Give tokens with lighter tails, or a finite prompt: "
            "Empirical(measure.sample(length, seed=0))",
        )

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        n = as_numpy(self.degrees_of_freedom)
        directions = random.normal(size=(count, self.dimension))
        lengths = np.sqrt(n / random.chisquare(n, size=(count, 1)))
        return as_numpy(self.scale) * directions * lengths
