"""Packages whose names are imported when they are first used."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def import_names_on_first_use(
    package: str,
    prepare: Callable[[Any], Any] = lambda value: value,
    loaded: Callable[[type], object] = lambda kind: None,
) -> None:
    """Makes a package import the names in its ``__init__.py`` when they are first used.

    There they are imported under ``TYPE_CHECKING``, each as itself, which tells type checkers that
    it is public. These imports are read and not run: they are the one list of names, and the
    package's ``__all__``. So one module of a package can be imported without all the others.
    Modules are names of the package, too, as if all were imported already.

    Args:
        package: ``__name__`` of the package.
        prepare: Applied to the object of a name before it is returned.
        loaded: Called with every class that the package has a name for, once it is loaded.
    """
    sys.modules[package].__class__ = _Package
    sys.modules[package].__dict__.update(_prepare=prepare, _loaded=loaded)


class _Package(ModuleType):
    __all__: list[str]
    _prepare: Callable[[Any], Any]
    _loaded: Callable[[type], object]

    def __getattr__(self, name: str) -> Any:
        module = module_of(self.__name__).get(name)
        submodule = f"{self.__name__}.{name}"
        if name == "__all__":
            value = sorted(module_of(self.__name__))
        elif module and module != self.__name__:
            found = getattr(importlib.import_module(module), name)
            for other, place in module_of(self.__name__).items():  # classes it came with
                public = vars(sys.modules.get(place, object)).get(other)
                if isinstance(public, type):
                    self._loaded(public)
            value = self._prepare(found)
        elif not name.startswith("_") and importlib.util.find_spec(submodule):
            value = importlib.import_module(submodule)
        else:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        super().__setattr__(name, value)
        return value

    def __dir__(self) -> list[str]:
        """What is public: its names and packages, not the modules they are written in."""
        within = {module.name for module in pkgutil.iter_modules(self.__path__) if module.ispkg}
        of_python = {name for name in super().__dir__() if name.startswith("__")}
        return sorted({*self.__all__, *of_python, *(n for n in within if not n.startswith("_"))})


@functools.cache
def module_of(package: str, file: str = "__init__.py") -> dict[str, str]:
    """The module of each public name of a package: what one of its files imports as itself.

    The file is read and not run.
    """
    source = pkgutil.get_data(package, file)
    assert source is not None
    return {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if node.module and alias.asname == alias.name
    }
