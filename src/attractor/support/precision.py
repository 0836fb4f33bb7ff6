"""Double precision for as long as it is needed, and casting on the way in."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from attractor.support.errors import AttractorError, InvalidInputError, NotFiniteError
from attractor.support.loaded import is_of_loaded
from attractor.support.memory import require_memory
from attractor.support.settings import settings_of_jax

if TYPE_CHECKING:
    from jaxtyping import ArrayLike

_forked_with_jax = False
"""Whether this process was forked from one that had used JAX."""


def _jax_was_used() -> bool:
    """Whether JAX has started its threads, which it does on its first use and not on import."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    # It is private, and nothing public says it; where it is missing, forks are not watched.
    initialized = getattr(bridge, "backends_are_initialized", None)
    return initialized is not None and initialized()


def _note_fork() -> None:
    global _forked_with_jax
    _forked_with_jax = _forked_with_jax or _jax_was_used()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Lets JAX compute in float64 and in our own settings inside the block; the user's come back.

    What is computed is there at once, also where the user's code is being traced.

    Raises:
        AttractorError: If JAX finds no device, or in a process forked from one that had used JAX,
            whose threads it lacks: it would wait for them for ever.
    """
    if _forked_with_jax:
        raise AttractorError(
            "JAX was used before this process was forked, and hangs in it. Start processes by "
            'multiprocessing.get_context("spawn") or "forkserver", or give train all seeds in one '
            "call: it uses every processor"
        )
    jax = _jax_with_device()
    at_once = jax.core.eval_context()  # pyright: ignore[reportAttributeAccessIssue]
    with settings_of_jax(jax), at_once, jax.enable_x64(True):
        yield


@functools.cache
def _jax_with_device() -> Any:
    """JAX, once it has looked for its devices."""
    import jax

    try:
        jax.devices()
    except Exception as error:  # without a word where none of the platforms named is there
        why = (
            " ".join(str(error).split())
            or f"JAX_PLATFORMS is {jax.config.values['jax_platforms']!r}"
        )
        raise AttractorError(
            f"JAX finds no device ({why}). Leave JAX_PLATFORMS out of the environment, or set it "
            "to cpu"
        ) from None
    return jax


LARGEST = 1e50
"""Entries beyond it are refused where products of up to six of them must not overflow."""

_MUCH = 2**30
"""Bytes of an array from which on a copy of it may not fit into memory."""


def check_unmasked(argument: str, value: Any) -> None:
    """Checks that a value is no masked array of NumPy, whose masked entries may hold anything.

    Raises:
        InvalidInputError: If it is one.
    """
    if is_of_loaded(value, "numpy.ma", "MaskedArray"):
        raise InvalidInputError(
            argument,
            "it is a masked array, whose mask would be lost",
            "Give array.filled(0), and say what is missing by mask, where there is one",
        )


def as_plain(argument: str, value: Any) -> np.ndarray:
    """A value as NumPy reads it; an array of one object where it is a ragged list.

    Tensors of PyTorch are taken out of their graph and off their device.

    Raises:
        InvalidInputError: If it is a masked array of NumPy, a list of them, or traced by JAX.
    """
    of_each_type = {type(part): part for part in value} if isinstance(value, list | tuple) else {}
    for part in (value, *of_each_type.values()):
        check_unmasked(argument, part)
        if is_of_loaded(part, "jax.core", "Tracer"):
            raise InvalidInputError(
                argument,
                "JAX is tracing it, and its numbers are not known yet",
                "Give an array of numbers: call this outside of jax.jit, jax.grad and jax.vmap",
            )
    if is_of_loaded(value, "torch", "Tensor"):
        tensor: Any = value
        value = tensor.detach().cpu()
        if value.is_floating_point() and value.itemsize < 4:  # NumPy knows no bfloat16
            value = value.double()
    try:
        return np.asarray(value)
    except (ValueError, RuntimeError):  # ragged, or a list of tensors that are in a graph
        return np.asarray(None)


def as_float64(
    argument: str, value: ArrayLike | Any, *, finite: bool = True, largest: float = math.inf
) -> Float[np.ndarray, "..."]:
    """Returns a read-only float64 copy of an array, exact for any narrower floating point.

    Args:
        argument: The name to use in an error.
        value: Anything NumPy can read as an array of real numbers, or a tensor of PyTorch.
        finite: Whether to refuse NaN and infinity.
        largest: The largest magnitude of a finite entry allowed, such as ``LARGEST``.

    Raises:
        InvalidInputError: If the values are not real numbers, are not finite or too large, or a
            copy does not fit into memory.
    """
    array = as_plain(argument, value)
    if array.dtype.kind == "O":
        raise InvalidInputError(
            argument,
            "the entries do not form one array of numbers",
            "Give a rectangular array; pad ragged sequences and describe the padding with mask",
        )
    if array.dtype.kind not in "fiu" and "float" not in array.dtype.name:  # bfloat16 and so on
        raise InvalidInputError(
            argument,
            f"the data type is {array.dtype.name}, not real numbers",
            "Give floating point or integers",
        )
    _require_memory_for_copy(argument, array)
    result = np.array(array, dtype=np.float64, order="C")
    if finite:
        finite_where(argument, result)
    if largest < math.inf and (large := np.isfinite(result) & (np.abs(result) > largest)).any():
        place = tuple(int(i) for i in np.argwhere(large)[0])
        raise InvalidInputError(
            argument,
            f"the entry at {place} is {result[place]:.3g}",
            f"Give numbers from {-largest:g} to {largest:g}: choose other units",
        )
    result.setflags(write=False)
    return result


def finite_where(
    argument: str, array: Float[np.ndarray, "..."], used: Any = True
) -> Float[np.ndarray, "..."]:
    """The array, with zeros in the place of NaN and infinity where an entry is not used.

    Args:
        argument: The name to use in an error.
        array: Any array of floating point.
        used: True where an entry is used; broadcasts to the shape of the array.

    Raises:
        NotFiniteError: If an entry that is used is not a finite number.
    """
    lost = ~np.isfinite(array)
    if not lost.any():
        return array
    if (wrong := lost & used).any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise NotFiniteError(
            argument,
            f"the entry at {place} is {array[place]}",
            "Every entry must be a finite number, unless a mask leaves it out",
        )
    array = np.where(lost, 0.0, array)
    array.setflags(write=False)
    return array


def _require_memory_for_copy(argument: str, array: np.ndarray) -> None:
    require_memory(
        argument,
        f"a copy of {array.size:,} numbers, an array of shape {array.shape},",
        needed=9.0 * array.size,  # with the mask of finite entries
        remedy=lambda available: f"Give at most {int(available / 9):,} numbers",
    )


def as_real(
    argument: str, value: ArrayLike | Any, shape: Sequence[int | str]
) -> Float[np.ndarray, "..."]:
    """An array of float64 as it is, or one made of numbers, whose axes must fit.

    NaN and infinity pass, as they are what training that diverged ends with.

    Args:
        argument: The name to use in an error.
        value: Anything NumPy can read as an array of real numbers.
        shape: As in ``as_shaped``.

    Raises:
        InvalidInputError: If the values are not real numbers, or an axis does not fit.
    """
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        array = as_plain(argument, value)
        if array.nbytes > _MUCH:  # a view of one number can be as large as one likes
            _require_memory_for_copy(argument, array)
    else:
        array = as_float64(argument, value, finite=False)
    check_shape(argument, array.shape, shape, empty=True)
    return array


def as_shaped(
    argument: str,
    value: ArrayLike | Any,
    shape: Sequence[int | str],
    *,
    finite: bool = True,
    largest: float = math.inf,
) -> Float[np.ndarray, "..."]:
    """Returns a read-only float64 copy of an array whose axes must fit.

    Args:
        argument: The name to use in an error.
        value: Anything NumPy can read as an array of real numbers.
        shape: The size of each axis, or its name where any size but zero will do; ``"..."`` in
            front allows leading axes.
        finite: Whether to refuse NaN and infinity.
        largest: The largest magnitude of an entry allowed.

    Raises:
        InvalidInputError: As ``as_float64``; also if an axis does not fit.
    """
    array = as_float64(argument, value, finite=finite, largest=largest)
    check_shape(argument, array.shape, shape)
    return array


def as_arrays(**given: tuple[ArrayLike | Any, str]) -> list[Float[np.ndarray, "..."]]:
    """Read-only float64 copies of arrays that belong together.

    Every array comes with the names of its axes, as in annotations: ``as_arrays(W=(W, "*batch d
    e"), V=(V, "v d"))``. An axis of one name has one size; ``*`` allows leading axes.

    Raises:
        InvalidInputError: As ``as_float64``; also if an axis does not fit, or an entry is beyond
            ``LARGEST``.
    """
    sizes: dict[str, int] = {}
    found = []
    for argument, (value, axes) in given.items():
        array = as_float64(argument, value, largest=LARGEST)
        names = axes.split()
        leading = ["..."] if names[0].startswith("*") else []
        named = names[len(leading) :]
        own = array.shape[max(array.ndim - len(named), 0) :]
        check_shape(argument, array.shape, [*leading, *named])
        for name, size in zip(named, own, strict=True):
            sizes.setdefault(name, size)
        check_shape(argument, array.shape, [*leading, *(sizes[name] for name in named)])
        found.append(array)
    return found


def as_integers(
    argument: str,
    value: ArrayLike | Any,
    shape: Sequence[int | str],
    *,
    least: int = 0,
    most: int = 2**62,
) -> Int[np.ndarray, "..."]:
    """Returns integers of a range as an array whose axes must fit, as in ``as_shaped``.

    Raises:
        InvalidInputError: If they are no integers, one is out of range, or an axis does not fit.
    """
    array = as_plain(argument, value)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(argument, "not all are integers", "Give integers in an array")
    check_shape(argument, array.shape, shape)
    if array.size and not (least <= array.min() and array.max() <= most):
        raise InvalidInputError(
            argument,
            f"they run from {array.min()} to {array.max()}",
            f"Give integers from {least} to {most}",
        )
    return array.astype(np.int64)


def check_broadcast(argument: str, *shapes: tuple[int, ...]) -> None:
    """Checks that the first shape, that of the argument, fits the others by broadcasting.

    Raises:
        InvalidInputError: If it does not.
    """
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise InvalidInputError(
            argument, f"the shape is {shapes[0]}", f"Give one that fits {shapes[1]}"
        ) from None


def check_shape(
    argument: str, found: tuple[int, ...], shape: Sequence[int | str], *, empty: bool = False
) -> None:
    """Checks the axes of an array, as ``as_shaped`` describes them.

    Args:
        argument: The name to use in an error.
        found: The shape of the array.
        shape: What it must be.
        empty: Whether an axis of any size may be empty.

    Raises:
        InvalidInputError: If one does not fit.
    """
    leading = tuple(shape[:1]) == ("...",)
    axes = shape[1:] if leading else shape
    last = found[len(found) - len(axes) :] if leading else found
    fits = len(last) == len(axes) and (empty or 0 not in found)
    if fits and all(axis in (have, str(axis)) for axis, have in zip(axes, last, strict=True)):
        return
    wanted = ", ".join(str(axis) for axis in shape)
    raise InvalidInputError(
        argument, f"the shape is {found}", f"Give ({wanted}{',' if len(shape) == 1 else ''})"
    )
