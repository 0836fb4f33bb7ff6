"""Hypotheses of the papers on token data, with data that break each."""

from __future__ import annotations

from typing import Literal

import numpy as np

from attractor.analysis import label_margin_constant
from attractor.analysis.losses.first_gradient import first_gradient_margin
from attractor.attention import LinearHead, get_parameterization
from attractor.files.case import Case
from attractor.geometry import Frobenius, Geometry
from attractor.margin import Solution, check_local_optimality, label_problem, label_support, solve
from attractor.margin.selection import Selection
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.max_margin.data import joint_training, one_sequence, three_sequences
from attractor.papers.transformers_as_svms.data import random_unit_tokens, tied_scores
from attractor.tokens import Tokens
from attractor.training import get_optimizer


def selected(*index: int) -> Case:
    """Random unit tokens with one token of each sequence selected."""
    case = random_unit_tokens(0)
    return case.replace(chosen=Selection.from_index(case.tokens, index))


def several_selected() -> Case:
    """Random unit tokens with the first two of each sequence selected."""
    case = random_unit_tokens(0)
    mask = np.zeros(case.tokens.mask.shape, dtype=bool)
    mask[..., :2] = True
    return case.replace(chosen=Selection(mask, np.zeros(mask.shape[:-1], dtype=bool)))


def equal_scores() -> Case:
    """One sequence of tokens of one score, the first of them selected."""
    tokens = [[[1.0, 0], [0, 1], [0, 0]]]
    first = Selection(np.array([[[True, False, False]]]), np.zeros((1, 1), dtype=bool))
    return Case.from_scores(tokens, [[1.0, 1, 1]], chosen=first)


def labeled(*keys: list[list[float]]) -> Case:
    """Two sequences of tokens in the plane, labels 1 and -1, the first tokens selected."""
    tokens = Tokens(np.array(keys, float), np.eye(2), np.array([1.0, -1.0]))
    chosen = Selection.from_index(tokens, [0, 0])
    return Case(tokens, LinearHead(np.zeros(2)), "v, W", chosen=chosen)


def better_mixture(*, all_labels_support: bool) -> Case:
    """Joint training with a token beside the first selected one that the label margin gains from.

    Args:
        all_labels_support: Whether all labels lie at the margin.
    """
    case = joint_training(all_labels_support=all_labels_support)
    keys = case.tokens.keys.copy()
    keys[0, 0] = 0.0, 2.0
    tokens = Tokens(keys, case.tokens.queries, case.tokens.labels)
    return case.replace(tokens=tokens, chosen=Selection.from_index(tokens, [1, 1, 1]))


_ROUNDING = 1e-9
"""Relative difference up to which two scores, or a margin and 1, count as equal."""
_ON_SCORES = ("W", "p")
"""Parameterizations whose gradient at zero moves scores; that of keys and queries vanishes."""


def trains(*names: str) -> Assumption:
    """The statement speaks of certain parameterizations only."""
    words = " or ".join(names)

    def check(case: Case) -> Check:
        found = get_parameterization(case.parameterization).name
        return Check(found in names, f"what is trained is {found}")

    def breaker() -> Case:
        other = next(name for name in ("KQ", "p", "v, p") if name not in names)
        return three_sequences().replace(parameterization=other)

    return Assumption("parameterization", f"What is trained is {words}.", check, breaker)


def trained_by(*names: str) -> Assumption:
    """The statement speaks of certain optimizers only; data that name none are trained by them."""
    words = " or ".join(names)

    def check(case: Case) -> Check:
        if case.optimizer is None:
            return Check(True, "the data do not say how to train")
        found = get_optimizer(case.optimizer).name
        return Check(found in names, f"the optimizer is {found}")

    return Assumption(
        "optimizer",
        f"Training is by {words}.",
        check,
        lambda: one_sequence(equal_scores=True).replace(optimizer="adam:learning_rate=0.1"),
    )


GRADIENT_DESCENT = trained_by("gradient descent", "normalized gradient descent")
NORMALIZED_STEPS = trained_by("normalized gradient descent")


