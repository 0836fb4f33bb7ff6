"""``RunComparison``: two results of one kind side by side."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from attractor.analysis.bias.medians import MedianInterval
from attractor.records import Printed, finite_or_none, plain_table

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console
    from rich.table import Table

SHOWN = 40
"""Lines of a table in the terminal."""


@dataclass(frozen=True)
class ComparedNumber:
    """A number of two results.

    Attributes:
        name: What it is.
        first: Of the first result: the median over data sets with its interval, or over seeds where
            there is one data set; NaN at both ends of a number that has none.
        second: Of the second.
        difference: The second less the first. Paired, it is the median of the differences of
            trials; else that of the medians.
        pairs: Data sets or seeds that both have; 0 where nothing is paired.
        equal: Whether they agree exactly, pair by pair.
    """

    name: str
    first: MedianInterval
    second: MedianInterval
    difference: MedianInterval
    pairs: int = 0
    equal: bool = False

    @property
    def word(self) -> str:
        """Whether the second is ``"higher"``, ``"lower"``, ``"the same"`` or ``"open"``.

        Open is what an interval with zero inside leaves open. A number without interval is compared
        as it is, and what agrees pair by pair is the same, however few there are.
        """
        if self.equal:
            return "the same"
        low, middle, high = self.difference.low, self.difference.median, self.difference.high
        if math.isnan(low) and math.isnan(high):
            low = high = middle
        if low > 0:
            return "higher"
        if high < 0:
            return "lower"
        return "the same" if low == high == 0 else "open"

    def summary(self) -> dict[str, Any]:
        """Everything as plain values of JSON."""
        parts = {"first": self.first, "second": self.second, "difference": self.difference}
        return {
            "name": self.name,
            **{
                name: {end: finite_or_none(value) for end, value in part._asdict().items()}
                for name, part in parts.items()
            },
            "pairs": self.pairs,
            "second_is": self.word,
        }


@dataclass(frozen=True, eq=False, repr=False)
class RunComparison(Printed):
    """Two results of one kind side by side.

    Attributes:
        names: What they are called.
        kind: Their kind.
        settings: What they were made with, by name, where it differs.
        numbers: The numbers of both; those that are told apart come first.
        texts: Words of both, by name, where they differ.
        pairing: Whether trials are paired, and why.
        studies: Measures over trials of both, by the name of what was trained.
        data: A hash of both results, by which they are recognized; empty where it is not known.
        bibtex: BibTeX entries that the results cite.
        norm: The norm that runs were verified in, where it was chosen.
    """

    width: ClassVar[int] = 100
    names: tuple[str, str]
    kind: str
    settings: Mapping[str, tuple[str, str]]
    numbers: tuple[ComparedNumber, ...]
    texts: Mapping[str, tuple[str, str]]
    pairing: str
    studies: Mapping[str, tuple[xr.Dataset, xr.Dataset]] = field(default_factory=dict)
    data: str = ""
    bibtex: tuple[str, ...] = ()
    norm: str | None = None

    def findings(self) -> list[str]:
        """Which numbers differ, in a sentence each, the clearest first."""
        apart = [one for one in self.numbers if one.word in ("higher", "lower")]
        found = [
            f"{one.name}: {one.word} in {self.names[1]}, {in_words(one.difference)}."
            for one in apart
        ]
        words = [one.word for one in self.numbers]
        if opened := words.count("open"):
            found.append(f"{opened} of {len(words)} numbers are not told apart.")
        if found and (same := words.count("the same")):
            found.append(f"{same} of {len(words)} numbers are exactly the same.")
        found += [
            f"{name}: {first} in {self.names[0]}, {second} in {self.names[1]}."
            for name, (first, second) in self.texts.items()
        ]
        return found or ["Nothing differs."]

    def table(self) -> Table:
        """The numbers as a rich table."""
        return self._table()

    def _table(self, *, stacked: bool = False) -> Table:
        """The numbers, with intervals below their medians where lines are short."""
        table = plain_table(caption=self.pairing, caption_justify="left", collapse_padding=False)
        table.add_column("number", overflow="fold")
        for column in (*self.names, "difference"):
            table.add_column(column, justify="right", no_wrap=True, overflow="fold")
        for one in self.numbers[:SHOWN]:
            cells = [in_words(part) for part in (one.first, one.second, one.difference)]
            if stacked:
                cells = [cell.replace(" ", "\n", 1) for cell in cells]
            table.add_row(one.name, *cells)
        if len(self.numbers) > SHOWN:
            table.add_row(f"{len(self.numbers) - SHOWN} more")
        return table

    def settings_table(self) -> Table:
        """What they were made with, where it differs."""
        table = plain_table(collapse_padding=False)
        for column in ("setting", *self.names):
            table.add_column(column)
        for name, values in self.settings.items():
            table.add_row(name, *values)
        return table

    def summary(self) -> dict[str, Any]:
        """Everything as plain values of JSON."""
        return {
            "kind": self.kind,
            "names": list(self.names),
            "settings": {name: list(values) for name, values in self.settings.items()},
            "numbers": [one.summary() for one in self.numbers],
            "texts": {name: list(values) for name, values in self.texts.items()},
            "pairing": self.pairing,
        }

    def report(self, directory: str | os.PathLike[str]) -> None:
        """Writes ``report.html``, its pictures as PNG and SVG, and ``comparison.json``.

        Args:
            directory: Where to; a new or empty folder, or one that an earlier report fills.

        Raises:
            InvalidInputError: If the folder holds something else.
        """
        from attractor.report.comparison import write_comparison_report

        write_comparison_report(directory, self)

    def _print(self, console: Console) -> None:
        from rich.measure import Measurement

        if self.settings:
            console.print(self.settings_table())
        if self.numbers:
            unbounded = console.options.update(max_width=10**6)
            needed = Measurement.get(console, unbounded, self.table()).maximum
            console.print(self._table(stacked=needed > console.width))
        for sentence in self.findings()[:SHOWN]:
            console.print(sentence, markup=False, highlight=False)


def in_words(found: MedianInterval) -> str:
    """A number with its interval, or that there are too few values for one."""
    if math.isnan(found.median):
        return "-"
    median = f"{found.median:.4g}"
    if math.isnan(found.low) and math.isnan(found.high):
        return median
    if math.isinf(found.low) or math.isinf(found.high):
        return f"{median} (too few)"
    return f"{median} [{found.low:.4g}, {found.high:.4g}]"
