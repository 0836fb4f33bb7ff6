"""A hash by which data are recognized."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.attention import Head

_TOKEN_ARRAYS = ("keys", "queries", "values", "labels", "weights", "mask", "instance_numbers")
_KINDS = "biufcU"  # truth values, integers, floats, complex numbers, text


def data_hash(tokens: Tokens | None = None, head: Head | None = None, **arrays: Any) -> str:
    """SHA-256 over the names, shapes, types and bytes of all arrays, in 64 hexadecimal digits.

    Arrays are taken by name in alphabetical order, in C order and little-endian, so that the hash
    is the same on every machine. How an array lies in memory and in which order arrays are given
    do not matter; a 0.0 that becomes -0.0 does.

    Args:
        tokens: Their keys, queries, values, labels, weights, mask and instance numbers; or None.
        head: Its name and its arrays; or None.
        **arrays: Anything else the result depends on.

    Raises:
        InvalidInputError: If an array holds anything but numbers, truth values or text.
    """
    check_kinds(tokens=(tokens, Tokens | None))
    if head is not None:
        from attractor.attention import Head

        check_kinds(head=(head, Head))
    parts: dict[str, Any] = {f"array {name}": array for name, array in arrays.items()}
    if tokens is not None:
        parts |= {f"tokens {name}": getattr(tokens, name) for name in _TOKEN_ARRAYS}
    if head is not None:
        parts |= {f"head {name}": array for name, array in head.arrays().items()}
        parts["head"] = np.array(head.name)
    total = hashlib.sha256()
    for name in sorted(parts):
        if parts[name] is None:
            continue
        array = _canonical(name, parts[name])
        # Lengths go first: otherwise two different lists of arrays could give the same bytes.
        for text in (name, str(array.shape), array.dtype.str):
            total.update(f"{len(text)} {text}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _canonical(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in _KINDS:
        raise InvalidInputError(
            name.removeprefix("array "),
            f"it holds values of type {array.dtype}, which have no fixed bytes",
            "Give a rectangular array of numbers",
        )
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
