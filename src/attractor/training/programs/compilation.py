"""Compiled programs of the training step: their options on a CPU, and how many are kept."""

from __future__ import annotations

import collections
import ctypes
import functools
import gc
import math
import threading
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any

import jax
from jaxtyping import PyTree

from attractor.support.randomness import traced

_SMALL_MATRIX = 400
"""Entries of a matrix up to which narrow registers were faster in every case measured."""
_ON_CPU = {
    # The newer generation of fused loops runs no faster here, and takes half as long again.
    "xla_cpu_use_fusion_emitters": False,
    # Every part takes work of its own: in 32, the default, a sixth more in all.
    "xla_cpu_parallel_codegen_split_count": 4,
}
_SMALL_ON_CPU = _ON_CPU | {
    # Eight or ten numbers never fill an unrolled loop over wide registers, and would be worked on
    # one at a time: steps take up to half as long again.
    "xla_cpu_prefer_vector_width": 128,
}
_SIDE_BY_SIDE_ON_CPU = _ON_CPU | {
    # Numbers of 25 trials fill three of the widest registers there are.
    "xla_cpu_prefer_vector_width": 512,
}
_BRIEF_ON_CPU = {
    # The same instructions but for their order, found in four fifths of the time.
    "xla_backend_optimization_level": 1,
    "xla_cpu_parallel_codegen_split_count": 1,
}
_UNOPTIMIZED_ON_CPU = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
"""Where the user has JAX compile without most optimizations: none that others bring back."""
_MOST_KEPT = 120
"""Programs kept: those of 30 runs of different shapes or norms, which have four each and take
10 MB together."""


def release_compiled() -> None:
    """Releases all that JAX compiled in this process, and returns its memory to the system.

    Long processes need not call it: of the programs of training, which take some 10 MB a shape,
    those used last are kept, and the others go by themselves. What is used again compiles again,
    to the same numbers. Programs of the user's own go, too.
    """
    with _lock:
        _kept.clear()
    jax.clear_caches()
    gc.collect()
    try:  # glibc keeps what is freed; elsewhere there is no such function, and no need of it
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        pass


def compiled_for(
    function: Callable[..., Any],
    constants: tuple[Hashable, ...],
    arrays: PyTree,
    *,
    side_by_side: bool = False,
    brief: bool = False,
) -> Any:
    """A function of constants and arrays, compiled the best way for blocks of a size.

    Args:
        function: What to compile.
        constants: Its first arguments, which become part of the program.
        arrays: The next of its arguments, JAX arrays, all with a leading axis of trials.
        side_by_side: Whether most of the work is on numbers of all trials side by side, and not on
            the rows of a trial.
        brief: Whether it is compiled longer than it runs.

    Returns:
        A function, compiled by JAX, of the arguments after the constants.
    """
    leaves = jax.tree.leaves(arrays)
    if any(device.platform != "cpu" for device in leaves[0].devices()):
        return kept_program(function, constants, arrays)
    largest = max(math.prod(leaf.shape[1:][-2:]) for leaf in leaves)
    options = _SMALL_ON_CPU if largest <= _SMALL_MATRIX else _ON_CPU
    if side_by_side:
        options = _SIDE_BY_SIDE_ON_CPU
    if brief:
        options = options | _BRIEF_ON_CPU
    if jax.config.read("jax_disable_most_optimizations"):
        options = _UNOPTIMIZED_ON_CPU
    return kept_program(function, constants, arrays, options)


def kept_program(
    function: Callable[..., Any],
    constants: tuple[Hashable, ...],
    arrays: PyTree,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """A function of constants and arrays, compiled; the programs used last are kept.

    Equal constants, and arrays of the same shapes, share one. A program that is let go lives on as
    long as a thread runs it, or holds what this returned.

    Args:
        function: What to compile.
        constants: Its first arguments, which become part of the program.
        arrays: The next of its arguments.
        options: For XLA; what the installed version lacks is left out.

    Returns:
        A function, compiled by JAX, of the arguments after the constants.
    """
    leaves, structure = jax.tree.flatten(arrays)
    shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    key = (function, constants, structure, shapes, *options.items())
    with _lock:
        program = _kept.get(key)
        if program is None:
            understood = _understood(options)
            # JAX forgets what it compiled for a function when that is gone, so each has its own.
            own = functools.partial(traced(function), *constants)
            program = _kept[key] = jax.jit(own, compiler_options=understood)
        _kept.move_to_end(key)
        dropped = [_kept.popitem(last=False) for _ in range(len(_kept) - _MOST_KEPT)]
    dropped.clear()  # outside of the lock: a program takes a while to go
    return program


_kept: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
"""Programs by what they were compiled for, those used last at the end."""
_lock = threading.Lock()


def _understood(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that the installed XLA has: versions differ."""
    if not options or _accepted(*options.items()):
        return dict(options)
    return {name: value for name, value in options.items() if _accepted((name, value))}


@functools.cache
def _accepted(*options: tuple[str, Any]) -> bool:
    """Whether the installed XLA has all of some options, which takes as long as having one."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(options))()
    except jax.errors.JaxRuntimeError:
        return False
    return True
