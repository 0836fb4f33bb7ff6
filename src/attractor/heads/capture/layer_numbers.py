"""The numbers that a model itself gives to its layers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import torch

_NUMBER = re.compile(r"(?:^|\.)(\d+)(?=\.|$)")
"""A place in a list of modules, in the name of one inside."""


def layer_numbers(model: torch.nn.Module, modules: Sequence[torch.nn.Module]) -> tuple[int, ...]:
    """The layer of each attention module: its place in the model's list of layers.

    In models of which some layers have no heads, these numbers have gaps. Where layers share a
    module, or are in no list, they are those of the calls.

    Args:
        model: The model.
        modules: Its modules that call attention, in the order of their calls.
    """
    names = {module: name for name, module in model.named_modules()}
    parts = [_NUMBER.split(names.get(one, "")) for one in modules]  # names and numbers in turn
    for place in range(1, min(map(len, parts)), 2):
        numbers = [int(one[place]) for one in parts]
        alike = len({tuple(one[:place]) for one in parts}) == 1
        if alike and all(one < other for one, other in itertools.pairwise(numbers)):
            return tuple(numbers)
    return tuple(range(len(modules)))
