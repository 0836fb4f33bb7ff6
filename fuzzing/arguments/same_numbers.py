"""The same numbers, held otherwise: in another byte order, layout or type, or by another library.

What comes of them has to be what comes of a plain array of float64 or int64 with these numbers.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import xarray as xr

_ORDER = 1e-12
"""Relative to the largest number of an array: sums in another order differ by less."""
_SINGLE = 1e-4
"""The same where JAX computes in the precision that it was given, single."""


class Held(NamedTuple):
    """One way to hold numbers.

    Attributes:
        name: How it is known in reports.
        hold: The array that holds them so.
        rounds: What the numbers are rounded to before, so that it holds them exactly.
        tolerance: How far answers may be apart.
        may_be_refused: Whether saying clearly that it is not taken will do.
    """

    name: str
    hold: Callable[[np.ndarray], Any]
    rounds: Any = None
    tolerance: float = _ORDER
    may_be_refused: bool = False

    def pair(self, valid: Any) -> tuple[Any, Any]:
        """A valid value held so, and the plain one with the same numbers."""
        if isinstance(valid, tuple | list) and any(isinstance(one, np.ndarray) for one in valid):
            held, plain = zip(*map(self.pair, valid), strict=True)
            return type(valid)(held), type(valid)(plain)
        array = np.array(valid)
        if array.dtype.kind == "f" and self.rounds:
            array = array.astype(self.rounds).astype(np.float64)
        return self.hold(array), array


def _of_type(small: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Floating point in a small type, whole numbers in the smallest that holds them."""

    def hold(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind not in "iu":
            return array.astype(small) if array.dtype.kind == "f" else array
        sizes = (np.int8, np.int16, np.int32, np.int64)
        return array.astype(next(one for one in sizes if (array.astype(one) == array).all()))

    return hold


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


def _with_gaps(array: np.ndarray) -> np.ndarray:
    """Every other number of a larger array, from its end."""
    return np.repeat(array[..., ::-1], 2, axis=-1)[..., ::-2] if array.ndim else array


def _of_jax(small: Any = None) -> Callable[[np.ndarray], Any]:
    def hold(array: np.ndarray) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(array, small if array.dtype.kind == "f" else None)

    return hold


def _of_torch(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(array.copy())


WAYS = (
    Held("big-endian", lambda array: array.astype(array.dtype.newbyteorder(">"))),
    Held("read-only", _read_only),
    Held("Fortran order", lambda array: np.array(array, order="F")),
    Held("with gaps", _with_gaps),
    Held("small types", _of_type(np.float16), np.float16, may_be_refused=True),
    Held("bfloat16", _of_type(ml_dtypes.bfloat16), ml_dtypes.bfloat16, may_be_refused=True),
    Held("JAX", _of_jax(), np.float32, _SINGLE, may_be_refused=True),
    Held("half of JAX", _of_jax(np.float16), np.float16, _SINGLE, may_be_refused=True),
    Held("PyTorch", _of_torch, may_be_refused=True),
)


def known_ways() -> tuple[Held, ...]:
    """The ways whose library is installed."""
    return WAYS if importlib.util.find_spec("torch") else WAYS[:-1]


def is_held(valid: Any, kinds: set[str]) -> bool:
    """Whether a valid value is numbers that could be held otherwise."""
    if isinstance(valid, np.ndarray):
        return valid.dtype.kind in "fiub"
    if isinstance(valid, tuple | list) and any(isinstance(one, np.ndarray) for one in valid):
        return all(isinstance(one, np.ndarray) for one in valid)
    if "array" not in kinds or isinstance(valid, str | bool) or valid is None:
        return False
    try:
        return isinstance(valid, int | float | list) and np.array(valid).dtype.kind in "fiu"
    except ValueError:
        return False


def difference(one: Any, other: Any, tolerance: float, depth: int = 5) -> str:
    """Where two answers are apart, and by how much; nothing where they are not."""
    if depth == 0 or isinstance(one, str | bytes | types.FunctionType | type) or one is None:
        return "" if depth == 0 or one is None or type(one) is type(other) else "another type"
    if isinstance(one, xr.DataArray):
        return difference(one.values, other.values, tolerance)
    if isinstance(one, xr.Dataset):
        one, other = dict(one.variables), dict(other.variables)
    if hasattr(one, "__array__") or isinstance(one, int | float):
        return _between(np.asarray(one), np.asarray(other), tolerance)
    pairs = zip(_parts(one), _parts(other), strict=False)
    for (name, part), (_, another) in pairs:
        if found := difference(part, another, tolerance, depth - 1):
            return f".{name}{found}"
    return ""


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object is made of, by name."""
    if isinstance(value, Mapping):
        yield from ((str(name), part) for name, part in value.items())
    elif isinstance(value, tuple | list):
        yield from ((str(place), part) for place, part in enumerate(value))
    elif dataclasses.is_dataclass(value):
        yield from ((one.name, getattr(value, one.name, None)) for one in dataclasses.fields(value))
    elif type(value).__module__.startswith("attractor"):
        yield from getattr(value, "__dict__", {}).items()


def _between(one: np.ndarray, other: np.ndarray, tolerance: float) -> str:
    if one.shape != other.shape:
        return f": the shape is {one.shape}, not {other.shape}"
    if one.dtype.kind not in "fiubc" or not one.size:
        return ""
    one, other = (np.asarray(array, complex) for array in (one, other))
    with np.errstate(invalid="ignore"):
        largest = np.abs(other[np.isfinite(other)]).max(initial=0)
        apart = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0, abs(one - other))
    wrong = ~(apart <= tolerance * largest)
    return f": {np.nanmax(apart):.2g} apart of {largest:.2g}" if wrong.any() else ""
