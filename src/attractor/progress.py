"""The one progress bar."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _RateColumn(ProgressColumn):
    """Units of work a second, over the whole run so far."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.3g}/s", style="progress.data.speed")


@contextlib.contextmanager
def progress_bar(
    description: str, total: float, *, enabled: bool = True
) -> Iterator[Callable[[float], None]]:
    """Shows a bar on standard error, with a rate and the remaining time.

    Args:
        description: What is being done.
        total: The amount of work.
        enabled: Whether to show anything.

    Yields:
        A function that takes the amount of work just done.
    """
    if not enabled:
        yield lambda amount: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda amount: bar.advance(task, amount)
