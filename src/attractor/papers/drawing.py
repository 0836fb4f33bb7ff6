"""``draw``: a figure's data computed, drawn and written, or taken from an earlier run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from attractor.margin.solved_once import solved_once
from attractor.papers.figure import SIZES, PaperFigure, Reading, Request
from attractor.papers.ledger.packs import figures_in
from attractor.plots.design.look import save_figure, style
from attractor.results import Rows, Summary
from attractor.results.html import paragraph, picture
from attractor.results.provenance import Provenance, embed, read_provenance
from attractor.support.containers import read_netcdf
from attractor.support.errors import AttractorError, InvalidInputError
from attractor.support.randomness import seeded
from attractor.support.storage import OutputFile, atomic_file, check_paths, save_netcdf, write_file
from attractor.version import __version__


@dataclass(frozen=True, repr=False)
class DrawnFigure(Summary):
    """A figure that has been drawn.

    Attributes:
        figure: What it is.
        data: Its labeled data.
        caption: Its caption.
        readings: The numbers that decide its conclusion.
        provenance: Where it comes from.
        files: The files written, by kind.
        computed: Whether the data were computed now, and not by an earlier run.
    """

    figure: PaperFigure
    data: xr.Dataset
    caption: str
    readings: tuple[Reading, ...]
    provenance: Provenance
    files: Mapping[str, Path]
    computed: bool

    @property
    def agrees(self) -> bool:
        """Whether every reading agrees with the conclusion."""
        return all(reading.agrees for reading in self.readings)

    def _summary(self) -> tuple[str, Rows]:
        shown = "as it should be" if self.agrees else "not as it should be"
        rows = [
            (one.text, f"{one.value:.4g}, {one.expected}{'' if one.agrees else ': it is not'}")
            for one in self.readings
        ]
        files = ", ".join(str(file) for file in self.files.values())
        return f"{self.figure.name}: {shown}", [*rows, ("files", files)]

    def _html_parts(self) -> list[str]:
        drawing = picture(self.files["png"].read_bytes(), self.figure.name)
        return [drawing, paragraph(self.caption), *super()._html_parts()]

    def summary(self) -> dict[str, Any]:
        """Readings and files as plain values of JSON."""
        return {
            "agrees": self.agrees,
            "readings": [
                {name: getattr(reading, name) for name in ("text", "value", "expected", "agrees")}
                for reading in self.readings
            ],
            "caption": self.caption,
            "files": {kind: str(path) for kind, path in self.files.items()},
        }


def check_request(
    figure: PaperFigure,
    size: str,
    seeds: int | None,
    as_published: bool,
    source: Path | None = None,
) -> None:
    """Checks the arguments that a figure is drawn with.

    Raises:
        InvalidInputError: If an argument cannot be used.
    """
    if size not in SIZES:
        raise InvalidInputError("size", f"{size!r} is none", f"Give one of {', '.join(SIZES)}")
    if seeds is not None and seeds < 1:
        raise InvalidInputError("seeds", f"it is {seeds}", "Give 1 or more")
    if as_published and not figure.artifact:
        raise InvalidInputError(
            "as_published",
            f"the published form of {figure.name} has no artifact to reproduce",
            "Leave it out",
        )
    if source is None:
        return
    if not figure.takes:
        raise InvalidInputError(
            "data", f"{figure.name} is made of no data of yours", "Leave it out"
        )
    if not source.exists():
        raise InvalidInputError(
            "data", f"there is no file or folder {source}", f"Give {figure.takes}"
        )


def compute(
    figure: PaperFigure,
    *,
    size: str = "quick",
    seeds: int | None = None,
    seed: int = 0,
    as_published: bool = False,
    progress: bool = False,
    folder: Path | None = None,
    shared: Path | None = None,
    source: str | os.PathLike[str] | None = None,
) -> tuple[xr.Dataset, Provenance]:
    """Computes the data of a figure.

    Args:
        figure: The figure.
        size: ``"quick"``, ``"small"`` or ``"paper"``.
        seeds: Number of trials or data sets; default: that of the size.
        seed: The first seed.
        as_published: Whether to add the artifact of the published figure.
        progress: Whether to show progress bars.
        folder: Where long work may keep checkpoints.
        shared: Where figures of a paper may keep what several of them need, trained models say.
        source: The user's own data, for figures that take some.

    Raises:
        InvalidInputError: If an argument cannot be used.
    """
    arguments = _arguments(figure, size, seeds, seed, as_published, source)
    given = None if source is None else Path(source)
    settings = figure.settings(size, seeds)
    request = Request(size, settings, seed, as_published, progress, folder, shared, given)
    with solved_once(), seeded(seed, purpose=f"figure {figure.name}", alone=False):
        data = figure.compute(request)
    hashes = ", ".join(f"{name}: {value}" for name, value in sorted(request.hashes.items()))
    return data, _provenance(figure, arguments, hashes or None)


def figure_files(
    figure: PaperFigure, out: str | os.PathLike[str], as_published: bool
) -> dict[str, Path]:
    """The files that ``draw`` writes, by kind."""
    base = Path(out) / figure.name
    name = f"{base.name}-as-published" if as_published else base.name
    return {kind: base.with_name(f"{name}.{kind}") for kind in ("nc", "png", "svg", "txt")}


def draw(
    figure: PaperFigure,
    out: str | os.PathLike[str],
    *,
    size: str = "quick",
    seeds: int | None = None,
    seed: int = 0,
    as_published: bool = False,
    progress: bool = False,
    source: str | os.PathLike[str] | None = None,
) -> DrawnFigure:
    """Draws a figure and writes it as PNG, SVG, labeled data (NetCDF) and caption.

    Data that an earlier run has left in the folder, with the same settings and version, are taken
    as they are; work that was killed goes on from its last checkpoint.

    Args:
        figure: The figure.
        out: The folder; files go to a subfolder of the paper's name.
        size: ``"quick"``, ``"small"`` or ``"paper"``.
        seeds: Number of trials or data sets; default: that of the size.
        seed: The first seed.
        as_published: Whether to draw the artifact of the published figure beside the exact one.
        progress: Whether to show progress bars.
        source: The user's own data, for figures that take some, in place of those of the size.

    Raises:
        InvalidInputError: If an argument cannot be used.
    """
    arguments = _arguments(figure, size, seeds, seed, as_published, source)
    files = figure_files(figure, out, as_published)
    check_paths([OutputFile("out", file) for file in files.values()])
    place, name = files["nc"].parent, files["nc"].stem
    place.mkdir(parents=True, exist_ok=True)
    folder = place / f".{name}-unfinished"
    known = _finished(files["nc"], figure, arguments)
    if known is None:
        data, provenance = compute(
            figure, **arguments, progress=progress, folder=folder, shared=place
        )
        with atomic_file(files["nc"]) as temporary:
            save_netcdf(data, temporary)
            embed(temporary, provenance)
        shutil.rmtree(folder, ignore_errors=True)
    else:
        data, provenance = known
    caption = figure.caption(data)
    with style():
        save_figure(figure.draw(data), place, name, provenance=provenance)
    write_file(files["txt"], f"{caption}\n\n{figure.bibtex}\n")
    readings = tuple(figure.readings(data))
    return DrawnFigure(figure, data, caption, readings, provenance, files, known is None)


def drawn_before(out: str | os.PathLike[str]) -> list[DrawnFigure]:
    """The figures that lie in a folder, drawn by this version, in the order of the papers.

    Args:
        out: The folder that ``draw`` was given.
    """
    found = []
    for figure in figures_in(out).values():
        for as_published in (False, True):
            files = figure_files(figure, out, as_published)
            if not all(file.is_file() for file in files.values()):
                continue
            try:
                provenance = read_provenance(files["nc"])
            except AttractorError:
                continue
            if (provenance.name, provenance.version) == (figure.name, __version__):
                data = read_data(files["nc"])
                told = figure.caption(data), tuple(figure.readings(data)), provenance
                found.append(DrawnFigure(figure, data, *told, files, computed=False))
    return found


def _arguments(
    figure: PaperFigure,
    size: str,
    seeds: int | None,
    seed: int,
    as_published: bool,
    source: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """The arguments of a figure, checked, as its provenance records them."""
    file = None if source is None else Path(source)
    check_request(figure, size, seeds, as_published, file)
    given: dict[str, Any] = {"size": size, "seeds": figure.settings(size, seeds)["seeds"]}
    given |= {"seed": seed, "as_published": as_published}
    return given if file is None else given | {"source": str(file)}


def _provenance(figure: PaperFigure, arguments: Mapping[str, Any], data: str | None) -> Provenance:
    settings = figure.settings(arguments["size"], arguments["seeds"])
    first = arguments["seed"]
    return Provenance.record(
        "figure",
        figure.name,
        arguments=arguments,
        data=data,
        seeds=range(first, first + settings["seeds"]),
        settings=settings,
        bibtex=[figure.bibtex],
    )


def _finished(
    file: Path, figure: PaperFigure, arguments: Mapping[str, Any]
) -> tuple[xr.Dataset, Provenance] | None:
    """Data of an earlier run, if its provenance is the one requested."""
    if not file.is_file():
        return None
    try:
        found = read_provenance(file)
    except AttractorError:
        return None
    now = _provenance(figure, arguments, found.data)
    return (read_data(file), found) if found == now else None


def read_data(file: Path) -> xr.Dataset:
    """Reads the labeled data of a figure.

    Raises:
        FileFormatError: If the file is damaged.
    """
    data = read_netcdf(file)
    data.attrs.pop("provenance", None)  # which is returned beside the data
    return data
