"""The table: a valid call of every public callable, a file for each few packages."""

import importlib
import pkgutil

from fuzzing.arguments.table import Call

CALLS: dict[str, Call] = {
    call.name: call
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__))
    for call in importlib.import_module(f"{__name__}.{module}").calls()
}
"""Calls by the name of what they call."""
