"""The hypotheses of statements about a head trained beside the attention layer."""

from __future__ import annotations

from typing import Literal

import numpy as np

from attractor.analysis import label_margin_constant
from attractor.margin import Solution, label_problem, label_support, solve
from attractor.papers.assumption import Assumption, Check
from attractor.papers.case import Case

_ROUNDING = 1e-9
"""Multiple of the label margin below which its loss counts as none."""
_SAMPLES = 100
"""Mixtures looked at away from the selection; near it the constant is exact."""


def label_solution(case: Case) -> Solution:
    """The head of largest label margin for the selected tokens of a case."""
    return case.once(
        ("label solution", case.selection.mask.tobytes()),
        lambda: solve(label_problem(case.tokens, case.selection)),
    )


def supports(case: Case) -> np.ndarray:
    """Rows that stand at the label margin, ``(n, K)``."""
    return label_support(label_solution(case))


def _separable(case: Case) -> Check:
    labels = case.tokens.labels
    several = int((case.selection.mask.sum(-1) != 1).sum())
    if several:
        return Check(False, f"{several} rows keep several tokens")
    if labels is None or not (np.abs(labels) == 1).all():
        return Check(False, "some labels are not -1 or +1")
    solution = label_solution(case)
    if np.isfinite(solution.value):
        return Check(True, f"the label margin is {1 / float(solution.value):.6g}")
    return Check(False, f"the label problem is {solution.status}")


LABELS_SEPARABLE = Assumption(
    "labels separable",
    "Some head tells the labels apart by the selected tokens alone.",
    _separable,
)


def _all_support(case: Case) -> Check:
    separable = _separable(case)
    if not separable.met:
        return separable
    rows = supports(case)
    return Check(bool(rows.all()), f"{int(rows.sum())} of {rows.size} labels stand at the margin")


ALL_LABELS_SUPPORT = Assumption(
    "all labels support", "Every label stands at the margin of the label problem.", _all_support
)


def _some_label_beyond(case: Case) -> Check:
    separable, every = _separable(case), _all_support(case)
    return Check(separable.met and not every.met, every.found)


SOME_LABEL_BEYOND = Assumption(
    "some label beyond the margin",
    "Not every label stands at the margin of the label problem.",
    _some_label_beyond,
)


def pure_selection(rows: Literal["all", "support"]) -> Assumption:
    """The label margin falls at least in proportion to what attention gives to other tokens.

    Args:
        rows: Whose attention counts: that of all rows, or of those at the label margin.
    """

    def check(case: Case) -> Check:
        found = case.once(
            ("label margin constant", rows, case.selection.mask.tobytes()),
            lambda: label_margin_constant(case.tokens, case.selection, rows=rows, samples=_SAMPLES),
        )
        met = found.value > _ROUNDING * found.margin
        return Check(met, f"the label margin falls by {found.value:.3g} times what leaks, or more")

    which = "" if rows == "all" else ", in rows at the margin"
    return Assumption(
        "pure selection is best",
        f"The label margin falls in proportion to the attention on other tokens{which}.",
        check,
    )
