"""Two labeled results side by side, aligned by their labels: compared, and as a page."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from attractor.analysis import Verdict, verify
from attractor.files import data_hash
from attractor.maps.bias.answer import median_interval
from attractor.maps.sweeps import open_sweep
from attractor.report.folder import report_folder
from attractor.report.page import Folded, Section, Table
from attractor.results import AXES, Printed, plain_table
from attractor.results.provenance import Provenance, read_provenance
from attractor.support.checks import check_items, check_path
from attractor.support.containers import leaves, parsing, read_json, read_netcdf
from attractor.support.errors import AttractorError, InvalidInputError
from attractor.training import Trajectory

if TYPE_CHECKING:
    from rich.console import Console


CONFIDENCE = 0.95
SHOWN = 40
"""Rows of the table that are shown, and sentences below it."""
TRIALS = ("instance", "seed")
"""Dimensions that count trials."""
COLUMNS = ("first", "second", "difference", "low", "high", "pairs", "second_is")
WORDS = ("higher", "lower", "not told apart", "the same")
_ASIDE = {"gap", "kkt_residual", "status"}
"""Measures of how well something was computed, and codes."""
_DRAWN = ("seed", "n", "T", "d", "start")
"""Attributes that say which data were drawn, where there is no hash of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Paired(Printed):
    """Two labeled results side by side.

    Attributes:
        names: What they are called.
        table: A row for each number of both, those that differ first: ``first`` and ``second``,
            medians over trials where there are any; their ``difference``, the second less the
            first, which paired is the median over trials; ``low`` and ``high``, the ends of its
            95 % interval, infinite where trials are too few, NaN where there are none; ``pairs``,
            the trials of both, 0 unpaired; ``second_is``, which is not told apart where zero is in
            the interval, and the same where both agree exactly, pair by pair.
        words: Words and settings that differ, by name: of the first, of the second.
        only: Measures and labels that one alone has: of the first, of the second.
        unlabeled: Measures that are not compared, as their entries have no labels.
        pairing: Whether trials are paired, and by what.
    """

    names: tuple[str, str]
    table: pd.DataFrame
    words: Mapping[str, tuple[str, str]]
    only: tuple[list[str], list[str]]
    unlabeled: list[str]
    pairing: str

    def rows(self) -> list[tuple[str, ...]]:
        """The numbers that are not the same, in words, below their header."""
        rows = [("number", *self.names, "difference")]
        differing = self.table[self.table["second_is"] != "the same"]
        for name, first, second, between, low, high, *_ in differing.itertuples():
            interval = f" [{low:.3g}, {high:.3g}]" if np.isfinite(high - low) else " (too few)"
            interval = "" if np.isnan(low) else interval
            rows.append((name, f"{first:.4g}", f"{second:.4g}", f"{between:.4g}{interval}"))
        return rows

    def findings(self) -> list[str]:
        """How many numbers differ, which words do, and what one alone has."""
        counts = self.table["second_is"].value_counts()
        found = [f"{counts[w]} of {len(self.table)} numbers are {w}." for w in WORDS if w in counts]
        for name, only in zip(self.names, self.only, strict=True):
            found += [f"In {name} only: {'; '.join(only)}."] if only else []
        for name, (one, other) in self.words.items():
            found.append(f"{name}: {one} in {self.names[0]}, {other} in {self.names[1]}.")
        if self.unlabeled:
            found.append(f"Not compared, as they have no labels: {', '.join(self.unlabeled)}.")
        return found or ["Nothing differs."]

    def summary(self) -> dict[str, Any]:
        """Everything as plain values of JSON."""
        finite = self.table.replace([np.inf, -np.inf], np.nan).astype(object)
        numbers = finite.where(finite.notna(), None).reset_index(names="name").to_dict("records")
        rest = {name: value for name, value in vars(self).items() if name != "table"}
        return {"numbers": numbers, **rest}

    def _print(self, console: Console) -> None:
        table = plain_table(caption=self.pairing, caption_justify="left", collapse_padding=False)
        header, *rows = self.rows()
        for place, column in enumerate(header):
            table.add_column(column, justify="right" if place else "left", no_wrap=place > 0)
        for row in rows[:SHOWN]:
            table.add_row(*row)
        if rows:
            console.print(table)
        for sentence in self.findings()[:SHOWN]:
            console.print(sentence, markup=False, highlight=False)


