"""What the digits report holds of one size of data set."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from attractor.analysis import Verdict
from attractor.datasets.digits import GRID, DigitPatches
from attractor.margin import Solution
from attractor.report.summary import infeasible_count

CHANCE = 1 / GRID**2
"""How often a patch drawn blindly is the predicted one."""


@dataclasses.dataclass(frozen=True)
class SizeResult:
    """What was found for data sets of one size.

    Attributes:
        drawn: The data sets.
        prediction: Solutions for the selections predicted.
        verdict: The runs, held against the selections they reached.
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
