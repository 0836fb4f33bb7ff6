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
from attractor.report.write import direction_picture, write_verdict_data
from attractor.results.provenance import Provenance

_SHOWN = 8
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
    "patches: data sets in which all do. Margin ratio and correlation are medians, with the "
    "solution for the selection that training reached."
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
    """Writes the demo's page, its pictures and the data behind them; returns its numbers."""
    sizes = [result.summary() for result in results]
    drawn, trajectory = results[0].drawn, results[0].verdict.trajectory
    (low, high), settings = drawn.digits, trajectory.settings
    summary = {"sizes": sizes, "findings": _findings(sizes)}
    count = sum(one["data_sets"] for one in sizes)
    title = f"Where attention goes on handwritten digits {low} and {high}"
    counts = ", ".join(str(one["n"]) for one in sizes)
    source = f"{sizes[0]['data_sets']} data sets of each size, n = {counts} images."
    rows = [
        (
            str(one["n"]),
            f"{one['feasible']}/{one['data_sets']}",
            f"{100 * one['kept_as_predicted']:.1f} %",
            f"{one['whole_selection_as_predicted']}/{one['data_sets']}",
            near_one(one["margin_ratio_median"]),
            near_one(one["correlation_median"]),
        )
        for one in sizes
    ]
    header = ("n", "feasible", "patch", "all patches", "margin ratio", "correlation")
    table = Table(header, rows, caption=_CAPTION)
    with report_folder(directory, title, source, summary, "demo", provenance=provenance) as report:
        verdicts = {one["n"]: result.verdict for one, result in zip(sizes, results, strict=True)}
        for n, verdict in verdicts.items():
            write_verdict_data(report.place, verdict, f"_n{n}")
        runs = {f"n = {n}": verdict.data for n, verdict in verdicts.items()}
        report.findings += summary["findings"]
        report.sections += [
            Section("Which patches attention ends on", figure=_patches(report, results)),
            Section("How often the prediction is met", table=table),
            Section("Where the matrix points", figure=direction_picture(report, runs)),
            Section(
                "What was computed",
                [
                    f"An image (8 x 8 pixels) is a sequence of {GRID**2} patches: their pixels "
                    "minus the mean brightness, joined with the sine and cosine of row and column, "
                    "scaled to unit norm; the query is the patch just below and right of the "
                    f"center. The head is fixed, a logistic regression on the mean patch of all "
                    f"images of {low} and {high}, right for {100 * drawn.probe_accuracy:.0f} % of "
                    "them. Only the 8 x 8 attention matrix is trained, by "
                    f"{settings['steps']:,} steps of normalized gradient descent of length "
                    f"{settings['optimizer']['learning_rate']:g}. How many patches are kept "
                    "depends on such choices.",
                    "Every margin problem was solved to a certified relative gap of "
                    f"{max(one['largest_gap'] for one in sizes):.1e} or better. The selection that "
                    "training reached is locally optimal, where theory lets training end, in "
                    f"{sum(one['locally_optimal'] for one in sizes)} of {count} data sets.",
                ],
            ),
            Section("What the words mean", table=GLOSSARY),
        ]
    return summary, table


def _findings(sizes: Sequence[dict[str, Any]]) -> list[str]:
    """The findings of the demo, in a sentence each."""
    feasible = ", ".join(f"{s['feasible']} of {s['data_sets']} (n = {s['n']})" for s in sizes)
    kept = ", ".join(f"{100 * one['kept_as_predicted']:.0f} %" for one in sizes)
    whole = sum(one["whole_selection_as_predicted"] for one in sizes)
    cosines = ", ".join(near_one(one["correlation_median"]) for one in sizes)
    return [
        f"Some matrix selects the patch with the highest token score in every image in {feasible} "
        "data sets: the more images share one attention matrix, the more often there is none.",
        f"The whole predicted selection is seldom reached: in {whole} of "
        f"{sum(one['data_sets'] for one in sizes)} data sets. Image by image, attention ends on "
        f"the predicted patch in {kept} of the images; blind chance gives {100 * CHANCE:.3g} %.",
        "The direction is predicted far better than the selection: with the solution for the "
        f"selection it reached, the trained matrix has a median correlation of {cosines}.",
    ]


def _patches(report: ReportFolder, results: Sequence[SizeResult]) -> FigureFile:
    """Draws images of the first data sets; half of a row is of the first digit."""
    images, numbers, names, labels, agree = [], [], [], [], {}
    for drawn, _, verdict in results:
        n = drawn.tokens.sequences
        half = min(_SHOWN, n) // 2
        places = np.r_[:half, n // 2 : n // 2 + half]
        images.append(drawn.images[0][places])
        first = verdict.data[["predicted", "reached"]].isel(instance=0, seed=0, query=0)
        numbers.append([first[name].values[places] for name in ("predicted", "reached")])
        names.append(f"n = {n}" + f"\n{2 * half} of them" * (2 * half < n))
        labels.append([str(digit) for digit in drawn.digits for _ in range(half)])
        agree[f"n = {n}, images whose patch is the one predicted"] = (
            f"{(numbers[-1][0] == numbers[-1][1]).sum()} of the {2 * half} shown"
        )
    predicted, reached = zip(*numbers, strict=True)
    figure = plots.patches_figure(
        images, predicted, reached, grid=GRID, row_names=names, labels=labels
    )
    return report.picture(PATCHES, figure, seen.listed(agree))
