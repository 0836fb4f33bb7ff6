"""The hostile values, and which kinds of parameters each could be right for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import attractor as at


class Hostile(NamedTuple):
    """One hostile value.

    Attributes:
        name: How it is known in reports.
        make: The value, given what a valid call has in its place.
        kinds: Kinds of parameters that may answer it. Every other kind has to refuse it.
    """

    name: str
    make: Callable[[Any], Any]
    kinds: frozenset[str]


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda valid: value


def _array(valid: Any) -> np.ndarray:
    """What the valid value is as an array; a small matrix where it is none."""
    if isinstance(valid, np.ndarray) and valid.ndim and valid.dtype.kind in "fiub":
        return valid
    if isinstance(valid, list | tuple) and valid and all(isinstance(v, int | float) for v in valid):
        return np.asarray(valid)
    return np.array([[1.0, 2.0], [3.0, 4.0]])


def _with(entry: float) -> Callable[[Any], np.ndarray]:
    def make(valid: Any) -> np.ndarray:
        array = np.array(_array(valid), dtype=np.float64)
        array.flat[-1] = entry
        return array

    return make


def _last(valid: Any) -> np.ndarray:
    """True at the last entry alone."""
    size = _array(valid).size
    return (np.arange(size) == size - 1).reshape(_array(valid).shape)


def _as(dtype: Any) -> Callable[[Any], np.ndarray]:
    return lambda valid: _array(valid).astype(dtype)


def _entry(name: str, value: Any, *kinds: str) -> Hostile:
    make = value if callable(value) and not isinstance(value, type) else _always(value)
    return Hostile(name, make, frozenset(kinds))


VALUES = (
    _entry("None", None, "none"),
    _entry("True", True, "flag"),
    _entry("NaN", float("nan")),
    _entry("inf", float("inf"), "real", "array"),
    _entry("-inf", float("-inf"), "real", "array"),
    _entry("1e308", 1e308, "real", "array"),
    _entry("1e-320", 1e-320, "real", "array"),
    _entry("0.5", 0.5, "real", "array"),
    _entry("-1", -1, "count", "real", "array"),
    _entry("0", 0, "count", "real", "array"),
    _entry("2**70", 2**70, "count", "real", "array"),
    _entry("'text'", "text", "text", "path"),
    _entry("''", "", "text", "path"),
    _entry("b''", b""),
    _entry("[]", lambda valid: [], "sequence", "array"),
    _entry("ragged list", lambda valid: [[1], [2, 3]], "nested"),
    _entry("['text', None]", lambda valid: ["text", None]),
    _entry("object", lambda valid: object()),
    _entry("array with NaN", _with(np.nan), "nan"),
    _entry("array with inf", _with(np.inf), "array", "infinities"),
    _entry("array of 1e308", lambda valid: np.full(_array(valid).shape, 1e308), "array"),
    _entry("array of 1e-320", lambda valid: np.full(_array(valid).shape, 1e-320), "array"),
    _entry("array of -1", lambda valid: np.full(_array(valid).shape, -1), "array"),
    _entry("array of 2**62", lambda valid: np.full(_array(valid).shape, 2**62), "array"),
    _entry("object array", _as(object), "objects"),
    _entry("complex array", _as(np.complex128)),
    _entry("masked array", lambda valid: np.ma.masked_array(_array(valid), mask=_last(valid))),
    _entry("list of masked arrays", lambda valid: [np.ma.masked_array(_array(valid))]),
    _entry("array of texts", _as(str), "texts"),
    _entry("array of booleans", _as(bool), "mask"),
    _entry("float16", _as(np.float16), "array"),
    _entry("one axis fewer", lambda valid: _array(valid).reshape(-1), "array", "mask"),
    _entry("one axis more", lambda valid: _array(valid)[None], "array", "mask"),
    _entry("three axes more", lambda valid: _array(valid)[None, None, None], "array", "mask"),
    _entry("an axis behind", lambda valid: _array(valid)[..., None], "array", "mask"),
    _entry("too long", lambda valid: np.repeat(_array(valid), 2, axis=-1), "array", "mask"),
    _entry("too short", lambda valid: _array(valid)[:-1], "array", "mask"),
    _entry("empty last axis", lambda valid: _array(valid)[..., :0], "array", "mask"),
    _entry("empty first axis", lambda valid: _array(valid)[:0], "array", "mask"),
    _entry("huge", lambda valid: np.broadcast_to(0.0, (10**9, 100, 100)), "array"),
    _entry("{}", lambda valid: {}, "mapping"),
    _entry("{'a': 1}", lambda valid: {"a": 1}, "settings"),
    _entry("generator", lambda valid: (number for number in (1.0, 2.0)), "iterable"),
    _entry("a class", type, "callable"),
    _entry("another object", lambda valid: at.Frobenius(), "geometry"),
)

SHAPES = frozenset(
    value.name for value in VALUES if "array" in value.kinds and not value.kinds & {"real", "count"}
) | {"array of booleans"}
"""Arrays that are wrong in nothing but shape or size: any array of the call may be named for them,
as each is checked against the others."""
