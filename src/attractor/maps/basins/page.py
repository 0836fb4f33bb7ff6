"""The page on basins: where random starts end, and which part of a plane each selection takes."""

from __future__ import annotations

import os
from typing import Any

from attractor.maps import plots
from attractor.maps.basins import BasinMap, BasinShares
from attractor.maps.basins.tables import percent
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.report.seen import listed
from attractor.results.provenance import Provenance
from attractor.support.storage.markers import BASINS

SHARES = FigureFile(
    "shares", "The share of random starts that settle on each selection, with its interval."
)
MAP = FigureFile(
    "map",
    "The selection that each start of a plane settles on. Boundaries are drawn between the centers "
    "of cells, from which training starts: they are known to a cell.",
)
_RULES = (
    "A start has settled when one token has 99 % of the attention of every query and those that "
    "would lower the loss further pull less than 1 % of what the weakest support token holds. "
    "Others are followed on, and are counted as not settled where that takes too long.",
    "Globally optimal: in every sequence the token of highest score. Locally optimal: the tokens "
    "nearest to being selected score lower than the selected ones, so that theory allows training "
    "to end there.",
)


def basins_summary(shares: BasinShares, drawn: BasinMap | None) -> dict[str, Any]:
    """Where starts end, as plain values of JSON.

    Args:
        shares: Where random starts end.
        drawn: The map of a plane, or None.
    """
    return {**shares.summary(), "map": None if drawn is None else drawn.summary()}


def write_basins_report(
    directory: str | os.PathLike[str],
    shares: BasinShares,
    drawn: BasinMap | None,
    *,
    source: str,
    provenance: Provenance | None = None,
) -> None:
    """Writes ``report.html``, pictures as PNG and SVG, and the numbers as JSON and NetCDF.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        shares: Where random starts end.
        drawn: The map of a plane, or None.
        source: What was trained, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    summary = basins_summary(shares, drawn)
    studies = [shares.data] if drawn is None else [shares.data, drawn.data]
    colors = plots.selection_colors(*studies)
    title = "Where starts end"
    with report_folder(
        directory, title, source, summary, "basins", provenance=provenance, marker=BASINS
    ) as report:
        shares.save(report.place / BASINS)
        rows = [_row(one) for one in summary["outcomes"]]
        report.findings += _findings(summary)
        picture = plots.basin_shares_figure(shares.data, colors=colors)
        seen = listed({row[0]: f"{row[3]} ({row[4]})" for row in rows})
        header = (
            "selection",
            "optimal",
            "starts",
            "share",
            f"{100 * summary['confidence']:.0f} % interval",
        )
        report.sections.append(
            Section(
                "Random starts",
                table=Table(header, rows),
                figure=report.picture(SHARES, picture, seen),
            )
        )
        if drawn is not None:
            drawn.save(report.place / "map.nc")
            picture = plots.basin_map_figure(drawn.data, colors=colors)
            parts = {_name(one): percent(one["part"]) for one in summary["map"]["selections"]}
            seen = f"The part of the plane that each selection takes. {listed(parts)}"
            report.sections.append(
                Section("A plane of starts", figure=report.picture(MAP, picture, seen))
            )
        report.sections.append(Section("How to read this", _RULES))


def _row(outcome: dict[str, Any]) -> tuple[str, ...]:
    optimal = [word for word in ("globally", "locally") if outcome.get(f"{word}_optimal", False)]
    return (
        _name(outcome),
        optimal[0] if optimal else "-",
        f"{outcome['count']:,}",
        percent(outcome["share"]),
        f"{100 * outcome['low']:.1f} to {percent(outcome['high'])}",
    )


def _name(outcome: dict[str, Any]) -> str:
    """The tokens of a selection, one for each query."""
    if outcome["tokens"] is None:
        return "not settled"
    tokens = [str(token) for row in outcome["tokens"] for token in row]
    return f"token{'s' if len(tokens) > 1 else ''} {', '.join(tokens)}"


def _findings(summary: dict[str, Any]) -> list[str]:
    """How often training ends on the best tokens, where else most often, and what is not known."""
    settled = [one for one in summary["outcomes"] if one["tokens"] is not None and one["count"]]
    best = [one for one in settled if one.get("globally_optimal", False)]
    others = [one for one in settled if not one.get("globally_optimal", False)]
    starts = summary["starts"]
    found = [
        f"{sum(one['count'] for one in best):,} of {starts:,} random starts end on the globally "
        f"optimal tokens, the others on {len(others):,} other selections."
    ]
    if others:
        most = max(others, key=lambda one: one["count"])
        found.append(f"Of these most starts, {most['count']:,}, end on {_name(most)}.")
    if left := sum(one["count"] for one in summary["outcomes"] if one["tokens"] is None):
        found.append(f"{left:,} starts had not settled when they were given up.")
    return found
