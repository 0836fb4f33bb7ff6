"""Counts the programs that the tests of a room have JAX compile, and holds each room to a budget.

Compiling is most of what the tests take. A program is compiled anew for every size of its arrays,
so tests take their sizes from ``sizes.py`` and draw seeds instead.
"""

from __future__ import annotations

from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
BUDGET = {
    "analysis": 120,
    "attention": 510,
    "cli": 70,
    "corpora": 80,
    "datasets": 50,
    "docs": 130,
    "explorer": 40,
    "files": 70,
    "fuzzing": 40,
    "geometry": 310,
    "heads": 30,
    "maps": 210,
    "margin": 20,
    "models": 190,
    "packs": 60,
    "papers": 100,
    "plots": 20,
    "prompts": 510,
    "report": 30,
    "results": 70,
    "support": 30,
    "tokens": 20,
    "tools": 20,
    "top level": 40,
    "training": 2250,
}
"""Different programs that the tests of a folder may ask for in one run of ``make test``.

A program that several tests of a room ask for counts once. One that a test of another room had
compiled before in the same process is not asked for again, so counts depend a little on how tests
are shared out: budgets are what was counted and a seventh, or 15 programs, more.
"""


class CompiledPrograms:
    """A plugin: notes the key of every program that is asked for, by the room of its test."""

    def __init__(self, *, held: bool) -> None:
        """Starts with no room.

        Args:
            held: Whether rooms are held to their budgets, which are those of `make test`.
        """
        self.held = held
        self.keys: dict[str, set[str]] = defaultdict(set)
        self.room = ""
        if version("jax").startswith("0.10."):  # what tells programs apart is no public name
            self._note_keys()

    def _note_keys(self) -> None:
        from jax._src import compilation_cache

        get_key = compilation_cache.get_cache_key

        def noted(*given, **named):
            key = get_key(*given, **named)
            if self.room:  # some are compiled where modules of tests are imported
                self.keys[self.room].add(key)
            return key

        compilation_cache.get_cache_key = noted

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        """Says whose programs the next ones are."""
        inside = item.path.parent.is_relative_to(TESTS)
        folders = item.path.parent.parts[len(TESTS.parts) - (not inside) :]
        self.room = folders[0] if folders else "top level"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Takes over what a worker has counted."""
        for room, keys in getattr(node, "workeroutput", {}).get("programs", {}).items():
            self.keys[room] |= set(keys)

    def pytest_sessionfinish(self, session):
        """Hands the keys to the controller, or fails a run that compiled too much."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["programs"] = {room: sorted(keys) for room, keys in self.keys.items()}
        elif self.held and self.beyond():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def beyond(self) -> dict[str, int]:
        """Rooms that compiled more than they may, with their numbers of programs."""
        found = {room: len(keys) for room, keys in sorted(self.keys.items())}
        return {room: count for room, count in found.items() if count > BUDGET.get(room, 0)}

    def pytest_terminal_summary(self, terminalreporter):
        """Says how many programs each room compiled."""
        counts = ", ".join(
            f"{room} {len(keys)}" for room, keys in sorted(self.keys.items()) if keys
        )
        if counts:
            terminalreporter.write_line(f"programs compiled: {counts}")
        for room, count in self.beyond().items() if self.held else ():
            terminalreporter.write_line(
                f"tests/{room} compiled {count} programs, {BUDGET.get(room, 0)} at most: use sizes "
                f"from sizes.py, or raise the budget in {Path(__file__).relative_to(TESTS.parent)}",
                red=True,
            )
