"""Warnings about mirror descent that its floating point cannot follow."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PyTree

from attractor.errors import PrecisionWarning
from attractor.geometry import Lp, Schatten
from attractor.geometry.precision_limits import mirror_limits


def warn_of_lost_precision(
    geometries: PyTree,
    params: PyTree,
    dual: PyTree,
    shortest: float,
    longest: float,
) -> None:
    """Gives one warning if steps of this length cannot be followed; nothing else.

    Args:
        geometries: The geometry of every array.
        params: Arrays of parameters.
        dual: Their mirror images. While JAX traces them, no step counts as too short.
        shortest: What the dual norm of the first step of an array is at least, zero if unknown.
        longest: What that of any step is at most, infinity if unknown.
    """
    named, _ = jax.tree_util.tree_flatten_with_path(params)
    found = []
    for (path, leaf), geometry, Y in zip(
        named, jax.tree.leaves(geometries), jax.tree.leaves(dual), strict=True
    ):
        reason = _problem(geometry, jnp.result_type(leaf), Y, shortest, longest)
        if reason:
            found.append((jax.tree_util.keystr(path, simple=True, separator="."), reason))
    if not found:
        return
    name, reason = found[0]
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    which = f"{name or 'the parameters'}{others}"
    warnings.warn(f"Mirror descent of {which}: {reason}", PrecisionWarning, stacklevel=3)


def _problem(
    geometry: Lp | Schatten, dtype: Any, Y: Float[Array, "..."], shortest: float, longest: float
) -> str | None:
    if not Y.size:
        return None
    info = jnp.finfo(dtype)
    limits = mirror_limits(
        geometry.p,
        smallest=float(info.smallest_subnormal),
        largest=float(info.max),
        epsilon=float(jnp.finfo(Y.dtype).eps),
    )
    # Of an array of dual norm one, some entry or singular value is this large.
    share = Y.size ** (-1 / geometry.q)
    size = 0.0 if isinstance(Y, Tracer) else float(np.abs(np.asarray(Y)).min())
    reach = limits.largest - limits.smallest
    return limits.problem(shortest * share, 0.0) or limits.problem(min(longest, reach), size)
