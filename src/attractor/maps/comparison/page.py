"""Stored results as labeled arrays, and the page of two of them side by side."""

from __future__ import annotations

import os
from pathlib import Path

import xarray as xr

from attractor.analysis import Verdict, verify
from attractor.files import data_hash
from attractor.maps.comparison._paired import Paired
from attractor.maps.sweeps import open_sweep
from attractor.report.folder import report_folder
from attractor.report.page import Folded, Section, Table
from attractor.results.provenance import Provenance, read_provenance
from attractor.support.checks import check_path
from attractor.support.containers import leaves, parsing, read_json, read_netcdf
from attractor.support.errors import AttractorError, InvalidInputError
from attractor.training import Trajectory

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
