"""Norms beside a norm: the same family, another exponent."""

from __future__ import annotations

from attractor.geometry import Frobenius, Geometry, Lp, Schatten

NEIGHBORS = 4
"""The most neighbors that a norm has: the Frobenius norm is of both families."""
_APART = 0.02
"""How far 1 / p of a neighbor is from that of a norm."""


def neighbors(geometry: Geometry) -> list[Geometry]:
    """The norms with an exponent somewhat smaller and somewhat larger; none outside families.

    Ratios in them tell the norm of an optimizer from those of other optimizers, whose norms need
    not be among the ones compared: in its own norm the ratio is highest.
    """
    if isinstance(geometry, Frobenius):
        return [*neighbors(Lp(2)), *neighbors(Schatten(2))]
    if not isinstance(geometry, (Lp, Schatten)):
        return []
    family = Lp if isinstance(geometry, Lp) else Schatten
    inverses = (1 / geometry.p + _APART, 1 / geometry.p - _APART)
    # Three digits, so that names are short.
    return [family(float(f"{1 / inverse:.3g}")) for inverse in inverses if 0 < inverse < 1]