def _unique_optimum(case: Case) -> Check:
    rows = case.tokens.mask.sum(-1) > 1
    tied = int((case.optimal.mask.sum(-1) > 1)[rows].sum())
    if tied:
        return Check(False, f"{tied} of {int(rows.sum())} rows have several best tokens")
    return Check(True, "every row has one best token")


UNIQUE_OPTIMUM = Assumption(
    "unique optimum", "In every row one token has the highest score.", _unique_optimum, tied_scores
)


SEVERAL_OPTIMAL_TOKENS = UNIQUE_OPTIMUM.negated(
    "several optimal tokens",
    "In some row several tokens share the highest score.",
    three_sequences,
)


def _scores_differ(case: Case) -> Check:
    highest = np.where(case.tokens.mask, case.scores, -np.inf).max(-1)
    spread = float((highest - np.where(case.tokens.mask, case.scores, np.inf).min(-1)).max())
    scale = np.abs(case.scores[case.tokens.mask]).max()
    return Check(spread > _ROUNDING * scale, f"scores of a row differ by up to {spread:.3g}")


SCORES_DIFFER = Assumption(
    "scores differ", "In some row not all tokens have the same score.", _scores_differ, equal_scores
)


def feasible(
    geometry: Geometry = Frobenius(),  # noqa: B008 - immutable
    of: Literal["selection", "optimum"] = "selection",
) -> Assumption:
    """The margin problem of the selection has a solution; that does not depend on the norm.

    Args:
        geometry: The norm that the claim solves in.
        of: The selection of the case, or its best tokens whatever it selects.
    """

    def check(case: Case) -> Check:
        solution = case.solution(geometry, case.optimal if of == "optimum" else None)
        if solution.value == 0:
            return Check(False, "there is no token beside those selected")
        if np.isfinite(solution.value):
            return Check(True, f"the least norm is {float(solution.value):.6g}")
        return Check(False, f"the margin problem is {solution.status}")

    which = "best" if of == "optimum" else "selected"
    return Assumption(
        "feasible",
        f"The margin problem of the {which} tokens has a solution.",
        check,
        lambda: random_unit_tokens(0, (3, 4, 2)),
    )


FEASIBLE = feasible()
OPTIMUM_FEASIBLE = feasible(of="optimum")


def _several_rows(case: Case) -> Check:
    rows = int((case.tokens.mask.sum(-1) > 1).sum())
    return Check(rows > 1, f"{rows} {'row has' if rows == 1 else 'rows have'} a choice of tokens")


SEVERAL_ROWS = Assumption(
    "several rows",
    "Two or more rows choose between tokens.",
    _several_rows,
    lambda: one_sequence(equal_scores=True),
)


ONE_ROW = SEVERAL_ROWS.negated("one row", "One row alone chooses between tokens.", three_sequences)


def _equal_other_scores(case: Case) -> Check:
    others = case.tokens.mask & ~case.optimal.mask
    scores = np.where(others, case.scores, np.nan)
    with np.errstate(all="ignore"):
        finite = others.any(-1)
        spread = np.nanmax(scores[finite], axis=-1) - np.nanmin(scores[finite], axis=-1)
    scale = np.abs(case.scores[case.tokens.mask]).max()
    worst = float(spread.max(initial=0.0))
    return Check(worst <= _ROUNDING * scale, f"scores of other tokens differ by up to {worst:.3g}")


EQUAL_OTHER_SCORES = Assumption(
    "equal other scores",
    "In every row all tokens but the best have the same score.",
    _equal_other_scores,
    lambda: one_sequence(equal_scores=False),
)


def _all_support(case: Case) -> Check:
    solution = case.solution(selection=case.optimal)
    if not np.isfinite(solution.value):
        return Check(False, "the margin problem of the best tokens has no solution")
    others = case.tokens.mask & ~case.optimal.mask
    missing = int((others & ~solution.support_tokens).sum())
    return Check(
        missing == 0, f"{missing} of {int(others.sum())} other tokens are not support tokens"
    )