def paired(first: Any, second: Any, *, names: Sequence[str] = ("first", "second")) -> Paired:
    """Aligns two results by their labels, and says which numbers and words differ.

    Each is an xarray Dataset, a pandas DataFrame whose index has the labels, a result of this
    library that holds one, or several such by name. Numbers are compared label by label, at the
    last record of a run, and over trials (``instance``, ``seed``) as medians. Trials on the same
    data are paired by data set, or by seed where there is one data set, so that what they share
    does not blur their difference: those with the same labels, unless the hashes of their data
    differ (``data``, an attribute, and of verdicts computed), or without such the attributes that
    data are drawn by, such as ``seed``.

    The interval of a median of n values goes from the k-th smallest to the k-th largest,
    ``1 - 2 P(Binomial(n, 1/2) < k) >= 0.95``. Unpaired, the difference of two medians lies between
    the differences of the ends of their intervals, each of 97.5 %.

    Args:
        first: A labeled result, or several by name.
        second: Another.
        names: What to call them.

    Raises:
        InvalidInputError: If one is not labeled, or they share no measure.

    Example:
        >>> import attractor as at, xarray as xr
        >>> one = xr.Dataset({"loss": ("model", [0.3, 0.2])}, {"model": ["a", "b"]})
        >>> at.paired(one, one + 0.5).table["difference"].to_dict()
        {'loss, a': 0.5, 'loss, b': 0.5}
    """
    called = tuple(check_items("names", names, str, 2))
    if len(called) != 2 or called[0] == called[1]:
        raise InvalidInputError("names", f"they are {list(called)}", "Give two different ones")
    a, b = _parts("first", first), _parts("second", second)
    made = [{k: v for one in side.values() for k, v in one.attrs.items()} for side in (a, b)]
    drawn = ("data",) if all("data" in one for one in made) else _DRAWN
    same_data = all(str(made[0].get(name)) == str(made[1].get(name)) for name in drawn)
    if len(a) == len(b) == 1:  # whatever each is called
        a, b = {"": next(iter(a.values()))}, {"": next(iter(b.values()))}
    found = _Alignment(same_data)
    for part in found.shared("results", a, b):
        found.compare(f"{part}: " if part else "", a[part], b[part])
    if not found.numbers and not found.words and not found.unlabeled:
        raise InvalidInputError("second", "it shares no measure with the first", "Give another")
    old, new = ({name: _said(value) for name, value in leaves(one)} for one in made)
    settings = {name: (old.get(name, "-"), new.get(name, "-")) for name in old | new}
    words = {k: both for k, both in (settings | found.words).items() if both[0] != both[1]}
    table = pd.DataFrame(found.numbers, found.names, COLUMNS)
    table = table.sort_values("second_is", key=lambda one: one.map(WORDS.index), kind="stable")
    return Paired(called, table, words, found.only, found.unlabeled, found.pairing())


def _parts(argument: str, given: Any) -> dict[str, xr.Dataset]:
    """The labeled arrays of a result, by name; how it was made and on what as attributes."""
    several = isinstance(given, Mapping) and not isinstance(given, xr.Dataset)
    if several and len(given):
        return {str(name): _parts(argument, one)[""] for name, one in given.items()}
    data = given if isinstance(given, xr.Dataset) else getattr(given, "data", None)
    if not isinstance(data, xr.Dataset) and (made_of := getattr(given, "to_xarray", None)):
        data = made_of()
    if not isinstance(data, xr.Dataset):
        remedy = "Give an xarray Dataset, a pandas DataFrame, or a result that holds one"
        raise InvalidInputError(argument, f"it is a {type(given).__name__}", remedy)
    made = {name: value for name, value in data.attrs.items() if name != "provenance"}
    if isinstance(given, Verdict):
        run = given.trajectory
        made |= {**run.settings, "geometry": given.solution.geometry.name}
        made["data"] = data_hash(run.tokens, run.head)
    return {"": data.drop_attrs(deep=False).assign_attrs(made)}


def _said(value: Any) -> str:
    return "-" if value is None else str(value)


