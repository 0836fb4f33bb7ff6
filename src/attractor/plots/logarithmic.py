"""Logarithmic axes with numbers that are read as numbers."""

from __future__ import annotations

from matplotlib.axis import Axis
from matplotlib.ticker import LogFormatterMathtext

_PLAIN = (1e-3, 1e4)
"""Numbers from the first to the second are written out; others are powers of ten."""


def plain_numbers(axis: Axis) -> None:
    """Labels ticks of a logarithmic axis by 0.02 and 3, not by 2 x 10^-2 and 3 x 10^0.

    Args:
        axis: The axis.
    """
    axis.set_major_formatter(_Formatter())
    axis.set_minor_formatter(_Formatter(minor_thresholds=(1, 0.4)))


class _Formatter(LogFormatterMathtext):
    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label of a tick; empty where there is to be none."""
        label = super().__call__(x, pos)
        return f"{x:g}" if label and _PLAIN[0] <= x < _PLAIN[1] else label
