"""Powers whose second derivatives JAX gets right where the base is zero."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def absolute_power(x: Float[Array, "..."], p: float) -> Float[Array, "..."]:
    """``|x|^p`` for p >= 2."""
    return jnp.abs(x) ** p


@absolute_power.defjvp
def _absolute_power_jvp(p, primals, tangents):  # noqa: ANN001, ANN202 - JAX's own convention
    (x,), (dx,) = primals, tangents
    return absolute_power(x, p), p * _signed_power(x, p - 1) * dx


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _signed_power(x: Float[Array, "..."], p: float) -> Float[Array, "..."]:
    """``sign(x) |x|^p`` for p >= 1."""
    return jnp.sign(x) * jnp.abs(x) ** p


@_signed_power.defjvp
def _signed_power_jvp(p, primals, tangents):  # noqa: ANN001, ANN202
    (x,), (dx,) = primals, tangents
    return _signed_power(x, p), p * jnp.abs(x) ** (p - 1) * dx


def trace_power(A: Float[Array, "r r"], p: float) -> Float[Array, ""]:
    """``tr A^p`` for a positive semidefinite A and p >= 1."""
    return jnp.trace(A) if p == 1 else _trace_power(A, p)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _trace_power(A: Float[Array, "r r"], p: float) -> Float[Array, ""]:
    return (jnp.maximum(jnp.linalg.eigvalsh(A), 0) ** p).sum()


@_trace_power.defjvp
def _trace_power_jvp(p, primals, tangents):  # noqa: ANN001, ANN202
    (A,), (dA,) = primals, tangents
    return _trace_power(A, p), p * (_matrix_power(A, p - 1) * dA).sum()


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _matrix_power(A: Float[Array, "r r"], p: float) -> Float[Array, "r r"]:
    values, V = jnp.linalg.eigh(A)
    return (V * jnp.maximum(values, 0) ** p) @ V.T


@_matrix_power.defjvp
def _matrix_power_jvp(p, primals, tangents):  # noqa: ANN001, ANN202
    """By divided differences of the eigenvalues (Daleckii and Krein 1965)."""
    (A,), (dA,) = primals, tangents
    values, V = jnp.linalg.eigh(A)
    # Powers below one have no derivative at zero: eigenvalues are held off by rounding.
    values = jnp.maximum(values, jnp.finfo(values.dtype).eps * jnp.maximum(values[-1], 1e-300))
    larger = jnp.maximum(values[:, None], values)
    ratio = jnp.minimum(values[:, None], values) / larger
    near = 1 - ratio < 1e-5
    apart = jnp.where(near, 0.5, ratio)
    slope = jnp.where(near, p * ratio ** ((p - 1) / 2), (1 - apart**p) / (1 - apart))
    divided = slope * larger ** (p - 1)
    return (V * values**p) @ V.T, V @ (divided * (V.T @ dA @ V)) @ V.T
