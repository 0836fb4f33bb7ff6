"""Libraries that take long to load, asked about or left out; and modules of the user's own."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from typing import Any


def is_of_loaded(value: Any, library: str, name: str) -> bool:
    """Whether a value is of a class of a library: it cannot be, where the library is not loaded.

    Args:
        value: Anything.
        library: The module that has the class, such as ``"jax"``.
        name: The class, such as ``"Array"``.
    """
    # In the midst of being imported a module does not have all of its classes yet.
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(value, kind)


def leave_out(library: str) -> None:
    """Has a library count as not installed, unless it is loaded already.

    For libraries that others load on the chance that a value is of theirs.

    Args:
        library: The module.
    """
    sys.modules.setdefault(library, None)  # pyright: ignore[reportArgumentType]


def let_in(library: str) -> None:
    """Has a library that was left out count as installed again, if it is.

    Args:
        library: The module.
    """
    if sys.modules.get(library, sys) is None:
        del sys.modules[library]


def import_meanwhile(*modules: str) -> None:
    """Imports modules of other libraries in a thread, while compiled programs run or are compiled.

    Modules of one package that import one another must not be imported by two threads at once, so
    none of ours may be among them. One that fails does so again where it is used.
    """

    def load() -> None:
        for module in modules:
            with contextlib.suppress(Exception):
                importlib.import_module(module)

    threading.Thread(target=load, daemon=True).start()


@contextlib.contextmanager
def current_folder_last() -> Iterator[None]:
    """Lets modules of the current folder be imported inside the block.

    They are looked for after all others, so that a file there takes the place of no module of
    Python, and of none that is installed.
    """
    let_in("dask")  # which commands leave out, and a user's module may need
    known = "" in sys.path  # as in an interactive session
    if not known:
        sys.path.append("")
    try:
        yield
    finally:
        if not known:
            sys.path.remove("")
