"""A row of the table: a public callable, a valid call of it, and what its parameters take."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

KINDS = (
    (r"\bNone\b", {"none"}),
    (r"\bbool\b", {"flag"}),
    (r"\bfloat\b", {"real", "count"}),
    (r"(?<!\[)\bint\b(?!\[)", {"count"}),
    (r"\bstr\b", {"text"}),
    (r"\bPathLike\b|\bPath\b", {"path"}),
    (r"\b(Float|Real|Int|Int32|UInt8|Shaped|Float32)\[|\bArrayLike\b|^np.ndarray$", {"array"}),
    (r"\bBool\[", {"mask"}),
    (r"\b(Sequence|tuple|list)\[", {"sequence"}),
    (r"\bIterable\[", {"sequence", "iterable"}),
    (r"\b(Mapping|dict)\b", {"mapping"}),
    (r"\bGeometry\b", {"geometry"}),
)
"""What an annotation says that a parameter takes. ``Any`` says nothing: a row has to."""


class Lazy:
    """A value made when a call first needs it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        """Keeps the recipe."""
        self._make = make

    @functools.cached_property
    def value(self) -> Any:
        """The value."""
        return self._make()


class Fresh(Lazy):
    """A value made anew for every call."""

    @property
    def value(self) -> Any:
        """The value."""
        return self._make()


class Call:
    """A public callable with arguments that it answers.

    Args:
        function: The function, class or method.
        takes: Kinds of values, by parameter, where the annotation does not say them.
        blames: Other arguments that may be named in place of a parameter, by parameter.
        nan: Whether a right answer may hold NaN.
        skip: Parameters that are not varied, with the reason.
        valid: The arguments by name; ``self`` for a method.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        /,
        *,
        takes: Mapping[str, str] | None = None,
        blames: Mapping[str, str] | None = None,
        nan: bool = False,
        skip: Mapping[str, str] | None = None,
        **valid: Any,
    ) -> None:
        """Looks the parameters up."""
        self.function = function
        self.valid = valid
        self.nan = nan
        self.blames = {name: set(names.split()) for name, names in (blames or {}).items()}
        self._takes = {name: set(kinds.split()) for name, kinds in (takes or {}).items()}
        self._skip = {"self": "the object", **(skip or {})}

    @property
    def name(self) -> str:
        """Where the callable is defined, without the module's file."""
        module = self.function.__module__
        return f"{module.rpartition('.')[0]}.{self.function.__qualname__}"

    @property
    def package(self) -> str:
        """The room that the callable lies in."""
        return self.function.__module__.split(".")[1]

    @functools.cached_property
    def parameters(self) -> dict[str, set[str]]:
        """The kinds of values that each parameter takes."""
        found = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if variadic or name in self._skip:
                continue
            found[name] = self._takes.get(name, kinds_of(parameter.annotation))
        return found

    @property
    def required(self) -> list[str]:
        """The parameters that have no default."""
        return [
            name
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]

    def arguments(self) -> dict[str, Any]:
        """The valid arguments."""
        return {
            name: value.value if isinstance(value, Lazy) else value
            for name, value in self.valid.items()
        }

    def arrays(self) -> set[str]:
        """The parameters that take arrays."""
        return {name for name, kinds in self.parameters.items() if kinds & {"array", "mask"}}


def kinds_of(annotation: Any) -> set[str]:
    """The kinds of values that an annotation says a parameter takes."""
    text = annotation if isinstance(annotation, str) else str(annotation)
    calls = {"callable"} if "Callable[" in text else set()
    settings = {"settings"} if re.search(r"(dict|Mapping)\[str, Any\]", text) else set()
    text = re.sub(r"Callable\[\[.*", "", text)
    bare = re.sub(r"\[[^\[\]]*\]", "[", re.sub(r"\[[^\[\]]*\[[^\[\]]*\]", "[", text))
    kinds = calls | settings
    for pattern, added in KINDS:
        if re.search(pattern, bare):
            kinds |= added
    return kinds


def bound(call: Call, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments as they are passed: by name, but what can only be passed by place."""
    placed, named = [], dict(arguments)
    parameters = inspect.signature(call.function).parameters.values()
    several = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            placed.extend(named.pop(one.name, ()))
            several = False
        elif several or one.kind is one.POSITIONAL_ONLY:
            placed.append(named.pop(one.name))
    return placed, named


def rows(calls: Iterator[Call]) -> dict[str, Call]:
    """Calls by name."""
    return {call.name: call for call in calls}