class _Alignment:
    """What is found as one part of two results after another is aligned."""

    def __init__(self, same_data: bool) -> None:
        self.same_data = same_data
        self.names: list[str] = []
        self.numbers: list[tuple[Any, ...]] = []
        self.words: dict[str, tuple[str, str]] = {}
        self.only: tuple[list[str], list[str]] = ([], [])
        self.unlabeled: list[str] = []
        self.units: set[str] = set()

    def shared(self, what: str, first: Collection[Any], second: Collection[Any]) -> list[Any]:
        """The names that both have; of the others it is noted who has them."""
        for only, ours, theirs in zip(self.only, (first, second), (second, first), strict=True):
            left = [str(name) for name in ours if name not in theirs]
            more = f" and {len(left) - 6} more" * (len(left) > 6)
            only += [f"{what} {', '.join(left[:6])}{more}"] * bool(left)
        return [name for name in first if name in second]

    def compare(self, part: str, *both: xr.Dataset) -> None:
        """Aligns two sets of labeled arrays."""
        first, second = (
            one.isel({axis: -1 for axis in one.dims if _is_record(axis)}, drop=True) for one in both
        )
        labeled = first.indexes.keys() & second.indexes.keys()
        for axis in sorted(labeled, key=str):
            self.shared(f"{part}{axis}", first.indexes[axis], second.indexes[axis])
        for name in self.shared(f"{part}measures", list(first), list(second)):
            x, y = first[name], second[name]
            words = f"{part}{name}".replace("_", " ")
            if name in _ASIDE:
                continue
            if x.dims != y.dims or not set(x.dims) <= labeled:
                self.unlabeled.append(words)
            elif x.dtype.kind in "iuf" and y.dtype.kind in "iuf":
                self._compare_numbers(words, x, y)
            elif self.same_data or not {*TRIALS} & {*x.dims}:
                x, y = xr.align(x, y, join="inner")
                for label, at in _labels(words, x, x.dims):
                    self.words[label] = str(x.values[at]), str(y.values[at])

    def _compare_numbers(self, words: str, x: xr.DataArray, y: xr.DataArray) -> None:
        over = [axis for axis in TRIALS if axis in x.dims]
        # A number for each data set, the mean over its seeds; of one data set, for each seed.
        unit = next((axis for axis in over if x.sizes[axis] > 1), over[-1] if over else "alone")
        # Without a seed of both, each keeps its own, as data sets are paired all the same.
        apart = {axis for axis in over if not np.isin(x[axis], y[axis]).any()}
        together = self.same_data and (not apart or (apart == {"seed"} and unit != "seed"))
        x, y = xr.align(x, y, join="inner", exclude=apart if together else over)
        if over:
            self.units.add(unit if together else "")
            x, y = (one.mean({*over} - {unit}) for one in (x, y))
        else:
            together = True
            x, y = x.expand_dims(unit), y.expand_dims(unit)
        rest = [axis for axis in x.dims if axis != unit]
        for label, at in _labels(words, x, rest):
            ours, theirs = (one.transpose(*rest, unit).values[at] for one in (x, y))
            if np.isfinite(ours).any() or np.isfinite(theirs).any():
                first, second, (between, low, high), pairs, equal = _medians(ours, theirs, together)
                if not over:
                    first, second, low, high = *ours, *theirs, between, between
                word = WORDS[0 if low > 0 else 1 if high < 0 else 3 if equal or low == high else 2]
                ends = (low, high, pairs) if over else (np.nan, np.nan, 0)
                self.names.append(label)
                self.numbers.append((first, second, between, *ends, word))

    def pairing(self) -> str:
        """How trials are paired, in words."""
        if units := " or ".join(sorted(self.units - {""})):
            return f"Paired by {units}: a difference is the median of those on the same data."
        why = "no trials have the same labels" if self.same_data else "their data differ"
        text = f"Not paired, as {why}: differences are those of medians, with wider intervals."
        return text if self.units else ""


def _is_record(axis: Any) -> bool:
    return axis in AXES or str(axis).endswith("_step")


