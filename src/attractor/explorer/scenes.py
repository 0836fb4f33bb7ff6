"""Scenes: small data sets, each of which makes a point of a paper."""

from __future__ import annotations

import copy
import json
from functools import cache
from importlib import resources

from attractor.explorer.state import State, check_state
from attractor.support.checks import check_choice


@cache
def _stored() -> dict[str, State]:
    """The scenes of the page, as its build writes them."""
    file = resources.files("attractor.explorer").joinpath("static", "scenes.json")
    scenes = json.loads(file.read_text("utf-8"))
    return {scene["name"]: check_state(scene["state"]) for scene in scenes}


def scene_names() -> list[str]:
    """The names of all scenes, in the order in which a page offers them."""
    return list(_stored())


def scene_named(name: str) -> State:
    """The state of a scene.

    Args:
        name: Its name, such as "two-basins".

    Raises:
        InvalidInputError: If no scene has that name.

    Example:
        >>> import attractor as at
        >>> explorer = at.explorer.Explorer(at.explorer.scene_named("two-basins"))
        >>> explorer.tokens
        Tokens(2 sequences x 4 tokens, 1 queries each, keys in R^2, queries in R^1, masked, labeled)
    """
    return copy.deepcopy(_stored()[check_choice("scene", name, _stored())])
