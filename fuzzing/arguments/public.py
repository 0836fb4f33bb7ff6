"""Every public callable, and those that are none of the user's to call."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import attractor
from fuzzing.arguments.exempt import (
    CONTRACT_METHODS,
    CONTRACTS,
    INSIDE,
    MADE_BY_THE_LIBRARY,
    NEEDS_A_MODEL,
    NEEDS_A_NOTEBOOK,
    SETS_THE_PROCESS,
    TAKES_ANY_NUMBER,
    TRAINS_FOR_LONG,
)

LEFT_OUT = (
    "attractor.cli", "attractor.torch", "attractor.heads.capture", "attractor.papers.",
    "attractor.support.storage",
    "attractor.support.containers", "attractor.results",
)  # fmt: skip
"""The command line is fuzzed as a program, and containers with damaged files; PyTorch is not always
there; papers read data that the library labeled; storage has tables of its own, and records
are made and read by the runs that they belong to."""

WITHIN = ("attractor.papers.files", "attractor.papers.plots", "attractor.results.provenance")
"""Packages in some that are left out, which take what users have."""


@functools.cache
def public_callables() -> dict[str, Callable[..., Any]]:
    """Every function, class and public method in an ``__all__``, by name; each once."""
    found: dict[str, Callable[..., Any]] = {}
    for module in _packages():
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value):
                _add_class(found, value)
            elif callable(value) and _takes_arguments(value):
                found[name_of(value)] = value
    return found


def name_of(function: Callable[..., Any]) -> str:
    """The package that a callable is defined in, and its name."""
    return f"{function.__module__.rpartition('.')[0]}.{function.__qualname__}"


def _packages() -> list[Any]:
    names = ["attractor"]
    for module in pkgutil.walk_packages(attractor.__path__, "attractor."):
        left_out = module.name.startswith(LEFT_OUT) and module.name not in WITHIN
        if module.ispkg and not left_out:
            names.append(module.name)
    return [importlib.import_module(name) for name in names]


def _add_class(found: dict[str, Callable[..., Any]], kind: type) -> None:
    plain = issubclass(kind, BaseException | enum.Enum) or name_of(kind) in CONTRACTS
    if plain or not kind.__module__.startswith("attractor"):
        return
    record = issubclass(kind, tuple) or name_of(kind) in MADE_BY_THE_LIBRARY
    if not record and _takes_arguments(kind):
        found[name_of(kind)] = kind
    of_contract = any(name_of(base) in CONTRACTS for base in kind.__mro__)
    for name in dir(kind):
        if name.startswith("_"):
            continue
        static = inspect.getattr_static(kind, name)
        method = getattr(kind, name)
        if not isinstance(static, classmethod | staticmethod) and not inspect.isfunction(static):
            continue
        abstract = getattr(method, "__isabstractmethod__", False)
        inside = of_contract and name in CONTRACT_METHODS
        if inside or abstract or not str(method.__module__).startswith("attractor"):
            continue
        if _takes_arguments(method):
            found[name_of(method)] = method


def _takes_arguments(function: Callable[..., Any]) -> bool:
    without = INSIDE | SETS_THE_PROCESS | NEEDS_A_MODEL | NEEDS_A_NOTEBOOK | TRAINS_FOR_LONG
    without |= TAKES_ANY_NUMBER
    if name_of(function) in without:
        return False
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:  # built in
        return False
    return bool([name for name in names if name != "self"])
