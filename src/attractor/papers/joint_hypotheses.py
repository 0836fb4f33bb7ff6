"""The hypotheses of statements about a head trained beside the attention layer."""

from __future__ import annotations

import numpy as np

from attractor.analysis import label_margin_constant
from attractor.files.case import Case
from attractor.margin import Solution, label_problem, label_support, solve
from attractor.papers.breakers import better_mixture, labeled
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.max_margin.data import joint_training

_ROUNDING = 1e-9
"""Multiple of the label margin below which its loss counts as none."""
_SAMPLES = 100
"""Mixtures sampled away from the selection; near it the constant is exact."""
_IMPROVABLE = 200
"""Tokens up to which sampled mixtures are improved; the time grows like their number cubed."""


@once
def label_solution(case: Case) -> Solution:
    """The head of largest label margin for the selected tokens of a case."""
    return solve(label_problem(case.tokens, case.selection))


def supports(case: Case) -> np.ndarray:
    """Rows that lie at the label margin, ``(n, K)``."""
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
    "Some head separates the labels by the selected tokens alone.",
    _separable,
    lambda: labeled([[1, 0], [0, 1], [-1, 0]], [[1, 0], [0, 1], [-1, 0]]),
)


def _all_support(case: Case) -> Check:
    separable = _separable(case)
    if not separable.met:
        return separable
    rows = supports(case)
    return Check(bool(rows.all()), f"{int(rows.sum())} of {rows.size} labels stand at the margin")


ALL_LABELS_SUPPORT = Assumption(
    "all labels support",
    "Every label stands at the margin of the label problem.",
    _all_support,
    lambda: labeled([[1, 0], [0, 1], [-1, 0]], [[-3, 0.5], [0, 1], [1, 0]]),
)


def _some_label_beyond(case: Case) -> Check:
    separable, every = _separable(case), _all_support(case)
    return Check(separable.met and not every.met, every.found)


SOME_LABEL_BEYOND = Assumption(
    "some label beyond the margin",
    "Not every label stands at the margin of the label problem.",
    _some_label_beyond,
    lambda: joint_training(all_labels_support=True),
)


def _pure_selection(case: Case, rows: str) -> Check:
    """Checks the label margin's fall by the attention of all rows, or of those at the margin."""
    separable = _separable(case)
    if not separable.met:
        return separable
    counted = supports(case) if rows == "support" else np.ones_like(case.tokens.mask[..., 0])
    if not (counted & (case.tokens.mask.sum(-1) > 1)).any():
        return Check(True, "no row that counts has a second token")
    improved = 3 if case.tokens.mask.sum() <= _IMPROVABLE else 0
    found = case.once(
        ("label margin constant", rows, case.selection.mask.tobytes()),
        lambda: label_margin_constant(
            case.tokens, case.selection, rows=rows, samples=_SAMPLES, improved=improved
        ),
    )
    return Check(
        found.value > _ROUNDING * found.margin,
        f"of what leaks, the label margin loses {found.limit:.3g} times as much near the "
        f"selection, at least {found.elsewhere:.3g} in mixtures sampled elsewhere",
    )


PURE_SELECTION = Assumption[Case](
    "pure selection is best",
    "The label margin falls in proportion to the attention on other tokens.",
    lambda case: _pure_selection(case, "all"),
    lambda: better_mixture(all_labels_support=True),
)
PURE_SELECTION_AT_MARGIN = Assumption[Case](
    "pure selection is best at the margin",
    "The label margin falls in proportion to the attention on other tokens, in rows at the margin.",
    lambda case: _pure_selection(case, "support"),
    lambda: better_mixture(all_labels_support=False),
)
