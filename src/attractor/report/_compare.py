"""``compare``: two results of one kind side by side, paired by what they share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.analysis import Verdict
from attractor.analysis.bias import BiasMatrix
from attractor.analysis.bias.medians import MedianInterval, median_interval
from attractor.checks import check_items
from attractor.errors import InvalidInputError
from attractor.geometry import Geometry, get_geometry
from attractor.geometry.loading import spelling_of
from attractor.provenance import data_hash
from attractor.records import axis_of
from attractor.report.run_comparison import ComparedNumber, RunComparison
from attractor.report.sides import CLAIMS, MATRIX, VERDICT, Side, is_run, side_of
from attractor.report.words import MEASURES

if TYPE_CHECKING:
    from attractor.training import Trajectory

    Compared = Verdict | Trajectory | BiasMatrix | str | os.PathLike[str]

_CONFIDENCE = 0.95
_PAIRED = (
    "Paired by {unit}: differences are medians of those of the same {unit}. Intervals are order "
    "statistics and hold for any distribution, with 95 % each."
)
_PARTLY = (
    " Of {first} and {second} data sets {both} are on both sides, and numbers are of these alone."
)
_UNPAIRED = (
    "Not paired, as {why}: differences are those of medians, and their intervals are wider. All "
    "hold for any distribution, with 95 % each."
)
_SINGLE = "Single numbers, without intervals."


def compare(
    first: Compared,
    second: Compared,
    *,
    names: Sequence[str] | None = None,
    geometry: Geometry | str | None = None,
) -> RunComparison:
    """Puts two results of one kind side by side: settings that differ, numbers, differences.

    Trials on the same data are paired by data set, or by seed where there is one data set, so that
    what they share does not blur their difference. The interval of a median of n values goes from
    the k-th smallest to the k-th largest, ``1 - 2 P(Binomial(n, 1/2) < k) >= 0.95``. Unpaired, the
    difference of two medians lies between the differences of the ends of their intervals, each of
    97.5 %.

    Args:
        first: A verdict, a run (which is verified), a bias matrix, the folder of a report, or the
            file of a run.
        second: Another of that kind.
        names: What to call them; default: the names of folders, or "first" and "second".
        geometry: The norm to verify runs in, such as one's own; default: those they descended.

    Raises:
        InvalidInputError: If one is none of these, they are of different kinds, or a norm is given
            where they are no runs.
        FileFormatError: If a file of a report is damaged.
    """
    called = _names(first, second, names)
    if geometry is not None and not (is_run(first) or is_run(second)):
        raise InvalidInputError(
            "geometry",
            "neither is a run, and the norms of reports and verdicts are those they were made in",
            "Leave it out, or give a run",
        )
    a, b = side_of("first", first, geometry), side_of("second", second, geometry)
    if a.kind != b.kind:
        raise InvalidInputError(
            "second", f"it is of kind {b.kind}, and the first of kind {a.kind}", "Give two of one"
        )
    pairs = _studies(a, b)
    numbers = [one for name, (x, y) in pairs.items() for one in _of_study(a, b, name, x, y)]
    numbers += [
        _single(name, a.numbers[name], b.numbers[name])
        for name in a.numbers
        if name in b.numbers and a.numbers[name] != b.numbers[name]
    ]
    if a.studies and not numbers:
        raise InvalidInputError("second", "it shares nothing with the first", "Give another")
    ranks = {"higher": 0, "lower": 0, "open": 1, "the same": 2}
    numbers.sort(key=lambda one: ranks[one.word])
    return RunComparison(
        called,
        a.kind,
        _differing(a.settings, b.settings),
        tuple(numbers),
        _differing(a.texts, b.texts),
        _pairing(a, b, numbers),
        pairs,
        _hash(a, b),
        tuple(dict.fromkeys([*a.bibtex, *b.bibtex])),
        None if geometry is None else spelling_of(get_geometry(geometry)),
    )


def _hash(a: Side, b: Side) -> str:
    """A hash of both sides, in their order."""
    arrays = {f"first {name}": values for name, values in a.arrays().items()}
    arrays |= {f"second {name}": values for name, values in b.arrays().items()}
    return data_hash(**arrays)


def _names(first: Any, second: Any, names: Sequence[str] | None) -> tuple[str, str]:
    if names is not None:
        given = check_items("names", names, str, 2)
        if len(given) != 2 or given[0] == given[1]:
            raise InvalidInputError("names", f"they are {list(given)}", "Give two different ones")
        return given[0], given[1]
    found = [
        Path(one).resolve().name if isinstance(one, str | os.PathLike) else ""
        for one in (first, second)
    ]
    return (found[0], found[1]) if all(found) and found[0] != found[1] else ("first", "second")


def _studies(a: Side, b: Side) -> dict[str, tuple[xr.Dataset, xr.Dataset]]:
    """What was trained on both sides, by its name; alone on each, whatever it is called."""
    shared = [name for name in a.studies if name in b.studies]
    if not shared and len(a.studies) == len(b.studies) == 1:
        return {"": (next(iter(a.studies.values())), next(iter(b.studies.values())))}
    alone = len(shared) == 1 == len(a.studies) == len(b.studies) and a.kind == VERDICT
    return {"" if alone else name: (a.studies[name], b.studies[name]) for name in shared}


def _of_study(
    a: Side, b: Side, study: str, first: xr.Dataset, second: xr.Dataset
) -> Iterator[ComparedNumber]:
    paired = bool(a.same_trials) and a.same_trials == b.same_trials
    measures = _by_norm if a.kind == MATRIX else _at_end
    ours, theirs = measures(first), measures(second)
    for words, values in ours.items():
        if words in theirs and (values.notnull().any() or theirs[words].notnull().any()):
            name = f"{study}: {words}" if study else words
            yield _number(name, values, theirs[words], paired)


def _at_end(data: xr.Dataset) -> dict[str, xr.DataArray]:
    """Measures at the last record, by their words."""
    return {
        words: data[name].isel({axis_of(data[name]): -1}, drop=True)
        for name, words in MEASURES.items()
        if name in data
    }


def _by_norm(data: xr.Dataset) -> dict[str, xr.DataArray]:
    """Margin ratios in every norm."""
    ratios = data["margin_ratio"]
    return {
        f"margin ratio in {norm}": ratios.sel(norm=norm, drop=True)
        for norm in ratios["norm"].values.tolist()
    }


def _number(name: str, first: xr.DataArray, second: xr.DataArray, paired: bool) -> ComparedNumber:
    if paired and (shared := _shared(first, second)) is not None:
        x, y = map(_units, shared)
        known = np.isfinite(x) & np.isfinite(y)
        both = [median_interval(values, _CONFIDENCE) for values in (x[known], y[known])]
        between = median_interval(y[known] - x[known], _CONFIDENCE)
        pairs = int(known.sum())
        equal = bool(pairs) and bool((x[known] == y[known]).all())
        return ComparedNumber(name, both[0], both[1], between, pairs, equal)
    x, y = _units(first), _units(second)
    both = [median_interval(values, _CONFIDENCE) for values in (x, y)]
    wide = [median_interval(values, (1 + _CONFIDENCE) / 2) for values in (x, y)]
    between = MedianInterval(
        both[1].median - both[0].median, wide[1].low - wide[0].high, wide[1].high - wide[0].low
    )
    return ComparedNumber(name, both[0], both[1], between)


def _shared(first: xr.DataArray, second: xr.DataArray) -> tuple[xr.DataArray, ...] | None:
    """Both on the data sets of both, and on the seeds of both; None where nothing is left to pair.

    Without a seed of both, each keeps its own, as data sets are paired all the same.
    """
    several = first.sizes.get("instance", 1) > 1
    apart = {"seed"} if several and not _common(first, second, "seed") else set()
    for name in ("instance", "seed"):
        if name in first.dims and name not in apart and not _common(first, second, name):
            return None
    return xr.align(first, second, join="inner", exclude=apart)


def _common(first: xr.DataArray, second: xr.DataArray, name: str) -> bool:
    return name in first.dims and bool(np.isin(first[name].values, second[name].values).any())


def _units(values: xr.DataArray) -> Float[np.ndarray, "unit"]:
    """A number for each data set, the mean over its seeds; of one data set, for each seed."""
    if "seed" not in values.dims:
        return values.values.ravel()
    if values.sizes["instance"] == 1:
        return values.isel(instance=0).values.ravel()
    return values.mean("seed").values.ravel()


def _single(name: str, first: float, second: float) -> ComparedNumber:
    alone = [MedianInterval(one, math.nan, math.nan) for one in (first, second, second - first)]
    return ComparedNumber(name, alone[0], alone[1], alone[2])


def _differing(first: Any, second: Any) -> dict[str, tuple[str, str]]:
    names = [*first, *(name for name in second if name not in first)]
    values = {name: (first.get(name, "-"), second.get(name, "-")) for name in names}
    return {name: both for name, both in values.items() if both[0] != both[1]}


def _data_sets(side: Side) -> set[int]:
    """The numbers of the data sets of a side."""
    known = [one["instance"].values for one in side.studies.values() if "instance" in one.coords]
    return set(np.concatenate(known).tolist()) if known else set()


def _pairing(a: Side, b: Side, numbers: Sequence[ComparedNumber]) -> str:
    if not a.studies:
        return "" if a.kind == CLAIMS or not numbers else _SINGLE
    if a.same_trials and a.same_trials == b.same_trials:
        counts = [_data_sets(side) for side in (a, b)]
        paired = _PAIRED.format(unit="data set" if max(map(len, counts)) > 1 else "seed")
        both = counts[0] & counts[1]
        if counts[0] == counts[1]:
            return paired
        return paired + _PARTLY.format(first=len(counts[0]), second=len(counts[1]), both=len(both))
    known = bool(a.same_trials and b.same_trials)
    why = "their data or seeds differ" if known else "it is not known whether their data agree"
    return _UNPAIRED.format(why=why)
