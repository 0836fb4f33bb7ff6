"""False objects to put in the place of what a statement names, by the kind of what that is."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from attractor.geometry import Frobenius, Geometry, Lp
from attractor.margin.selection import Selection
from attractor.papers.ledger.claim import Exponent
from attractor.papers.measurements.near_misses import turned
from attractor.support.checks import check_number


@functools.singledispatch
def false_objects(named: Any, angle: float = 0.5) -> dict[str, Any]:
    """Wrong objects beside a right one, by what is wrong with them; none of a kind not known.

    Directions are turned by an angle. Another kind of object is taught by
    ``false_objects.register``.

    Args:
        named: The right object.
        angle: That by which directions are turned.
    """
    angle = check_number("angle", angle)
    if dataclasses.is_dataclass(named) and not isinstance(named, type):
        return _one_member_wrong(
            {field.name: getattr(named, field.name) for field in dataclasses.fields(named)},
            angle,
            lambda members: dataclasses.replace(named, **members),
        )
    if callable(named):
        return {"wrong values": lambda *args, **settings: _wrong(named(*args, **settings), angle)}
    return {}


@false_objects.register
def _(named: Exponent, angle: float = 0.5) -> dict[str, Any]:
    return {"a quarter more": Exponent(named + 0.25), "a quarter less": Exponent(named - 0.25)}


@false_objects.register(float)
@false_objects.register(np.floating)
def _(named: Any, angle: float = 0.5) -> dict[str, Any]:
    return {"twice": 2 * named} if named else {"one for zero": 1.0}


@false_objects.register
def _(named: int, angle: float = 0.5) -> dict[str, Any]:
    return {"one less": named - 1}


@false_objects.register
def _(named: np.ndarray, angle: float = 0.5) -> dict[str, Any]:
    if named.ndim > 2:
        return {"twice": 2 * named}
    return {"turned": turned(named, angle, 1)} if named.any() else {"ones": np.ones_like(named)}


@false_objects.register
def _(named: Geometry, angle: float = 0.5) -> dict[str, Any]:
    if isinstance(named, Frobenius):
        return {"another norm": Lp(3)}
    return {"another norm": Frobenius()}


@false_objects.register
def _(named: Selection, angle: float = 0.5) -> dict[str, Any]:
    """One row keeps another token."""
    several = named.mask.shape[-1] > 1
    row = tuple(np.argwhere(named.mask.any(-1))[0])
    mask = named.mask.copy()
    mask[row] = np.roll(mask[row], 1)
    return {"swapped": Selection(mask, named.tied)} if several else {}


@false_objects.register(tuple)
@false_objects.register(list)
def _(named: Any, angle: float = 0.5) -> dict[str, Any]:
    kind = getattr(type(named), "_make", type(named))
    if len({type(each) for each in named}) == 1 and kind is list:  # alternatives: all are wrong
        false = [false_objects(each, angle) for each in named]
        return {words: [each[words] for each in false] for words in false[0]}
    return _one_member_wrong(
        dict(enumerate(named)),
        angle,
        lambda members: kind(members[place] for place in sorted(members)),
    )


@false_objects.register
def _(named: dict, angle: float = 0.5) -> dict[str, Any]:
    return _one_member_wrong(named, angle, dict)


def _one_member_wrong(
    members: dict[Any, Any], angle: float, joined: Callable[[Any], Any]
) -> dict[str, Any]:
    return {
        f"{name} {words}": joined(members | {name: false})
        for name, member in members.items()
        for words, false in false_objects(member, angle).items()
    }


def _wrong(value: Any, angle: float) -> Any:
    return next(iter(false_objects(value, angle).values()))
