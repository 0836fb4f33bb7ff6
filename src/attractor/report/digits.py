"""The report of the demo: handwritten digits in data sets of growing size."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from attractor import plots
from attractor.analysis import Verdict
from attractor.checks import check_items, check_kinds, check_path
from attractor.datasets.digits import GRID, DigitPatches
from attractor.margin import Solution
from attractor.provenance import Provenance
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.report.summary import infeasible_count
from attractor.report.words import GLOSSARY, near_one
from attractor.report.write import CURVES, TRAINING, write_verdict_data

_SHOWN = 8
CHANCE = 1 / GRID**2
"""Probability that a patch drawn at random is the predicted one."""


def write_digits_report(
    directory: str | os.PathLike[str],
    results: Sequence[SizeResult],
    *,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes the demo's ``report.html``, its figures and the data behind them.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        results: One for each size of data set.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    check_kinds(provenance=(provenance, Provenance | None))
    directory = check_path("directory", directory)
    results = check_items("results", results, SizeResult, 1)
    summaries = [result.summary() for result in results]
    summary = {"sizes": summaries, "findings": findings(results)}
    first = results[0].drawn
    title = f"Where attention goes on handwritten digits {first.digits[0]} and {first.digits[1]}"
    source = (
        f"{summaries[0]['data_sets']} data sets of each size, "
        f"n = {', '.join(str(result.n) for result in results)} images."
    )
    with report_folder(directory, title, source, summary, provenance=provenance) as report:
        _draw(report, results)
        for result in results:
            write_verdict_data(report.place, result.verdict, f"_n{result.n}")
        report.findings += findings(results)
        report.sections += _sections(results)
    return summary


def findings(results: Sequence[SizeResult]) -> list[str]:
    """The findings of the demo, in a sentence each."""
    found = [result.summary() for result in results]
    feasible = ", ".join(
        f"{one['feasible']} of {one['data_sets']} (n = {one['n']})" for one in found
    )
    kept = ", ".join(f"{100 * one['kept_as_predicted']:.0f} %" for one in found)
    whole = sum(one["whole_selection_as_predicted"] for one in found)
    total = sum(one["data_sets"] for one in found)
    cosines = ", ".join(near_one(one["correlation_median"]) for one in found)
    ratios = ", ".join(near_one(one["margin_ratio_median"]) for one in found)
    return [
        f"The selection predicted for a whole data set (in every image the patch with the highest "
        f"token score) is possible in {feasible} data sets: the more images share one attention "
        "matrix, the more often they ask for the impossible.",
        f"The whole predicted selection is seldom reached: in {whole} of {total} data sets. "
        f"Image by image, attention ends on the predicted patch in {kept} of the images, "
        f"where blind chance gives {100 * CHANCE:.3g} %.",
        f"The direction is predicted far better than the selection. Compared with the solution "
        f"for the selection it reached, the trained matrix has a median correlation of {cosines} "
        f"and a median margin ratio of {ratios} (1 is a perfect match).",
    ]


def table(results: Sequence[SizeResult]) -> Table:
    """The numbers of the demo, a row for each size."""
    header = (
        "n",
        "feasible",
        "patch as predicted",
        "chance",
        "all patches as predicted",
        "median margin ratio",
        "median correlation",
    )
    rows = []
    for one in (result.summary() for result in results):
        rows.append(
            (
                str(one["n"]),
                f"{one['feasible']}/{one['data_sets']}",
                f"{100 * one['kept_as_predicted']:.1f} %",
                f"{100 * CHANCE:.3g} %",
                f"{one['whole_selection_as_predicted']}/{one['data_sets']}",
                near_one(one["margin_ratio_median"]),
                near_one(one["correlation_median"]),
            )
        )
    return Table(header, rows)


def _sections(results: Sequence[SizeResult]) -> list[Section]:
    drawn, trajectory = results[0].drawn, results[0].verdict.trajectory
    settings = trajectory.settings
    rate = settings["optimizer"].get("learning_rate", "")
    certified = max(result.summary()["largest_gap"] for result in results)
    local = ", ".join(
        f"{one['locally_optimal']}/{one['data_sets']}"
        for one in (result.summary() for result in results)
    )
    low, high = drawn.digits
    return [
        Section(
            "What was computed",
            [
                f"Each image (8 x 8 pixels) is a sequence of {GRID**2} patches of 2 x 2 pixels. A "
                "patch is its pixels minus the mean brightness, joined with the sine and cosine of "
                "its row and column, scaled to unit norm; the query is the patch just below and "
                "right of the center. The head that reads the attention output is fixed: a "
                f"logistic regression on the mean patch of all images of {low} and {high}, which "
                f"by itself is right for {100 * drawn.probe_accuracy:.0f} % of them. Only the "
                f"8 x 8 attention matrix is trained, by {settings['steps']:,} steps of normalized "
                f"gradient descent of length {rate}, one run for each data set. The fractions "
                "below depend on such choices as the query patch, the code of the place, and the "
                "probe.",
                "Two questions are kept apart. Which patch does attention keep in each image, and "
                "is it the predicted one? And given the patches kept, does the matrix point where "
                "the margin problem for them says? Every margin problem was solved to a certified "
                f"relative gap of {certified:.1e} or better.",
            ],
        ),
        Section(
            "In numbers",
            [
                "The prediction is the patch with the highest token score in every image. Margin "
                "ratio and correlation are with the solution for the selection that "
                f"training reached. That selection is locally optimal in {local} runs, which is "
                "where theory lets training end although better tokens may exist."
            ],
            table=table(results),
            figure=SIZES,
        ),
        Section("Which patches attention ends on", figure=PATCHES),
        Section("How often each patch is kept", figure=FREQUENCY),
        Section("Where the matrix points", figure=CURVES),
        Section("How training went", figure=TRAINING),
        Section("What the words mean", table=GLOSSARY),
    ]


SIZES = FigureFile(
    "sizes",
    "Left: data sets whose predicted selection some matrix can realize. Middle: images in which "
    "attention ended on the predicted patch, beside blind chance. Right: data sets in which it "
    "did so in every image.",
)
PATCHES = FigureFile(
    "patches",
    "Images of the first data set of each size, with the patch attention ended on (solid) and the "
    "patch predicted (dashed). Both are drawn where they agree.",
)
FREQUENCY = FigureFile(
    "frequency",
    "Percent of images, over all data sets, in which each patch is the predicted one and the one "
    "attention ended on.",
)


def _draw(report: ReportFolder, results: Sequence[SizeResult]) -> None:
    runs = {f"n = {result.n}": result.verdict.data for result in results}
    summaries = [result.summary() for result in results]

    def fraction(name: str, of: str | None = None) -> xr.DataArray:
        values = [one[name] / (one[of] if of else 1) for one in summaries]
        return xr.DataArray(values, dims="n", coords={"n": [one["n"] for one in summaries]})

    feasible = fraction("feasible", "data_sets")
    whole = fraction("whole_selection_as_predicted", "data_sets")
    sizes = plots.sizes_figure(feasible, fraction("kept_as_predicted"), whole, chance=CHANCE)
    low, high = results[0].drawn.digits
    predicted, reached = (
        {f"digit {low}": _chosen(results, what, -1), f"digit {high}": _chosen(results, what, 1)}
        for what in ("predicted", "reached")
    )
    report.picture(CURVES, plots.direction_figure(runs))
    report.picture(TRAINING, plots.training_figure(runs))
    report.picture(SIZES, sizes)
    report.picture(PATCHES, _patches(results))
    report.picture(FREQUENCY, plots.frequency_figure(predicted, reached, grid=GRID))


def _patches(results: Sequence[SizeResult]) -> Any:
    """Half of the images shown in a row are of the first digit, half of the second."""
    images, predicted, reached = [], [], []
    for result in results:
        half = min(_SHOWN, result.n) // 2
        places = np.r_[:half, result.n // 2 : result.n // 2 + half]
        images.append(result.drawn.images[0][places])
        predicted.append(_numbers(result, "predicted")[0][places])
        reached.append(_numbers(result, "reached")[0][places])
    return plots.patches_figure(
        images, predicted, reached, grid=GRID, row_names=[f"n = {result.n}" for result in results]
    )


def _chosen(results: Sequence[SizeResult], what: str, label: int) -> xr.DataArray:
    """Patch numbers in all images of one digit."""
    numbers = []
    for result in results:
        labels = result.drawn.tokens.labels
        assert labels is not None
        numbers.append(_numbers(result, what)[labels[..., 0] == label])
    return xr.DataArray(np.concatenate(numbers), dims="image")


def _numbers(result: SizeResult, what: str) -> np.ndarray:
    """Patch numbers of the first seed, ``(instance, sequence)``."""
    values = result.verdict.data[what].isel(query=0)
    return (values.isel(seed=0) if "seed" in values.dims else values).values


@dataclasses.dataclass(frozen=True)
class SizeResult:
    """The results for data sets of one size.

    Attributes:
        drawn: The data sets.
        prediction: Solutions for the selections predicted.
        verdict: The runs, compared with the solutions for the selections they reached.
    """

    drawn: DigitPatches
    prediction: Solution
    verdict: Verdict

    @property
    def n(self) -> int:
        """Images in a data set."""
        return self.drawn.tokens.sequences

    def summary(self) -> dict[str, Any]:
        """The numbers of the demo for this size."""
        data_sets = len(self.prediction)
        agreement = self.verdict.selection_agreement
        correlation, ratio = self.verdict.correlation, self.verdict.margin_ratio
        return {
            "n": self.n,
            "data_sets": data_sets,
            "feasible": data_sets - infeasible_count(self.prediction),
            "kept_as_predicted": float(agreement.mean()),
            "chance": CHANCE,
            "whole_selection_as_predicted": int((agreement == 1).sum()),
            "comparable": int(np.isfinite(ratio).sum()),
            "margin_ratio_median": float(ratio.median()),
            "margin_ratio_smallest": float(ratio.min()),
            "correlation_median": float(correlation.median()),
            "correlation_smallest": float(correlation.min()),
            "locally_optimal": int(self.verdict.locally_optimal.sum()),
            "largest_gap": float(np.nanmax(self.verdict.data["gap"])),
        }
