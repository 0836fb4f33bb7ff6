"""Double precision for as long as it is needed, and casting on the way in."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import threadpoolctl
from jax._src import xla_bridge
from jaxtyping import ArrayLike, Float

from attractor.errors import AttractorError, InvalidInputError
from attractor.memory import require_memory

_forked_with_jax = False
"""Whether this process was forked from one that had used JAX."""


def _note_fork() -> None:
    global _forked_with_jax
    _forked_with_jax = _forked_with_jax or xla_bridge.backends_are_initialized()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Lets JAX compute in float64 inside the block, and leaves the user's own setting alone.

    Raises:
        AttractorError: In a process forked from one that had used JAX, whose threads it lacks: it
            would wait for them for ever.
    """
    if _forked_with_jax:
        raise AttractorError(
            "JAX was used before this process was forked, and hangs in it. Start processes by "
            'multiprocessing.get_context("spawn") or "forkserver", or give train all seeds in one '
            "call: it uses every processor"
        )
    with jax.enable_x64(True):
        yield


@contextlib.contextmanager
def single_blas_thread() -> Iterator[None]:
    """Holds every BLAS pool to one thread inside the block.

    NumPy and SciPy each bring a pool of their own; two that fight over the same cores cost far
    more than the second thread of either gains.
    """
    with _blas_pools().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _blas_pools() -> threadpoolctl.ThreadpoolController:
    """The pools of this process; looking for them anew each time would take milliseconds."""
    import scipy.linalg  # noqa: F401 - loads its pool before pools are looked for

    return threadpoolctl.ThreadpoolController()


def as_float64(
    argument: str, value: ArrayLike | Any, *, finite: bool = True
) -> Float[np.ndarray, "..."]:
    """Returns a read-only float64 copy of an array.

    Args:
        argument: The name to use in an error.
        value: Anything NumPy can read as an array of real numbers.
        finite: Whether to refuse NaN and infinity.

    Raises:
        InvalidInputError: If the values are not real numbers, are stored in half precision, or
            are not finite, or a copy does not fit into memory.
    """
    try:
        array = np.asarray(value)
    except ValueError:  # a ragged list
        array = np.asarray(None)
    if array.dtype.kind == "O":
        raise InvalidInputError(
            argument,
            "the entries do not form one array of numbers",
            "Give a rectangular array; pad ragged sequences and describe the padding with mask",
        )
    if array.dtype.name.startswith(("float16", "bfloat16", "float8", "float4")):
        raise InvalidInputError(
            argument,
            f"the numbers are stored as {array.dtype.name}, too coarse to define a margin",
            "Compute or store them as float32 or float64",
        )
    if array.dtype.kind not in "fiu":
        raise InvalidInputError(
            argument,
            f"the data type is {array.dtype.name}, not real numbers",
            "Give float32, float64 or integers",
        )
    require_memory(
        argument,
        f"a copy of {array.size:,} numbers, an array of shape {array.shape},",
        needed=9.0 * array.size,  # with what says which are finite
        remedy=lambda available: f"Give at most {int(available / 9):,} numbers",
    )
    result = np.array(array, dtype=np.float64, order="C")
    if finite and not np.isfinite(result).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise InvalidInputError(
            argument,
            f"the entry at {place} is {result[place]}",
            "Every entry must be a finite number; use mask for padding",
        )
    result.setflags(write=False)
    return result
