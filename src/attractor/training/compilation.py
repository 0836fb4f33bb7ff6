"""Options of XLA for the training step on a CPU."""

from __future__ import annotations

import ctypes
import functools
import gc
import math
from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import PyTree

_SMALL_MATRIX = 400
"""Entries of a matrix up to which narrow registers were faster in every case measured."""
_ON_CPU = {
    # The newer generation of fused loops runs no faster here, and takes half as long again.
    "xla_cpu_use_fusion_emitters": False,
}
_SMALL_ON_CPU = _ON_CPU | {
    # Eight or ten numbers never fill an unrolled loop over wide registers, and would be worked on
    # one at a time: steps take up to half as long again.
    "xla_cpu_prefer_vector_width": 128,
}


def release_compiled() -> None:
    """Releases all that JAX compiled in this process, and returns its memory to the system.

    For long processes that train data of many shapes: each compiled step takes some 6 MB. What is
    used again compiles again, to the same numbers. Programs of the user's own go, too.
    """
    jax.clear_caches()
    gc.collect()
    try:  # glibc keeps what is freed; elsewhere there is no such function, and no need of it
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        pass


def compiled_for(function: Callable[..., Any], arrays: PyTree) -> Any:
    """A function of static objective and condition, compiled the best way for blocks of a size.

    Args:
        function: What to compile; it keeps one compiled form for each set of options.
        arrays: Arrays it will be called with, all with a leading axis of trials.
    """
    leaves = jax.tree.leaves(arrays)
    if any(device.platform != "cpu" for device in leaves[0].devices()):
        return _compiled(function)
    largest = max(math.prod(leaf.shape[1:][-2:]) for leaf in leaves)
    options = _SMALL_ON_CPU if largest <= _SMALL_MATRIX else _ON_CPU
    return _compiled(function, *options.items())


@functools.cache
def _compiled(function: Callable[..., Any], *options: tuple[str, Any]) -> Any:
    understood = {name: value for name, value in options if _understood(name, value)}
    return jax.jit(function, static_argnums=(0, 1), compiler_options=understood)


@functools.cache
def _understood(name: str, value: Any) -> bool:
    """Whether the installed XLA has the option: versions differ."""
    try:
        jax.jit(lambda: 0, compiler_options={name: value})()
    except jax.errors.JaxRuntimeError:
        return False
    return True
