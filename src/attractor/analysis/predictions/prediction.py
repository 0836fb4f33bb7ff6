"""The margin problem that theory predicts for what was trained, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis.measures import required_margins
from attractor.analysis.predictions.label_direction import LabelDirection, label_direction
from attractor.analysis.predictions.trained import Trained
from attractor.geometry import Geometry
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.problem import derived
from attractor.margin.selection import Selection
from attractor.margin.variants.rate_ratio import critical_ratio
from attractor.margin.variants.relaxed import at_rows, relaxed
from attractor.tokens import Tokens

PLAIN = "margin problem"
RELAXED = "relaxed margin problem"
CLASSES = "margin problem of tie classes"
STAND_IN = "margin problem, as a stand-in"
NONE = "none"
GIVEN = "the one given"
"""Kinds of problems. For want of a prediction a stand-in is compared with, or none."""

_BORDER = 0.99
"""Share of the critical ratio from which the head counts as keeping up."""


@dataclass(frozen=True)
class Prediction:
    """The direction predicted for each selection, and what it follows from.

    Attributes:
        solution: Solutions of the problems predicted, with an axis of selections.
        kind: ``"margin problem"``, ``"relaxed margin problem"``, ``"margin problem of tie
            classes"``, ``"margin problem, as a stand-in"`` where no statement covers what was
            trained, or ``"none"`` where no direction is predicted.
        why: What the choice follows from; where nothing is predicted, what to do next.
        label: Where a linear head is trained: the direction predicted for it.
        critical_ratio: How much faster than ``W`` the head must at least grow for a relaxed
            problem to be the limit; zero for the other kinds.
    """

    solution: Solution
    kind: list[str]
    why: list[str]
    label: LabelDirection | None
    critical_ratio: Float[np.ndarray, "selection"]


def predicted_problem(
    tokens: Tokens,
    selection: Selection,
    trained: Trained,
    geometry: Geometry,
    *,
    progress: bool = False,
) -> Prediction:
    """The margin problem whose solution theory predicts for attention that keeps a selection.

    With the head fixed it is the margin problem of the selected tokens (*Transformers as Support
    Vector Machines*, Att-SVM; with several queries or a causal mask, of all rows together).
    Tokens of the same score exert no force on each other, so that constraints between them are
    left out where they would matter. With a linear head trained on a loss with an exponential
    tail, rows beyond its label margin relax the problem (*Max-Margin Token Selection in Attention
    Mechanism*, joint regularization path); label support is decided from the solution of the label
    problem and its certificate. Tokens that attention cannot distinguish are kept equal.

    Args:
        tokens: One data set for each selection.
        selection: Tokens to keep, with an axis of selections.
        trained: What was trained on these data sets.
        geometry: The norm that training descends.
        progress: Whether to show a progress bar.
    """
    problem = MarginProblem.from_selection(tokens, selection, ties="equal")
    count = len(problem)
    label, kind, why = None, [PLAIN] * count, [_FIXED] * count
    if trained.no_statement:
        kind, why = [STAND_IN] * count, [trained.no_statement] * count
    elif trained.head_trained:
        label = label_direction(tokens, selection, geometry)
        # Without a head that separates the labels, the plain problem stands in.
        supports = label.at_margin | ~label.separable[:, None, None]
        if not (supports | _without_choice(tokens)).all():
            problem = relaxed(problem, supports)
        kind, why = _joint_kinds(problem, label, tokens)
    solution = solve(problem, geometry, progress=progress)
    if trained.scores is not None:
        between = _between_equals(problem, trained.of_equal_score(selection))
        needed = (solution.support & between).any(-1) | (
            between.any(-1) & ~np.isfinite(solution.value)
        )
        solution, relieved = _without(solution, between & needed[:, None])
        for i in relieved:
            kind[i], why[i] = CLASSES, _TIED
    requires = requires_margin(solution.problem)
    for i in np.flatnonzero(~requires):
        if kind[i] in (PLAIN, CLASSES):
            kind[i], why[i] = NONE, _ALL_ALIKE
    return Prediction(solution, kind, why, label, _critical_ratios(problem, solution, label, kind))


def _joint_kinds(
    problem: MarginProblem, label: LabelDirection, tokens: Tokens
) -> tuple[list[str], list[str]]:
    """Kind of problem and reason, for each selection of a trained head."""
    requires = requires_margin(problem)
    rows = label.counted.sum((-1, -2))
    beyond = (label.counted & ~label.at_margin & ~_without_choice(tokens)).sum((-1, -2))
    unsettled = label.unsettled.sum((-1, -2))
    kinds, reasons = [], []
    for i in range(len(problem)):
        if not label.separable[i]:
            kinds.append(STAND_IN)
            reasons.append(_INSEPARABLE)
            continue
        kind = RELAXED if beyond[i] else PLAIN
        reason = _BEYOND.format(beyond=beyond[i], rows=rows[i]) if beyond[i] else _ALL_AT_MARGIN
        if not requires[i]:
            kind, reason = NONE, _NO_ROW_AT_MARGIN if beyond[i] else _ALL_ALIKE
        if unsettled[i]:
            reason += _UNSETTLED.format(rows=unsettled[i])
        kinds.append(kind)
        reasons.append(reason)
    return kinds, reasons


def _critical_ratios(
    problem: MarginProblem, solution: Solution, label: LabelDirection | None, kind: list[str]
) -> Float[np.ndarray, "selection"]:
    found = np.zeros(len(problem))
    chosen = np.flatnonzero([one == RELAXED for one in kind] & np.isfinite(solution.value))
    if label is not None and chosen.size:
        excess = at_rows(np.where(label.at_margin, 0.0, label.excess), problem)
        excess = np.where(problem.equality, 0.0, excess)
        found[chosen] = critical_ratio(solution[chosen], excess[chosen])
    return found


def requires_margin(problem: MarginProblem) -> Bool[np.ndarray, "*selection"]:
    """Whether some constraint requires a margin; otherwise the zero matrix is the solution."""
    return np.asarray((problem.present & required_margins(problem)).any(-1))


def _without_choice(tokens: Tokens) -> Bool[np.ndarray, "selection sequence query"]:
    return tokens.mask.sum(-1) < 2


def _between_equals(
    problem: MarginProblem, equals: Bool[np.ndarray, "selection sequence query token"]
) -> Bool[np.ndarray, "selection constraint"]:
    """Inequalities against tokens of the same score as the selected one."""
    assert problem.sequence is not None and problem.query is not None and problem.token is not None
    own = np.arange(len(problem))[:, None]
    against = equals[own, problem.sequence, problem.query, problem.token]
    return problem.present & ~problem.equality & against


def _without(
    solution: Solution, left_out: Bool[np.ndarray, "selection constraint"]
) -> tuple[Solution, Int[np.ndarray, "relieved"]]:
    """The solution without some constraints, where there is one, and where that is."""
    places = np.flatnonzero(left_out.any(-1))
    if not places.size:
        return solution, places
    present = solution.problem.present & ~left_out
    fewer = derived(solution.problem[places], present=present[places])
    found = solve(fewer, solution.geometry)
    solved = np.flatnonzero(np.isfinite(found.value))
    places, found = places[solved], found[solved]
    W, multipliers, status = (
        array.copy() for array in (solution.W, solution.multipliers, solution.status)
    )
    W[places], multipliers[places], status[places] = found.W, found.multipliers, found.status
    kept = solution.problem.present.copy()
    kept[places] = present[places]
    merged = Solution(
        W,
        multipliers,
        status,
        derived(solution.problem, present=kept),
        solution.geometry,
        solution.certificate.replaced(places, found.certificate),
    )
    return merged, places


def counted_reasons(reasons: Iterable[str]) -> str:
    """Reasons of all trials as one text, with their number where they differ."""
    counts = Counter(reasons)
    trials = sum(counts.values())
    if len(counts) == 1:
        return next(iter(counts))
    return " ".join(f"In {count} of {trials} trials: {why}" for why, count in counts.items())


def head_lags(
    head_ratio: Float[np.ndarray, "..."], critical: Float[np.ndarray, "..."]
) -> Bool[np.ndarray, "..."]:
    """Whether the head is too short beside ``W`` for the relaxed problem to be the limit."""
    return np.asarray(head_ratio < _BORDER * critical)


_FIXED = "The head is fixed: the tokens that attention keeps are to be ahead of all others."
_TIED = (
    "The head is fixed, and tokens of the same score exert no force on each other: the tokens that "
    "attention keeps are to be ahead of those of other scores."
)
_ALL_ALIKE = (
    "No row keeps some tokens and not others, so that no direction is predicted. Train for longer, "
    "from another start, or with a head that tells tokens apart."
)
_ALL_AT_MARGIN = (
    "The head is trained, and every label is at its margin for the tokens that attention keeps."
)
_BEYOND = (
    "The head is trained, and {beyond} of {rows} labels lie beyond its margin for the tokens that "
    "attention keeps: these rows need a margin of zero only."
)
_INSEPARABLE = (
    "The head is trained, but no head tells the labels apart by the tokens that attention keeps, "
    "for which nothing is predicted. Train for longer or from another start, or give the selection "
    "that is meant."
)
_NO_ROW_AT_MARGIN = (
    "The head is trained, and no row at its label margin has a second token: no direction of W is "
    "predicted. Compare the run with rate_ratio_direction, at the ratio of the norms reached."
)
_UNSETTLED = (
    " {rows} rows, counted as at the margin, are so near to it that the certificate leaves it "
    "open: to decide otherwise, give solve(relaxed_problem(tokens, selection, supports))."
)
