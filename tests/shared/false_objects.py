"""False objects to put in the place of what a statement names, by the kind of what that is."""

import dataclasses
import functools

import numpy as np

from attractor.geometry import Frobenius, Geometry, Lp
from attractor.margin.selection import Selection
from attractor.papers import Exponent
from attractor.papers.measurements.near_misses import turned


@functools.singledispatch
def false_objects(named, angle=0.5):
    """Wrong objects beside a right one, by what is wrong with them; none of a kind not known.

    Directions are turned by an angle.
    """
    if dataclasses.is_dataclass(named):
        return _one_member_wrong(
            {field.name: getattr(named, field.name) for field in dataclasses.fields(named)},
            angle,
            lambda members: dataclasses.replace(named, **members),
        )
    if callable(named):
        return {"wrong values": lambda *args, **settings: _wrong(named(*args, **settings), angle)}
    return {}


@false_objects.register
def _(named: Exponent, angle=0.5):
    return {"a quarter more": Exponent(named + 0.25), "a quarter less": Exponent(named - 0.25)}


@false_objects.register(float)
@false_objects.register(np.floating)
def _(named, angle=0.5):
    return {"twice": 2 * named} if named else {"one for zero": 1.0}


@false_objects.register
def _(named: int, angle=0.5):
    return {"one less": named - 1}


@false_objects.register
def _(named: np.ndarray, angle=0.5):
    if named.ndim > 2:
        return {"twice": 2 * named}
    return {"turned": turned(named, angle, 1)} if named.any() else {"ones": np.ones_like(named)}


@false_objects.register
def _(named: Geometry, angle=0.5):
    if isinstance(named, Frobenius):
        return {"another norm": Lp(3)}
    return {"another norm": Frobenius()}


@false_objects.register
def _(named: Selection, angle=0.5):
    """One row keeps another token."""
    several = named.mask.shape[-1] > 1
    row = tuple(np.argwhere(named.mask.any(-1))[0])
    mask = named.mask.copy()
    mask[row] = np.roll(mask[row], 1)
    return {"swapped": Selection(mask, named.tied)} if several else {}


@false_objects.register(tuple)
@false_objects.register(list)
def _(named, angle=0.5):
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
def _(named: dict, angle=0.5):
    return _one_member_wrong(named, angle, dict)


def _one_member_wrong(members, angle, joined):
    return {
        f"{name} {words}": joined(members | {name: false})
        for name, member in members.items()
        for words, false in false_objects(member, angle).items()
    }


def _wrong(value, angle):
    return next(iter(false_objects(value, angle).values()))
