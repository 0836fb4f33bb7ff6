"""The laws that a curve can be fitted with: each makes it a straight line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attractor.support.checks import check_flags, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_real


@dataclass(frozen=True)
class Law:
    """A family of curves, and the axes on which each of them is a straight line.

    Attributes:
        name: What it is called.
        formula: The curve with its slope as ``a``, where ``{x}`` is the abscissa.
        logarithms: How many logarithms of the abscissa the line is straight against.
        log_values: Whether it is straight in the logarithm of the values, not in the values.
    """

    name: str
    formula: str
    logarithms: int
    log_values: bool

    def abscissa(self, x: np.ndarray, *, is_log: bool) -> np.ndarray:
        """The abscissa of the line; NaN where its logarithm does not exist."""
        check_flags(is_log=is_log)
        x = as_real("x", x, ("...", "points"))
        for _ in range(self.logarithms - is_log):
            with np.errstate(divide="ignore", invalid="ignore"):
                x = np.where(x > 0, np.log(x), np.nan)
        return np.where(np.isfinite(x), x, np.nan)

    def ordinate(self, y: np.ndarray, *, are_logs: bool) -> np.ndarray:
        """The ordinate of the line; infinite or NaN where it cannot be fitted."""
        check_flags(are_logs=are_logs)
        y = as_real("y", y, ("...", "points"))
        if are_logs or not self.log_values:
            return y
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(y)


LAWS = {
    law.name: law
    for law in (
        Law("power", "{x}^a", 1, True),
        Law("power of the logarithm", "(log {x})^a", 2, True),
        Law("logarithm", "a log {x}", 1, False),
        Law("exponential", "exp(a {x})", 0, True),
    )
}
"""The laws that can be fitted, by name."""


def law_named(name: str, *, abscissa_is_log: bool, values_are_logs: bool) -> Law:
    """The law of that name, if it can be fitted to what is given as logarithms.

    Raises:
        InvalidInputError: If there is none, or it needs what only the logarithm is given of.
    """
    if not isinstance(name, str) or name not in LAWS:
        known = ", ".join(map(repr, LAWS))
        raise InvalidInputError("law", f"{shown(name)} is not known", f"Give one of {known}")
    law = LAWS[name]
    if abscissa_is_log and not law.logarithms:
        raise InvalidInputError(
            "law",
            "the exponential law needs the abscissa itself, and its logarithm was given",
            "Give the abscissa, or the law 'power'",
        )
    if values_are_logs and not law.log_values:
        raise InvalidInputError(
            "law",
            f"the law {name!r} needs the values themselves, and their logarithms were given",
            "Give the values, or the law 'power'",
        )
    return law
