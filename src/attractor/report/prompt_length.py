"""The page on how long a prompt must be for a head."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor import plots
from attractor.prompt.length import PromptLength, error_quantiles, phase_diagram
from attractor.prompt.length.diagrams import lengths_to_draw
from attractor.prompt.length.result import percent, quantiles, sentences, token_count
from attractor.prompt.length.summary import summary
from attractor.provenance import Provenance
from attractor.report import seen
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.storage import save_netcdf

ERRORS = FigureFile(
    "error_by_length",
    "Relative root-mean-square error over prompts of independent Gaussian tokens, exact at every "
    "length, along the scores and of the whole output, with the lengths that reach the error "
    "required. In the gray region few tokens hold all attention for half of the queries. Green, "
    "where the law of the tokens is another one: over prompts of that law, toward its own limit.",
)
PHASES = FigureFile(
    "phase_diagram",
    "The error of the median query by length if the scores of the head are scaled. The orange line "
    "is the head as it is. Contours have corners where another query becomes the median one. Below "
    "exp(s^2 / 2) tokens few of them hold all attention of the median query; beyond a horizon of "
    "0.71 the squared error averaged over queries falls more slowly than one over the length.",
)
DEVIATIONS = FigureFile(
    "score_deviation", "The standard deviation of the scores over tokens, for every query."
)
GLOSSARY = Table(
    ("word", "meaning"),
    [
        ("score deviation s", "standard deviation over tokens of the scores of a query"),
        ("error along the scores", "of the output's part along the scores, relative to its limit"),
        ("whole output", "the error in all directions, relative to the norm of the affine limit"),
        ("affine limit", "V m + V Gamma U z: attention over infinitely many Gaussian tokens"),
        ("horizon H", "largest root-mean-square score deviation along one direction of queries"),
        ("effective sample size", "how many equally weighted tokens the attention amounts to"),
        ("frozen", "below exp(s^2 / 2) tokens few of them hold all attention"),
        ("rate Lambda", "largest log(number of tokens within a gap of the top score) / gap"),
        ("non-Gaussian defect", "what is left of the error however long the prompt is"),
    ],
    words=True,
)
_BOTH = {name: (name, f"{name}_by_moments") for name in ("tokens", "error")}
"""The exact numbers, and those of Gaussian tokens of the same moments."""


def write_prompt_length_report(
    directory: str | os.PathLike[str],
    found: PromptLength,
    error: float,
    *,
    source: str,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes ``report.html``, figures as PNG and SVG, and the numbers as JSON and NetCDF.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        found: What was found.
        error: The error required, one of its errors.
        source: What was read, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    numbers = summary(found, error)
    title = "How long a prompt must be"
    with report_folder(
        directory, title, source, numbers, "prompt-length", provenance=provenance
    ) as report:
        save_netcdf(found.to_xarray(), report.place / "prompt_length.nc")
        lengths = lengths_to_draw(found)
        report.findings += sentences(found, error)
        report.sections.append(Section("Tokens needed", table=_tokens_needed(numbers)))
        if numbers["law_itself"] is not None:
            report.sections.append(
                Section("Prompts of the law itself", table=_law_itself(numbers["law_itself"]))
            )
        report.sections.append(_errors(found, numbers, error, lengths, report))
        if found.horizon > 0:
            report.sections.append(_phases(found, error, lengths, report))
        figure = plots.score_deviation_figure(found.score_deviation)
        spread = f"Score deviations from {seen.spread(found.score_deviation)}."
        report.sections += [
            Section("Score deviations", figure=report.picture(DEVIATIONS, figure, spread)),
            Section("Attention on one token", table=_on_one_token(numbers["rows"])),
            Section("What the words mean", table=GLOSSARY),
        ]
    return numbers


def _tokens_needed(numbers: dict[str, Any]) -> Table:
    rows = []
    for one in numbers["required"]:
        along, output = one["tokens"], one["tokens_for_output"]
        lengths = (along["0.5"], along["0.95"], one["tokens_of_worst"], output["0.5"])
        rows.append(
            (
                percent(one["error"]),
                *(token_count(length) for length in (*lengths, output["0.95"])),
                *one["judgment"].values(),
            )
        )
    header = (
        "error", "along the scores: half of the queries", "95 %", "the worst one",
        "of the output: half of the queries", "95 %", "prompt for half of the queries",
        "prompt for 95 %",
    )  # fmt: skip
    caption = "Tokens by the error required, with a judgment of such lengths."
    return Table(header, rows, caption=caption)


def _law_itself(numbers: dict[str, Any]) -> Table:
    rows = []
    for one in numbers["required"]:
        shares = (one[name][share] for name in _BOTH["tokens"] for share in ("0.5", "0.95"))
        rows.append((f"tokens for {percent(one['error'])}", *map(token_count, shares)))
    for at in numbers["at"]:
        shares = (at[name][share] for name in _BOTH["error"] for share in ("0.5", "0.95"))
        rows.append((f"error at {at['length']:,.0f} tokens", *map(percent, shares)))
    header = (
        f"of the output, for {len(numbers['queries']):,} queries",
        "exact: half of them", "95 %", "by the moments: half of them", "95 %",
    )  # fmt: skip
    return Table(header, rows)


def _at_lengths(numbers: dict[str, Any]) -> Table:
    rows = []
    for at in numbers["at"]:
        errors = (
            at[name][share] for name in ("error", "output_error") for share in ("0.5", "0.95")
        )
        size = at["effective_sample_size"]["0.5"]
        rows.append(
            (f"{at['length']:,.0f}", *map(percent, errors), "-" if size is None else f"{size:,.1f}")
        )
    header = (
        "tokens", "error along the scores: half of the queries", "95 %",
        "of the output: half of the queries", "95 %", "effective sample size, half",
    )  # fmt: skip
    return Table(header, rows)


def _on_one_token(rows: dict[str, Any]) -> Table:
    lines = {
        "rate Lambda of the scores": "rate",
        "inverse temperature that puts half on the top token": "inverse_temperature_for_half",
        "attention of the head to the top token": "top_probability",
        "at least, by the rate": "top_probability_at_least",
        "at most, by the rate": "top_probability_at_most",
    }
    table = []
    for words, name in lines.items():
        shown = percent if name.startswith("top") else _number
        table.append((words, *(shown(rows[name][share]) for share in ("0.05", "0.5", "0.95"))))
    count = f"{rows['rows']:,} queries, each over the same {rows['tokens']:,} tokens"
    return Table((count, "5 % of the queries up to", "half", "95 %"), table)


def _number(value: float | None) -> str:
    return "infinite" if value is None else f"{value:,.3g}"


def _errors(
    found: PromptLength,
    numbers: dict[str, Any],
    error: float,
    lengths: Float[np.ndarray, "length"],
    report: ReportFolder,
) -> Section:
    data = error_quantiles(found, lengths)
    save_netcdf(data, report.place / f"{ERRORS.name}.nc")
    drawn = plots.error_by_length_figure(data, error)
    figure = report.picture(ERRORS, drawn, _errors_seen(data, numbers, error))
    return Section("Error by length", table=_at_lengths(numbers), figure=figure)


def _phases(
    found: PromptLength, error: float, lengths: Float[np.ndarray, "length"], report: ReportFolder
) -> Section:
    middle = quantiles(found.score_deviation)[1]
    own = found.horizon / middle if middle > 0 else 1.0
    reach = (min(0.1, middle / 3), min(max(6.0, 1.5 * middle), 12.0)) if middle > 0 else (0.1, 6.0)
    data = phase_diagram(found, own * np.geomspace(*reach, 49), lengths)
    figure = plots.prompt_phase_figure(
        data, horizon=found.horizon, error=error, lengths=found.lengths.tolist()
    )
    save_netcdf(data, report.place / f"{PHASES.name}.nc")
    shown = report.picture(PHASES, figure, _phases_seen(data, found, error))
    return Section("Heads with smaller and larger scores", figure=shown)


def _errors_seen(data: xr.Dataset, numbers: dict[str, Any], error: float) -> str:
    first, last = (f"{float(data['length'][place]):,.3g}" for place in (0, -1))
    courses = [
        f"the error {words} {seen.course(data[name].values[1])}"
        for name, words in (("error", "along the scores"), ("output_error", "of the whole output"))
    ]
    needed = min(numbers["required"], key=lambda one: abs(one["error"] - error))
    return (
        f"For half of the queries, from {first} to {last} tokens, {' and '.join(courses)}. Along "
        f"the scores half of the queries reach {percent(error)} at "
        f"{token_count(needed['tokens']['0.5'])} tokens and 95 % of them at "
        f"{token_count(needed['tokens']['0.95'])}."
    )


def _phases_seen(data: xr.Dataset, found: PromptLength, error: float) -> str:
    """The length at which heads with smaller and larger scores reach the error."""
    lengths, reached = data["length"].values, {}
    for horizon in (0.5 * found.horizon, found.horizon, 2 * found.horizon):
        row = data["error"].sel(horizon=horizon, method="nearest").values
        enough = np.flatnonzero(row <= error)
        at = token_count(float(lengths[enough[0]])) if len(enough) else "no length shown"
        reached[f"scores {horizon / found.horizon:g} times those of the head"] = at
    return f"Tokens from which on the error is {percent(error)}. {seen.listed(reached)}"
