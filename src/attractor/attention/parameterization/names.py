"""Parameterizations by name."""

from __future__ import annotations

from attractor.attention.parameterization.attention_matrix import AttentionMatrix
from attractor.attention.parameterization.contract import Parameterization
from attractor.attention.parameterization.joint import Joint
from attractor.attention.parameterization.key_query import KeyQuery
from attractor.attention.parameterization.prompt_vector import PromptVector
from attractor.checks import suggest
from attractor.errors import InvalidInputError

_NAMED: tuple[Parameterization, ...] = (AttentionMatrix(), KeyQuery(), PromptVector())
_KNOWN = {one.name: one for each in _NAMED for one in (each, Joint(each))}


def get_parameterization(parameterization: str | Parameterization) -> Parameterization:
    """Returns the parameterization with a name; an instance is returned as it is.

    The names are those of the papers: "W", "(K, Q)", "p", and "(v, W)", "(v, p)", "(v, K, Q)"
    with the head; parentheses, commas and spaces make no difference.

    Raises:
        InvalidInputError: If there is no such parameterization.
    """
    if isinstance(parameterization, Parameterization):
        return parameterization
    for name, known in _KNOWN.items():
        if isinstance(parameterization, str) and _plain(parameterization) == _plain(name):
            return known
    raise InvalidInputError(
        "parameterization",
        f"there is none named {parameterization!r}",
        f"{suggest(parameterization, _KNOWN)}Known: {', '.join(repr(name) for name in _KNOWN)}",
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name if letter not in "(), ")
