"""Former names, which still do, with a warning."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from attractor.errors import InvalidInputError, warn_caller

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def by_former_name(package: str, name: str, now: str) -> Any:
    """Returns what a package has under a new name, with a warning about the former one."""
    words = f"{package}.{name} is now called {now}"
    warnings.warn(words, DeprecationWarning, stacklevel=3)
    return getattr(sys.modules[package], now)


def renamed_argument(
    former: str, now: str, values: Mapping[str, str]
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Lets a function take a keyword argument by its former name, too, with a warning.

    Its signature has the new name alone. The call is refused where both names are given.

    Args:
        former: The former name.
        now: The new one.
        values: New values by former ones; any other value is left as it is.
    """

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        owner = function.__qualname__.removesuffix(".__new__")

        @functools.wraps(function)
        def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
            if former in named:
                if now in named:
                    raise InvalidInputError(
                        former,
                        f"it is the former name of {now}, which is given, too",
                        "Leave it out",
                    )
                given = named.pop(former)
                value = values.get(given, given) if isinstance(given, str) else given
                warn_caller(
                    f"{former}={given!r} of {owner} is now called {now}={value!r}",
                    DeprecationWarning,
                )
                named[now] = value
            return function(*arguments, **named)

        return call

    return decorate


def dropped_arguments(
    *names: str, why: str
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Lets a function take keyword arguments that no longer mean anything, with a warning.

    Args:
        names: Their names.
        why: Why nothing depends on them.
    """

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @functools.wraps(function)
        def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
            for name in set(names) & set(named):
                del named[name]
                words = f"{function.__qualname__} no longer needs {name}: {why}"
                warn_caller(words, DeprecationWarning)
            return function(*arguments, **named)

        return call

    return decorate
