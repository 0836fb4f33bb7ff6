"""Checks of the arguments of paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.attention import Parameterization
from attractor.geometry import Geometry
from attractor.margin.selection import Selection
from attractor.support.checks import check_share, shown
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for_list
from attractor.support.precision import LARGEST, as_float64
from attractor.tokens import Tokens
from attractor.training.paths.balls import ball_of


def check_radii(radii: Any) -> Float[np.ndarray, "radius"]:
    """Increasing positive radii; by default four a decade from 1 to 10^4."""
    if radii is None:
        return np.geomspace(1, 1e4, 17)
    require_memory_for_list("radii", radii, each=40)
    array = np.atleast_1d(as_float64("radii", radii, largest=LARGEST))
    if array.ndim != 1 or not array.size or array[0] < 1 / LARGEST or (np.diff(array) <= 0).any():
        raise InvalidInputError(
            "radii",
            f"{shown(radii)} are not radii",
            f"Give increasing numbers of at least {1 / LARGEST:g}",
        )
    return array


def check_head_radius(
    head_radius: Callable[[Any], Any] | Any, radii: Float[np.ndarray, "radius"], trained: bool
) -> Float[np.ndarray, "radius"] | None:
    """The radius of the head at every radius of W; None where it is fixed."""
    if not trained:
        if head_radius is not None:
            raise InvalidInputError(
                "head_radius", "the head is fixed", 'Use parameterization="(v, W)" to train it'
            )
        return None
    if head_radius is None:
        return radii
    with np.errstate(over="ignore"):
        values = head_radius(radii) if callable(head_radius) else head_radius
    array = as_float64("head_radius", values)
    if array.shape not in ((), radii.shape) or (array <= 0).any():
        raise InvalidInputError(
            "head_radius",
            f"it has the shape {array.shape}, or a value that is not positive",
            f"Give a function of R, one number, or {len(radii)} positive numbers",
        )
    return np.broadcast_to(array, radii.shape)


def check_geometry(geometry: Geometry, layer: Parameterization) -> Geometry:
    """The norm of W that bounds the path."""
    effective = layer.effective_geometry(geometry)
    if effective is None:
        raise InvalidInputError(
            "geometry",
            f"which norm of W the {geometry.name} norm of K and Q amounts to is not known",
            'Use Frobenius() with "KQ", or parameterization="W"',
        )
    ball_of(effective, (2, 2))
    return effective


def check_selected(selected: Any, tokens: Tokens) -> Selection | None:
    """The tokens to be kept, with the axes of the tokens."""
    if selected is None:
        return None
    if not isinstance(selected, Selection) or selected.mask.shape != tokens.mask.shape:
        raise InvalidInputError(
            "selected",
            "it is not a Selection with the axes of the tokens",
            "Give Selection.from_index(tokens, index)",
        )
    kept = np.asarray((selected.mask & tokens.mask).any(-1))
    if (~kept & tokens.mask.any(-1)).any():
        raise InvalidInputError("selected", "a row has no token selected", "Select one in each row")
    return selected


def check_tolerance(tolerance: Any) -> float:
    """A number between zero and one."""
    return check_share("tolerance", tolerance, "1e-8")
