"""Heads by what a user or a file calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx

from attractor.attention.heads.concave import ConcaveHead
from attractor.attention.heads.head import Head
from attractor.attention.heads.linear import LinearHead
from attractor.attention.heads.module import ModuleHead
from attractor.attention.heads.relu import ReLUHead
from attractor.attention.heads.value_matrix import ValueMatrix
from attractor.attention.heads.vocabulary import VocabularyHead
from attractor.errors import InvalidInputError

_HEADS: dict[str, type[Head]] = {
    head.name: head for head in (LinearHead, ReLUHead, ConcaveHead, VocabularyHead)
}
_BEFORE = f"{ValueMatrix.kind}."


def as_head(head: Any, input_dimension: int) -> Head:
    """Returns a head as it is, and an Equinox module wrapped as one.

    Args:
        head: A ``Head``, or an Equinox module that maps one vector to a number or to logits.
        input_dimension: Dimension of the vectors it is to read.

    Raises:
        InvalidInputError: If it is neither, or the module does not accept such vectors.
    """
    if isinstance(head, Head):
        return head
    if isinstance(head, eqx.Module):
        return ModuleHead(head, input_dimension)
    hint = ", or wrap a function: equinox.nn.Lambda(function)" if callable(head) else ""
    raise InvalidInputError(
        "head",
        f"{type(head).__name__} is not a head",
        f"Give one, such as LinearHead(v) or an Equinox module{hint}",
    )


def is_known(name: str) -> bool:
    """Whether a head with this name can be built again from its arrays alone."""
    return name.removeprefix(_BEFORE) in _HEADS or (
        name.startswith(_BEFORE) and is_known(name.removeprefix(_BEFORE))
    )


def head_from_arrays(name: str, arrays: Mapping[str, Any]) -> Head:
    """Builds a head again from its name and its arrays.

    Raises:
        InvalidInputError: If no head has that name, or the arrays do not define one.
    """
    if not is_known(name):
        raise InvalidInputError(
            "head", f"there is none named {name!r}", f"Known heads: {', '.join(_HEADS)}"
        )
    try:
        if name.startswith(_BEFORE):
            own = {key: value for key, value in arrays.items() if not key.startswith("head.")}
            behind = {
                key.removeprefix("head."): value
                for key, value in arrays.items()
                if key.startswith("head.")
            }
            return ValueMatrix(**own, head=head_from_arrays(name.removeprefix(_BEFORE), behind))
        return _HEADS[name](**arrays)
    except TypeError as error:
        raise InvalidInputError(
            "head", f"the arrays {sorted(arrays)} do not define {name!r}", str(error)
        ) from error
