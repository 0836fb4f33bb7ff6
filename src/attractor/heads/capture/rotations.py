"""Whether an attention module rotates keys and queries by positions, by the code that it runs."""

from __future__ import annotations

import functools
import inspect
import re
from types import CodeType
from typing import Any

import torch

from attractor.heads.capture.calls import Call

_ROTATING = re.compile(r"[Rr]otary|RoPE|Rope(?![a-z])|(^|_)(rope|rotate)(_|$)")
"""Names of modules, functions and arguments by which rotations are known."""
_GIVEN = "position_embeddings"
"""The argument in which most models hand rotations to their attention."""


def rotates(call: Call) -> bool:
    """Whether the module of a call rotates keys and queries in a way that the call does not say.

    It does if a module inside of it rotates, or its code names something that does. What the rest
    of its file holds says nothing: Jamba's has a function that nobody calls. A module that takes
    rotations as an argument, and was given none, does not.

    Args:
        call: A call that was given no cosines and sines.
    """
    kind = type(call.module)
    if any(_ROTATING.search(type(one).__name__) for one in list(call.module.modules())[1:]):
        return True
    takes = set(inspect.signature(kind.forward).parameters)
    if _GIVEN in takes and not call.positioned:
        return any(map(_ROTATING.search, takes))
    return any(map(_ROTATING.search, _names(kind)))


@functools.cache
def _names(kind: type[torch.nn.Module]) -> frozenset[str]:
    """All names in the forward pass of a class, and in the functions that it names."""
    found: set[str] = set()
    ahead: list[Any] = [kind.forward]
    while ahead:
        function = inspect.unwrap(ahead.pop())
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        ahead += [one for one in cells if _is_own(one) and one.__name__ not in found]
        for name in _of_code(function.__code__) - found:
            found.add(name)
            named = getattr(kind, name, None), function.__globals__.get(name)
            ahead += [one for one in named if _is_own(one)]
    return frozenset(found)


def _of_code(code: CodeType) -> set[str]:
    inside = (_of_code(one) for one in code.co_consts if isinstance(one, CodeType))
    return {*code.co_names}.union(*inside)


def _is_own(one: Any) -> bool:
    """Whether something is a function of a model's, and not of PyTorch."""
    return inspect.isfunction(one) and one.__module__.partition(".")[0] != "torch"
