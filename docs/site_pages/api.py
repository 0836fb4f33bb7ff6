"""The reference of every public name, a page for each package."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

import attractor
from attractor.support.lazy_names import module_of

WITHOUT_PAGES = ("attractor.cli", "attractor.support.containers")
"""Packages that no user imports: the commands have pages of their own."""
OF_TORCH = ("attractor.torch", "attractor.heads.capture")
"""Packages that import PyTorch, which need not be there."""
TITLES = {
    "attractor.analysis": "Verdicts, rates",
    "attractor.attention": "Attention, parameterizations, losses",
    "attractor.heads": "Heads of real models",
    "attractor.datasets": "Data sets",
    "attractor.support.errors": "Errors, warnings, statuses",
    "attractor.explorer": "The explorer",
    "attractor.files": "Files of data",
    "attractor.geometry": "Geometries",
    "attractor.support.machine": "The machine",
    "attractor.margin": "Margin problems",
    "attractor.models": "Models",
    "attractor.corpora": "Next-token prediction",
    "attractor.papers": "Papers",
    "attractor.plots": "Plots",
    "attractor.prompts": "Long prompts",
    "attractor.results": "Results",
    "attractor.results.provenance": "Provenance",
    "attractor.report": "Reports",
    "attractor.margin.selection": "Selections",
    "attractor.support.storage": "Storage",
    "attractor.maps": "Maps",
    "attractor.maps.sweeps": "Sweeps",
    "attractor.support.threads": "Threads",
    "attractor.tokens": "Tokens",
    "attractor.torch": "PyTorch",
    "attractor.training": "Training",
}
"""Titles of the pages; those of packages inside of others are their names."""
_ORDER = (
    "tokens", "geometry", "margin", "attention", "training", "analysis", "heads", "torch",
    "corpora", "prompts", "maps", "papers", "datasets", "models", "files", "explorer", "plots",
    "report", "results", "support",
)  # fmt: skip
_OPTIONS = {
    "class": "   :members:\n",
    "exception": "   :show-inheritance:\n",
    "data": "   :no-value:\n",
}
"""What autodoc is asked to show of each kind."""


def packages() -> list[str]:
    """Every package with public names, ``attractor`` first."""
    found = ["attractor"]
    for module in pkgutil.walk_packages(attractor.__path__, "attractor."):
        public = not any(part.startswith("_") for part in module.name.split("."))
        left_out = module.name.startswith((*WITHOUT_PAGES, *OF_TORCH))
        if left_out or not (module.ispkg and public):
            continue
        if getattr(importlib.import_module(module.name), "__all__", ()):
            found.append(module.name)
    return [*found, *OF_TORCH]


def names_of(package: str) -> list[str]:
    """The public names of a package; those of PyTorch's without importing it."""
    if package not in OF_TORCH:
        return list(importlib.import_module(package).__all__)
    place = package.split(".")[1:]
    source = Path(*attractor.__path__, *place, "__init__.py").read_text("utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError(f"{package} has no __all__")


@cache
def public_names() -> dict[str, tuple[str, str]]:
    """Every public name as users write it, with the package of its page and its kind.

    What several packages have is listed once, under the shortest name.
    """
    found: dict[str, tuple[str, str]] = {}
    seen: set[int] = set()
    home = module_of("attractor", "public.py")
    for package in sorted(packages(), key=lambda name: name.count(".")):
        for name in names_of(package):
            full = f"{package}.{name}"
            if package in OF_TORCH:
                found[full] = (package, "class" if name[0].isupper() else "function")
                continue
            value = getattr(importlib.import_module(package), name)
            if inspect.ismodule(value) or id(value) in seen:
                continue
            if inspect.isclass(value) or inspect.isroutine(value):
                seen.add(id(value))
            found[full] = (
                home.get(name, package) if package == "attractor" else package,
                _kind(value),
            )
    for name, value in vars(importlib.import_module("attractor.support.errors")).items():
        if (
            inspect.isclass(value)
            and value.__module__ == "attractor.support.errors"
            and id(value) not in seen
        ):
            found[f"attractor.support.errors.{name}"] = ("attractor.support.errors", _kind(value))
    return found


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) else "data"


def api_pages() -> dict[str, str]:
    """The pages by path: a list of subjects, and one page for each package."""
    by_page: dict[str, dict[str, str]] = {}
    for name, (page, kind) in public_names().items():
        by_page.setdefault(page, {})[name] = kind
    order = sorted(by_page, key=lambda page: (_ORDER.index(page.split(".")[1]), page))
    listed = "\n".join(order)
    index = (
        "# API reference\n\nEvery public name, by subject. `import attractor as at` has the names "
        "that are written `attractor.name` here.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    )
    return {
        "api/index.md": index,
        **{f"api/{page}.rst": _page(page, by_page[page]) for page in order},
    }


def _page(page: str, names: dict[str, str]) -> str:
    title = TITLES.get(page, page.removeprefix("attractor."))
    text = f"{title}\n{'=' * len(title)}\n\n"
    summary = inspect.getdoc(importlib.import_module(page)) if page not in OF_TORCH else ""
    if summary:
        text += summary.split("\n\n")[0] + "\n\n"
    if page in OF_TORCH:
        text += "Needs ``pip install 'attractor[torch]'``.\n\n"
    links = [f":py:obj:`{name.rpartition('.')[2]} <{name}>`" for name in names]
    text += " · ".join(links) + "\n\n"
    for name, kind in names.items():
        text += f".. auto{kind}:: {name}\n{_OPTIONS.get(kind, '')}\n"
    return text
