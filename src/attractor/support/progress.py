"""The one progress bar, and lines in its place where a log is kept."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from attractor.support.checks import check_flag


class _RateColumn(ProgressColumn):
    """Units of work a second, over the whole run so far."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.3g}/s", style="progress.data.speed")


class ProgressBar:
    """A bar that is called with the amount of work just done, and shows notes beside it."""

    def __init__(self, description: str, bar: Progress | None, task: TaskID | None) -> None:
        """Without a bar nothing is shown."""
        self._description, self._bar, self._task = description, bar, task

    def __call__(self, amount: float) -> None:
        """Moves the bar on."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, amount)

    def skip(self, amount: float) -> None:
        """Counts work that an earlier run did, which says nothing about the rate of this one."""
        if self._bar is not None and self._task is not None:
            self._bar.reset(self._task, completed=int(amount))

    def note(self, text: str) -> None:
        """Shows words beside the description, in place of those before."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=f"{self._description}: {text}")


class _ProgressLines(ProgressBar):
    """Prints a line now and then, with the rate of this run and the remaining time."""

    def __init__(self, description: str, total: float, every: float) -> None:
        super().__init__(description, None, None)
        self._total, self._every, self._noted = total, every, ""
        self._done = self._before = 0.0
        self._began = self._printed = time.monotonic()

    def __call__(self, amount: float) -> None:
        """Counts work, and prints a line if the last one is a while ago."""
        self._done += amount
        if time.monotonic() - self._printed >= self._every:
            self.print()

    def skip(self, amount: float) -> None:
        """Counts work that an earlier run did."""
        self._done = self._before = amount

    def note(self, text: str) -> None:
        """Adds words to the lines to come, in place of those before."""
        self._noted = f"; {text}"

    @property
    def printed(self) -> bool:
        """Whether a line was printed."""
        return self._printed > self._began

    def print(self) -> None:
        """Prints a line."""
        self._printed = time.monotonic()
        rate = (self._done - self._before) / max(self._printed - self._began, 1e-9)
        line = f"{self._description}: {self._done:,.0f} of {self._total:,.0f}, {rate:,.3g}/s"
        if rate and self._done < self._total * (1 - 1e-9):
            line += f", {time_in_words((self._total - self._done) / rate)} left"
        print(f"{line}{self._noted}", file=sys.stderr, flush=True)


def time_in_words(seconds: float) -> str:
    """A time in seconds, minutes, hours or days, whichever is short to read."""
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (2 * 86400, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 86400:,.3g} days"


@contextlib.contextmanager
def progress_bar(
    description: str, total: float, *, enabled: bool = True, lines_every: float = 10.0
) -> Iterator[ProgressBar]:
    """Shows a bar on standard error, with a rate and the remaining time.

    Args:
        description: What is being done.
        total: The amount of work.
        enabled: Whether to show anything.
        lines_every: Seconds after which a line is printed where standard error is no terminal, but
            a file say; work that takes less prints none there.

    Yields:
        The bar, called with the amount of work just done.

    Raises:
        InvalidInputError: Naming ``progress``, if ``enabled`` is neither True nor False.
    """
    check_flag("progress", enabled)
    if not enabled:
        yield ProgressBar(description, None, None)
        return
    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        lines = _ProgressLines(description, total, lines_every)
        yield lines
        if lines.printed:
            lines.print()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield ProgressBar(description, bar, bar.add_task(description, total=total))
