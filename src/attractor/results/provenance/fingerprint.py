"""Fingerprints by which a run is recognized when it is resumed."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from attractor.support.loaded import is_of_loaded

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MISSING = "nothing"


def digest(*arrays: np.ndarray, text: str = "") -> str:
    """A fingerprint of arrays, of their shapes and types, and of a text."""
    total = hashlib.blake2b(text.encode(), digest_size=16)
    for array in arrays:
        array = np.asarray(array, order="C")
        total.update(f"{array.shape}{array.dtype}".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def program_digest(text: str) -> str:
    """A fingerprint of a compiled step: of every constant and operation in it."""
    return digest(text=_ADDRESS.sub("", text))


def describe(value: Any) -> Any:
    """A value in terms of JSON that are the same in every process.

    Functions are known by their qualified names, arrays by their digests.
    """
    if isinstance(value, np.generic) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): describe(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [describe(entry) for entry in value]
    if isinstance(value, np.ndarray) or is_of_loaded(value, "jax", "Array"):
        return f"array {digest(np.asarray(value))}"
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if dataclasses.is_dataclass(value):
        fields = {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}
        return {"class": type(value).__qualname__, **describe(fields)}
    return _ADDRESS.sub("", repr(value))


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """For each setting that differs, a text with its old and its new value."""
    before, now = _flat(old), _flat(new)
    return [
        f"{name} was {before.get(name, _MISSING)} and is {now.get(name, _MISSING)}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name, _MISSING) != now.get(name, _MISSING)
    ]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings under dotted names, as text, in which NaN equals NaN."""
    flat = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = repr(value)
    return flat
