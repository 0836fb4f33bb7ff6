"""The exponent p of a family of norms: checked, written and read back."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any

from jaxtyping import Float

from attractor.support.errors import InvalidInputError

_NUMBER = re.compile(r"inf|\d+(\.\d+)?(e[+-]?\d+)?")


def checked_exponent(p: Any) -> float:
    """The exponent as a float.

    Raises:
        InvalidInputError: Unless it is a number from 1 to infinity.
    """
    remedy = "Give a number from 1 to inf"
    if isinstance(p, bool) or not isinstance(p, numbers.Real):
        raise InvalidInputError("p", f"{p!r} is not a number", remedy)
    p = float(p)
    if not p >= 1:
        raise InvalidInputError("p", f"it is {p}, and a norm needs p of at least 1", remedy)
    return p


def conjugate_exponent(p: float) -> float:
    """The exponent q of the dual norm: ``1 / p + 1 / q = 1``."""
    if p == 1:
        return math.inf
    return 1.0 if p == math.inf else p / (p - 1)


def exponent_text(p: float) -> str:
    """The shortest text that reads back as the same exponent."""
    return repr(p).removesuffix(".0")


def exponent_after(prefix: str, name: str) -> float | None:
    """The number that follows a prefix in a name; None if the name is anything else."""
    text = name.removeprefix(prefix).removeprefix("_")
    if not name.startswith(prefix) or not _NUMBER.fullmatch(text):
        return None
    return float(text)


def positive_power(sizes: Float[Any, "..."], exponent: float) -> Float[Any, "..."]:
    """``sizes^exponent`` for sizes and an exponent of at least zero.

    With half-integer exponents up to 4 it is made of products and a square root, which are no less
    exact than the general power and several times as fast.
    """
    whole, half = divmod(exponent, 1)
    if half != 0.5 or whole > 3:
        return sizes**exponent
    root = sizes.__array_namespace__().sqrt(sizes)
    return root if whole == 0 else sizes ** int(whole) * root