def _labels(words: str, data: xr.DataArray, axes: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """A name for every place along some axes; one with a single label needs no word."""
    for at in itertools.product(*(range(data.sizes[axis]) for axis in axes)):
        labels = [(axis, data[axis].values[place]) for axis, place in zip(axes, at, strict=True)]
        said = [
            label if isinstance(label, str) else f"{axis} {label}"
            for axis, label in labels
            if data.sizes[axis] > 1
        ]
        yield ", ".join([words, *said]), at


def _medians(x: np.ndarray, y: np.ndarray, together: bool) -> tuple[Any, ...]:
    """Medians of both, their difference with its interval, pairs, and whether they agree."""
    if together:
        known = np.isfinite(x) & np.isfinite(y)
        x, y = x[known], y[known]
        medians = (median_interval(values, CONFIDENCE).median for values in (x, y))
        equal = bool(len(x)) and bool((x == y).all())
        return *medians, median_interval(y - x, CONFIDENCE), len(x), equal
    a, b = (median_interval(values, (1 + CONFIDENCE) / 2) for values in (x, y))
    return a.median, b.median, (b.median - a.median, b.low - a.high, b.high - a.low), 0, False


NUMBERS = "comparison.json"
_COMPARED = ("audit.nc", "matrix.nc", "measures*.nc", "claims.json", "audit.json", "summary.json")
"""What the folder of a report is compared by, the first of them that is there."""
_MOST_FINDINGS, _MOST_ROWS = 8, 400


def labeled(path: str | os.PathLike[str]) -> Verdict | dict[str, xr.Dataset]:
    """Reads a stored result as labeled arrays, for ``paired``.

    Args:
        path: The folder of a report, the store of a sweep, a file of labeled arrays or of numbers,
            or a saved run, which is verified in the norm that it descended.

    Returns:
        The verdict of a run; of others labeled arrays by name, whose attributes say how they were
        made, and by ``data`` on which data.

    Raises:
        InvalidInputError: If there is no result, or the norm of a run is not known.
        FileFormatError: If a file is damaged.
    """
    place = Path(check_path("path", path))
    if place.is_file() and place.suffix == ".nc" and not len(read_netcdf(place)):
        # Its arrays are in groups.
        return verify(Trajectory.load(place))
    is_sweep = (place / "zarr.json").is_file()
    files = [place] if place.is_file() or is_sweep else _files(place)
    if not files:
        remedy = "Give the folder of a report, the store of a sweep, or a run of `attractor train`"
        raise InvalidInputError("path", f"there is no report in {place}", remedy)
    if is_sweep:
        return {"": open_sweep(place).load()}
    return {one.stem: _read(one) for one in files}


def _files(folder: Path) -> list[Path]:
    """The files that the folder of a report is compared by."""
    found = (sorted(folder.glob(name)) for name in _COMPARED)
    return next((files for files in found if files), [])


def _read(file: Path) -> xr.Dataset:
    if file.suffix == ".nc":
        data = read_netcdf(file)
    else:
        contents = read_json(file)
        with parsing(file, "report"):
            contents.pop("provenance", None)
            if file.name == "claims.json":
                contents = {name: one["outcome"] for name, one in contents["claims"].items()}
            known = {name: one for name, one in leaves(contents) if one is not None}
            data = xr.Dataset(known)
    try:
        made = read_provenance(file)
    except AttractorError:  # which a file need not have
        return data
    attributes = {"command": made.name, "seeds": str(made.seeds), "version": made.version}
    attributes |= {"platform": made.platform, **made.settings, **made.arguments}
    attributes.pop("data", None)  # whether there were any
    return data.assign_attrs(attributes | ({"data": made.data} if made.data else {}))


def write_comparison(directory: str | os.PathLike[str], found: Paired) -> None:
    """Writes ``report.html`` and ``comparison.json``.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        found: What ``paired`` returned.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    first, second = found.names
    numbers = found.table.drop(columns="second_is").to_numpy(float)
    provenance = Provenance.record(
        "report",
        "compare",
        arguments={"data": True, "seed": 0},
        data=data_hash(numbers=numbers, words=[str(dict(found.words))]),
    )
    with report_folder(
        directory, f"{second} against {first}", found.pairing, found.summary(), "compare",
        provenance=provenance, name=NUMBERS,
    ) as report:  # fmt: skip
        said = found.findings()
        report.findings += said[:_MOST_FINDINGS]
        if rest := said[_MOST_FINDINGS:]:
            report.findings.append(Folded(f"{len(rest)} more", rest))
        header, *rows = found.rows()
        if rows:
            left = f"The others are in {NUMBERS}." if len(rows) > _MOST_ROWS else ""
            caption = "Intervals hold for any distribution, with 95 % each. " * bool(found.pairing)
            table = Table(header, rows[:_MOST_ROWS], caption=caption + left)
            report.sections.append(Section("Numbers", table=table))
