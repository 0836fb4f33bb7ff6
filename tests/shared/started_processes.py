"""Fails a test that starts a process and is not marked so: such tests are a tier of their own."""

from __future__ import annotations

import multiprocessing.process
import subprocess

import pytest


class StartedProcesses:
    """A plugin: notes whether a test starts a process."""

    def __init__(self) -> None:
        """Watches the two ways in which tests and the library start processes."""
        self.started: list[str] = []
        for owner, name in (
            (subprocess.Popen, "__init__"),
            (multiprocessing.process.BaseProcess, "start"),
        ):
            setattr(owner, name, self._noted(getattr(owner, name)))

    def _noted(self, start):
        def noted(process, *given, **named):
            command = given[0] if given else process
            # Libraries ask `uname` and `ldconfig` about the system.
            if not isinstance(command, list) or "python" in str(command[0]):
                self.started.append(str(command)[:100])
            return start(process, *given, **named)

        return noted

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Makes a failure of a process that the marks of a test do not tell of."""
        report = yield
        if call.when == "teardown":
            started, self.started = self.started, []
            marked = any(map(item.get_closest_marker, ("processes", "torch")))  # tiers, both
            if started and report.passed and not marked:
                report.outcome = "failed"
                report.longrepr = f"started {started[0]}: mark it with pytest.mark.processes"
        return report
