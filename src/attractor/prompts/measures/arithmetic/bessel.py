"""Ratios of modified Bessel functions, for every argument and accurate to rounding.

With ``nu >= -1/2`` and ``q = x^2``, both functions here are smooth in ``q``, zero included:

    ratio(nu, q) = I_{nu+1}(x) / (x I_nu(x)),
    log_ascending(nu, q) = log(Gamma(nu + 1) (2 / x)^nu I_nu(x)),    with derivative ratio / 2.

Thirty-two orders higher, the expansion for large orders is exact to rounding wherever the argument
lies; from there the recurrence ``1 / ratio(nu - 1) = 2 nu + q ratio(nu)`` leads down, adds nothing
but positive numbers, and makes errors smaller at every step.
"""

from __future__ import annotations

import functools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Complex, Float

_STEPS = 32
_TERMS = 6
_SERIES_TERMS = 20
_COMPLEX_TERMS = 40


def ratio(nu: float, q: Float[Array, "..."]) -> Float[Array, "..."]:
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
    return log_ascending(nu, *primals), ratio(nu, *primals) / 2 * tangents[0]


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
