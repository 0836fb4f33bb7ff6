"""The report of the demo: which patches of handwritten digits attention ends on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attractor import plots
from attractor.analysis import Verdict
from attractor.datasets.digits import GRID, DigitPatches
from attractor.margin import Solution
from attractor.report import seen
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.report.words import GLOSSARY, near_one
from attractor.report.write import write_verdict_data
from attractor.results.provenance import Provenance

_SHOWN = 8
_COUNTED = {
    "feasible": "feasible",
    "all patches": "whole_selection_as_predicted",
    "locally optimal": "locally_optimal",
}
"""Columns that count data sets, with the numbers they show."""
CHANCE = 1 / GRID**2
"""Probability that a patch drawn at random is the predicted one."""
PATCHES = FigureFile(
    "patches",
    "Images of the first data set of each size, of the larger ones the first four of each digit, "
    "with the patch attention ended on (solid) and the patch predicted (dashed). Both are drawn "
    "where they agree.",
)
_CAPTION = (
    "By the number n of images in a data set. patch: images that keep the patch predicted; all "
    "patches: data sets in which all do; locally optimal: data sets in which the selection reached "
    "is. Margin ratio and correlation are medians, with the solution for the selection reached."
)
_COMPUTED = (
    "An image (8 x 8 pixels) is a sequence of {patches} patches: their pixels minus the mean "
    "brightness, joined with the sine and cosine of row and column, scaled to unit norm; the query "
    "is the patch just below and right of the center. The head is fixed, a logistic regression on "
    "the mean patch of all images of {digits}, right for {right:.0f} % of them. Only the 8 x 8 "
    "attention matrix is trained, by {steps:,} steps of normalized gradient descent of length "
    "{length:g}. How many patches are kept depends on such choices. Every margin problem was "
    "solved to a certified relative gap of {gap:.1e} or better."
)


class SizeResult(NamedTuple):
    """The results for data sets of one size.

    Attributes:
        drawn: The data sets.
        prediction: Solutions for the selections predicted.
        verdict: The runs, compared with the solutions for the selections they reached.
    """

    drawn: DigitPatches
    prediction: Solution
    verdict: Verdict

    def summary(self) -> dict[str, Any]:
        """The numbers of the demo for this size."""
        agreement = self.verdict.selection_agreement
        return {
            "n": self.drawn.tokens.sequences,
            "data_sets": len(self.prediction),
            "feasible": int(np.isfinite(self.prediction.value).sum()),
            "kept_as_predicted": float(agreement.mean()),
            "chance": CHANCE,
            "whole_selection_as_predicted": int((agreement == 1).sum()),
            "margin_ratio_median": float(self.verdict.margin_ratio.median()),
            "correlation_median": float(self.verdict.correlation.median()),
            "locally_optimal": int(self.verdict.locally_optimal.sum()),
            "largest_gap": float(np.nanmax(self.verdict.data["gap"])),
        }


def write_digits_report(
    directory: Path, results: Sequence[SizeResult], provenance: Provenance
) -> tuple[dict[str, Any], Table]:
    """Writes the demo's page, its picture and the data behind it; returns its numbers."""
    sizes = [result.summary() for result in results]
    drawn, settings = results[0].drawn, results[0].verdict.trajectory.settings
    digits = " and ".join(map(str, drawn.digits))
    kept = ", ".join(f"{100 * one['kept_as_predicted']:.3g} %" for one in sizes)
    finding = (
        f"Attention ends on the patch predicted in {kept} of the images, by the size of the data "
        f"sets; blind chance gives {100 * CHANCE:.3g} %."
    )
    summary = {"sizes": sizes, "findings": [finding]}
    header = ("n", *_COUNTED, "patch", "margin ratio", "correlation")
    rows = [
        (
            str(one["n"]),
            *(f"{one[name]}/{one['data_sets']}" for name in _COUNTED.values()),
            f"{100 * one['kept_as_predicted']:.1f} %",
            near_one(one["margin_ratio_median"]),
            near_one(one["correlation_median"]),
        )
        for one in sizes
    ]
    table = Table(header, rows, caption=_CAPTION)
    title = f"Where attention goes on handwritten digits {digits}"
    source = f"{sizes[0]['data_sets']} data sets of each size"
    with report_folder(directory, title, source, summary, "demo", provenance=provenance) as report:
        for one, result in zip(sizes, results, strict=True):
            write_verdict_data(report.place, result.verdict, f"_n{one['n']}")
        computed = _COMPUTED.format(
            patches=GRID**2,
            digits=digits,
            right=100 * drawn.probe_accuracy,
            steps=settings["steps"],
            length=settings["optimizer"]["learning_rate"],
            gap=max(one["largest_gap"] for one in sizes),
        )
        report.findings.append(finding)
        report.sections += [
            Section(
                "Which patches attention ends on", table=table, figure=_patches(report, results)
            ),
            Section("What was computed", [computed]),
            Section("What the words mean", table=GLOSSARY),
        ]
    return summary, table


def _patches(report: ReportFolder, results: Sequence[SizeResult]) -> FigureFile:
    """Draws images of the first data sets; half of a row is of the first digit."""
    images, numbers, agree = [], [], {}
    for drawn, _, verdict in results:
        n = drawn.tokens.sequences
        half = min(_SHOWN, n) // 2
        places = np.r_[:half, n // 2 : n // 2 + half]
        images.append(drawn.images[0][places])
        first = verdict.data[["predicted", "reached"]].isel(instance=0, seed=0, query=0)
        numbers.append([first[name].values[places] for name in ("predicted", "reached")])
        same = (numbers[-1][0] == numbers[-1][1]).sum()
        agree[f"n = {n}"] = f"the patch is the one predicted in {same} of {2 * half} images shown"
    predicted, reached = zip(*numbers, strict=True)
    figure = plots.patches_figure(images, predicted, reached, grid=GRID, row_names=[*agree])
    return report.picture(PATCHES, figure, seen.listed(agree))
