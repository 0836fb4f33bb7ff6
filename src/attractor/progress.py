"""The one progress bar."""

from __future__ import annotations

import contextlib
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

from attractor.checks import check_flag


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


@contextlib.contextmanager
def progress_bar(description: str, total: float, *, enabled: bool = True) -> Iterator[ProgressBar]:
    """Shows a bar on standard error, with a rate and the remaining time.

    Args:
        description: What is being done.
        total: The amount of work.
        enabled: Whether to show anything.

    Yields:
        The bar, called with the amount of work just done.

    Raises:
        InvalidInputError: Naming ``progress``, if ``enabled`` is neither True nor False.
    """
    check_flag("progress", enabled)
    if not enabled:
        yield ProgressBar(description, None, None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield ProgressBar(description, bar, bar.add_task(description, total=total))
