"""The report of the demo: handwritten digits in data sets of growing size."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from attractor import plots
from attractor.analysis import Verdict
from attractor.checks import check_items, check_kinds, check_path
from attractor.datasets.digits import GRID, DigitPatches
from attractor.margin import Solution
from attractor.provenance import Provenance
from attractor.report import seen
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.report.words import GLOSSARY, near_one
from attractor.report.write import direction_picture, training_picture, write_verdict_data

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
    with report_folder(directory, title, source, summary, "demo", provenance=provenance) as report:
        shown = _draw(report, results)
        for result in results:
            write_verdict_data(report.place, result.verdict, f"_n{result.n}")
        report.findings += findings(results)
        report.sections += _sections(results, shown)
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
        f"token score) is that of a matrix in {feasible} data sets: the more images share one "
        "attention matrix, the more often none is found that gives all what they ask for.",
        f"The whole predicted selection is seldom reached: in {whole} of {total} data sets. "
        f"Image by image, attention ends on the predicted patch in {kept} of the images, "
        f"where blind chance gives {100 * CHANCE:.3g} %.",
        f"The direction is predicted far better than the selection. Compared with the solution "
        f"for the selection it reached, the trained matrix has a median correlation of {cosines} "
        f"and a median margin ratio of {ratios} (1 is a perfect match).",
    ]


def table(results: Sequence[SizeResult]) -> Table:
    """The numbers of the demo, a row for each size."""
    header = ("n", "feasible", "patch", "all patches", "margin ratio", "correlation")
    rows = []
    for one in (result.summary() for result in results):
        rows.append(
            (
                str(one["n"]),
                f"{one['feasible']}/{one['data_sets']}",
                f"{100 * one['kept_as_predicted']:.1f} %",
                f"{one['whole_selection_as_predicted']}/{one['data_sets']}",
                near_one(one["margin_ratio_median"]),
                near_one(one["correlation_median"]),
            )
        )
    caption = (
        "By the number n of images in a data set. patch: images that keep the patch predicted, "
        f"{100 * CHANCE:.3g} % by chance; all patches: data sets in which all do. Margin ratio and "
        "correlation are medians."
    )
    return Table(header, rows, caption=caption)


def _sections(results: Sequence[SizeResult], shown: Mapping[str, FigureFile]) -> list[Section]:
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
        ),
        Section("Where the matrix points", figure=shown["direction"]),
        Section("How often the prediction is met", figure=shown["sizes"]),
        Section("Which patches attention ends on", figure=shown["patches"]),
        Section("How often each patch is kept", figure=shown["frequency"]),
        Section("How training went", figure=shown["training"]),
        Section("What the words mean", table=GLOSSARY),
    ]


SIZES = FigureFile(
    "sizes",
    "Left: data sets whose predicted selection some matrix can realize. Middle: images in which "
    "attention ended on the predicted patch. Right: data sets in which it did so in every image. "
    "Dashed: blind chance.",
)
PATCHES = FigureFile(
    "patches",
    "Images of the first data set of each size, of the larger ones the first four of each digit, "
    "with the patch attention ended on (solid) and the patch predicted (dashed). Both are drawn "
    "where they agree.",
)
FREQUENCY = FigureFile(
    "frequency",
    "Percent of images, over all data sets, in which each patch is the predicted one and the one "
    "attention ended on.",
)


def _draw(report: ReportFolder, results: Sequence[SizeResult]) -> dict[str, FigureFile]:
    """Draws the figures; returns what sections show them by, by their names."""
    runs = {f"n = {result.n}": result.verdict.data for result in results}
    sizes = [result.n for result in results]

    def by_size(values: Sequence[xr.DataArray]) -> xr.DataArray:
        """Values of data sets, means over seeds."""
        found = [one.mean([dim for dim in one.dims if dim != "instance"]) for one in values]
        arrays = [one.values for one in found]
        return xr.DataArray(arrays, dims=("n", "instance"), coords={"n": sizes})

    agreements = [result.verdict.selection_agreement for result in results]
    feasible = by_size([xr.DataArray(one.feasible, dims="instance") for one in results])
    whole = by_size([(one == 1).astype(float) for one in agreements])
    shares = plots.sizes_figure(feasible, by_size(agreements), whole, chance=CHANCE)
    low, high = results[0].drawn.digits
    predicted, reached = (
        {f"digit {low}": _chosen(results, what, -1), f"digit {high}": _chosen(results, what, 1)}
        for what in ("predicted", "reached")
    )
    often = plots.frequency_figure(predicted, reached, grid=GRID)
    found = (
        direction_picture(report, runs),
        training_picture(report, runs),
        report.picture(SIZES, shares, _sizes_seen(results)),
        report.picture(PATCHES, *_patches(results)),
        report.picture(FREQUENCY, often, _frequency_seen(predicted, reached)),
    )
    return {file.name: file for file in found}


def _sizes_seen(results: Sequence[SizeResult]) -> str:
    numbers = {}
    for one in (result.summary() for result in results):
        numbers[f"n = {one['n']}"] = (
            f"feasible in {one['feasible']} of {one['data_sets']} data sets, the patch as "
            f"predicted in {100 * one['kept_as_predicted']:.3g} % of the images, and in every "
            f"image in {one['whole_selection_as_predicted']} data sets"
        )
    return seen.listed(numbers)


def _frequency_seen(
    predicted: Mapping[str, xr.DataArray], reached: Mapping[str, xr.DataArray]
) -> str:
    numbers = {}
    for word, kinds in (("predicted", predicted), ("ended on", reached)):
        for kind, chosen in kinds.items():
            counts = np.bincount(chosen.values.ravel(), minlength=GRID**2)
            row, column = divmod(int(counts.argmax()), GRID)
            share = 100 * counts.max() / counts.sum()
            numbers[f"{kind}, most often {word}"] = (
                f"the patch in row {row + 1}, column {column + 1}, in {share:.0f} % of the images"
            )
    return seen.listed(numbers)


def _patches(results: Sequence[SizeResult]) -> tuple[Figure, str]:
    """The figure and what is seen in it; half of a row is of the first digit, half of the other."""
    images, predicted, reached, names, labels = [], [], [], [], []
    for result in results:
        half = min(_SHOWN, result.n) // 2
        places = np.r_[:half, result.n // 2 : result.n // 2 + half]
        images.append(result.drawn.images[0][places])
        predicted.append(_numbers(result, "predicted")[0][places])
        reached.append(_numbers(result, "reached")[0][places])
        some = f"\n{2 * half} of them" if 2 * half < result.n else ""
        names.append(f"n = {result.n}{some}")
        labels.append([str(digit) for digit in result.drawn.digits for _ in range(half)])
    drawn = plots.patches_figure(
        images, predicted, reached, grid=GRID, row_names=names, labels=labels
    )
    agree = {
        f"n = {result.n}, images whose patch is the one predicted": (
            f"{(theory == end).sum()} of the {len(end)} shown"
        )
        for result, theory, end in zip(results, predicted, reached, strict=True)
    }
    return drawn, seen.listed(agree)


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
    def feasible(self) -> Float[np.ndarray, "instance"]:
        """1 for each data set whose predicted selection a matrix was found for, else 0."""
        return np.isfinite(self.prediction.value).astype(float)

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
            "feasible": int(self.feasible.sum()),
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