ALL_TOKENS_SUPPORT = Assumption(
    "all tokens support",
    "Every token but the best stands at the margin of the best tokens' solution.",
    _all_support,
)


def _equal_or_support(case: Case) -> Check:
    equal, support = _equal_other_scores(case), _all_support(case)
    return Check(equal.met or support.met, f"{equal.found}; {support.found}")


EQUAL_SCORES_OR_ALL_SUPPORT = Assumption(
    "equal scores or all support",
    "All tokens but the best have equal scores in every row, or all are support tokens.",
    _equal_or_support,
    lambda: random_unit_tokens(0),
)


def locally_optimal(geometry: Geometry = Frobenius()) -> Assumption:  # noqa: B008 - immutable
    """Every support token of the selection has a lower score than the selected token."""

    def check(case: Case) -> Check:
        found = check_local_optimality(
            case.tokens, case.head, case.selection, case.solution(geometry)
        )
        if bool(found.holds):
            return Check(True, f"smallest advantage {float(found.worst_advantage):.3g}")
        if not np.isfinite(case.solution(geometry).value):
            return Check(False, "the margin problem of the selection has no solution")
        return Check(False, f"a support token scores higher by {-float(found.worst_advantage):.3g}")

    return Assumption(
        "locally optimal",
        "The selection is feasible, and its support tokens have lower scores than its own.",
        check,
        lambda: selected(0, 0, 0),
    )


LOCALLY_OPTIMAL = locally_optimal()


def _one_token_a_row(case: Case) -> Check:
    several = int((case.selection.mask.sum(-1) > 1).sum())
    return Check(several == 0, f"{several} rows keep several tokens")


ONE_TOKEN_A_ROW = Assumption(
    "one token a row",
    "The selection keeps one token of every row.",
    _one_token_a_row,
    several_selected,
)


def first_step_ratio(case: Case) -> float:
    """The smallest margin of the first step from zero, in units of the best one."""
    found = first_gradient_margin(
        case.tokens, case.head, selection=case.optimal, parameterization=case.parameterization
    )
    return float(found.relative) * float(case.solution(selection=case.optimal).value)


def _good(case: Case) -> Check:
    if case.parameterization not in _ON_SCORES:
        return Check(False, f"it is one on W or p, and what is trained is {case.parameterization}")
    labels = case.tokens.labels
    if labels is None or not (np.abs(labels) == 1).all():
        return Check(False, "some labels are not -1 or +1")
    if not np.isfinite(case.solution(selection=case.optimal).value):
        return Check(False, "the margin problem of the best tokens has no solution")
    ratio = first_step_ratio(case)
    if np.isnan(ratio):
        return Check(False, "the gradient at zero vanishes")
    return Check(ratio > 0, f"the smallest margin of the first step is {ratio:.3g} of the best one")


GOOD_FIRST_GRADIENT = Assumption(
    "good first gradient",
    "The first step from zero puts the best token of every row ahead.",
    _good,
    lambda: random_unit_tokens(1),
)


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


def _all_labels_support(case: Case) -> Check:
    separable = _separable(case)
    if not separable.met:
        return separable
    rows = supports(case)
    return Check(bool(rows.all()), f"{int(rows.sum())} of {rows.size} labels stand at the margin")


ALL_LABELS_SUPPORT = Assumption(
    "all labels support",
    "Every label stands at the margin of the label problem.",
    _all_labels_support,
    lambda: labeled([[1, 0], [0, 1], [-1, 0]], [[-3, 0.5], [0, 1], [1, 0]]),
)


def _some_label_beyond(case: Case) -> Check:
    separable, every = _separable(case), _all_labels_support(case)
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


HYPOTHESES = (
    UNIQUE_OPTIMUM,
    FEASIBLE,
    EQUAL_OTHER_SCORES,
    ALL_TOKENS_SUPPORT,
    LOCALLY_OPTIMAL,
    GOOD_FIRST_GRADIENT,
    LABELS_SEPARABLE,
    ALL_LABELS_SUPPORT,
    PURE_SELECTION,
    PURE_SELECTION_AT_MARGIN,
)
"""The hypotheses that are reported of a user's data."""
