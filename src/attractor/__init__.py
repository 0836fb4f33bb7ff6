"""Attractor: where softmax attention goes when you train it.

It computes the direction a margin problem predicts, trains the layer, certifies both, and compares
the two::

    import attractor as at

    tokens = at.Tokens(keys=X, queries=Z, labels=y)
    head = at.LinearHead(v)
    selection = at.optimal_tokens(tokens, head)
    solution = at.solve(at.MarginProblem.from_selection(tokens, selection), at.Frobenius())
    run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=2000, seeds=100)
    print(at.verify(run, solution))
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor.support.lazy_names import module_of
from attractor.support.settings import public_in_own_settings
from attractor.version import __version__ as __version__

if TYPE_CHECKING:
    from attractor.public import *  # noqa: F403

_SUBMODULES = (
    "analysis",
    "attention",
    "corpora",
    "datasets",
    "explorer",
    "files",
    "geometry",
    "heads",
    "maps",
    "margin",
    "models",
    "papers",
    "plots",
    "prompts",
    "report",
    "results",
    "support",
    "tokens",
    "torch",
    "training",
)


def __getattr__(name: str) -> Any:
    """Imports a name on its first use, and no more than it needs.

    ``import attractor`` itself takes no time, so that the command line is in charge of Ctrl-C
    before anything long begins, and margin problems are solved without waiting for JAX.
    """
    if name in _SUBMODULES:
        return importlib.import_module(f"attractor.{name}")
    if name == "__all__":
        return sorted(_module_of())
    if name.startswith("__") or name not in _module_of():
        words = f"module 'attractor' has no attribute {name!r}{_elsewhere(name)}"
        raise AttributeError(words, name=name)
    value = public_in_own_settings(getattr(importlib.import_module(_module_of()[name]), name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names and packages."""
    return sorted({*_module_of(), *_SUBMODULES, "__version__"})


def _elsewhere(name: str) -> str:
    """In which packages a name is that is looked for here, in words; empty where in none."""
    if name.startswith("__"):  # what inspecting tools ask of every module: no file need be read
        return ""
    exported = re.compile(rf'\b{name} as {name}\b|^    "{name}",$', re.MULTILINE)
    packages = [Path(__file__).parent / one / "__init__.py" for one in _SUBMODULES]
    found = [
        f"attractor.{package.parent.name}.{name}"
        for package in packages
        if name.isidentifier() and package.is_file() and exported.search(package.read_text("utf-8"))
    ]
    return f"; it is {' or '.join(found)}" if found else ""


def _module_of() -> dict[str, str]:
    """The module that each public name comes from, as the imports of ``public.py`` say it."""
    return module_of("attractor", "public.py")
