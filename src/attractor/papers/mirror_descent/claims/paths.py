"""Regularization paths in l_p balls, of attention alone and with its head."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.files.case import Case
from attractor.geometry import Lp
from attractor.margin import (
    Solution,
    label_problem,
    label_support,
    rate_ratio_direction,
    relaxed_problem,
    solve,
)
from attractor.margin.selection import Selection
from attractor.papers import joint_hypotheses
from attractor.papers.breakers import better_mixture, labeled
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import ONE_TOKEN_A_ROW, UNIQUE_OPTIMUM, feasible, trains
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.max_margin.data import joint_training
from attractor.papers.measurements.bregman import divergences
from attractor.papers.measurements.paths import RADII, path
from attractor.papers.mirror_descent.claims._examples import another_norm, with_exponent
from attractor.papers.mirror_descent.data import random_case, two_sequences
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import imbalance, steps_known
from attractor.results.paper import MIRROR_DESCENT as PAPER
from attractor.training import Trajectory

CLAIMS = Claims(PAPER, Case, "mirror-descent")


def _at_end(case: Case, seed: int, solution: np.ndarray) -> Measurement:
    own = steps_known(case).geometry
    best = case.replace(chosen=None)
    unit = imbalance(best) * float(case.solution(own, case.optimal).value)
    run = path(case, seed, own, unit=unit)
    along = divergences(run.data["W"].values[0], solution[None], own)[0]
    details = {
        "p": own.p,
        "radii": run.steps.tolist(),
        "divergence": along.tolist(),
        "optimality": float(run.data["optimality"].max()),
    }
    return Measurement(float(along[-1]), 1, details)


def _small(seed: int) -> Case:
    return random_case(seed, 2, 3, 2)


REGULARIZATION_PATH = CLAIMS.claim(
    "regularization-path",
    "the best W in the l_p ball of radius R tends to the max-margin direction in l_p",
    statement="regularization path in the l_p norm",
    assuming=(trains("W"), MIRROR_DESCENT, UNIQUE_OPTIMUM, feasible(of="optimum")),
    contrast=Comparison(
        "directional divergence from the solution in the norm of the ball, at the largest radius",
        _at_end,
        lambda case, seed: case.solution(steps_known(case).geometry, case.optimal).W,
        "directional divergence from the solution in another norm",
        lambda case, seed: case.solution(another_norm(case), case.optimal).W,
        bound=1e-6,
        reason="D falls like R^-2; at 10,000 norms of the solution the bound lets its constant "
        "be 100",
    ),
    data=lambda seed: [
        _small(3 * seed),
        with_exponent(_small(3 * seed + 1), 1.5),
        with_exponent(_small(3 * seed + 2), 3.0),
    ],
    note="the best tokens, whatever the data select; p is that of the data's optimizer",
)


_BEYOND = ((2, (0, 2, 1)), (29, (1, 2, 0)))
"""Seeds of random data and tokens that leave a label beyond the margin."""
_MOST = 100_000
"""Largest number of selections that are enumerated."""


def label_solution(case: Case, selection: Selection | None = None) -> Solution:
    """The head of largest label margin in the norm descended in.

    Args:
        case: The data.
        selection: The tokens; default: those selected.
    """
    geometry = steps_known(case).geometry
    chosen = case.selection if selection is None else selection
    return case.once(
        ("label solution", geometry.name, chosen.mask.tobytes()),
        lambda: solve(label_problem(case.tokens, chosen), geometry),
    )


def _separable(case: Case) -> Check:
    labels = case.tokens.labels
    if labels is None or not (np.abs(labels) == 1).all():
        return Check(False, "some labels are not -1 or +1")
    solution = label_solution(case)
    if np.isfinite(solution.value):
        return Check(True, f"the label margin is {1 / float(solution.value):.6g}")
    return Check(False, f"the label problem is {solution.status}")


LABELS_SEPARABLE = replace(joint_hypotheses.LABELS_SEPARABLE, check=_separable)


def _all_support(case: Case) -> Check:
    rows = label_support(label_solution(case))
    return Check(bool(rows.all()), f"{int(rows.sum())} of {rows.size} labels stand at the margin")


ALL_LABELS_SUPPORT = replace(
    joint_hypotheses.ALL_LABELS_SUPPORT,
    statement="Every label stands at the margin of the label problem in the own norm.",
    check=_all_support,
)


def _some_beyond(case: Case) -> Check:
    every = _all_support(case)
    return Check(not every.met, every.found)


SOME_LABEL_BEYOND = replace(
    joint_hypotheses.SOME_LABEL_BEYOND,
    statement="Not every label stands at the margin of the label problem in the own norm.",
    check=_some_beyond,
    breaker=lambda: _two_sequences([1, 0]),
)


def _attention_elsewhere_costs(case: Case) -> Check:
    """Checks it by the multipliers of the label problem, in rows whose labels are at the margin.

    With multipliers of sum 1, ``f(s) = ||sum_i lambda_i y_i X_i^T s_i||_q`` is no less than the
    label margin of attention s, convex in s, and that margin at the selection. So if f is at most
    ``(1 - nu) margin`` at every other selection, it is at most ``margin (1 - nu P)`` between,
    with P the probability that attention s, drawn row by row, gives another selection. Rows
    beyond the margin have no multiplier, and count in none of this.
    """
    tokens, solution = case.tokens, label_solution(case)
    assert tokens.labels is not None
    choices = [np.flatnonzero(allowed) for allowed in tokens.mask.reshape(-1, tokens.length)]
    count = float(np.prod([float(len(choice)) for choice in choices]))
    if count > _MOST:
        return Check(False, f"there are {count:.3g} selections, too many to look through")
    weights = solution.multipliers / solution.multipliers.sum()
    queries = tokens.mask.shape[-2]
    values = np.repeat(tokens.values, queries, axis=0)
    signed = (weights * tokens.labels.ravel())[:, None, None] * values
    selections = np.array(list(itertools.product(*choices)))
    sums = signed[np.arange(len(signed)), selections].sum(1)
    sizes = Lp(steps_known(case).geometry.q).norm(sums[..., None])
    selected = case.selection.mask.reshape(-1, tokens.length).argmax(-1)
    at_margin = label_support(solution).ravel()
    other = (selections != selected)[:, at_margin].any(-1)
    worst = float(np.max(sizes[other], initial=0.0) / sizes[~other][0])
    return Check(worst < 1 - 1e-9, f"other selections leave {worst:.4g} of the margin, or less")


ATTENTION_ELSEWHERE_COSTS = Assumption(
    "attention elsewhere costs",
    "Attention to other tokens lowers the label margin in proportion to it, as the multipliers "
    "of the label problem prove.",
    _attention_elsewhere_costs,
    lambda: _two_sequences([0, 0]),
)


_Directions = tuple[np.ndarray, np.ndarray]
"""Of attention and of the head."""


def _solutions(case: Case, of_attention: Lp) -> _Directions:
    return case.solution(of_attention).W, label_solution(case).W


def _path(case: Case, seed: int, unit: float, head_unit: float) -> Trajectory:
    """The path with both balls in proportion, each in a unit of its own."""
    own = steps_known(case).geometry
    return path(
        case, seed, own, unit=unit, head_radius=tuple(head_unit * radius for radius in RADII)
    )


def _in_norms_of_solutions(case: Case, seed: int) -> Trajectory:
    unit = float(case.solution(steps_known(case).geometry).value)
    return _path(case, seed, unit, float(label_solution(case).value))


def _head_ahead(case: Case, seed: int) -> Trajectory | None:
    """The path with a head twice as large beside attention as the relaxed direction asks for.

    None where no row at the label margin has a choice of tokens, and attention has no direction.
    """
    own, label = steps_known(case).geometry, label_solution(case)
    found = rate_ratio_direction(case.tokens, case.selection, 1.0, own, label=label)
    unit, critical = float(relaxed_solution(case).value), float(found.critical_ratio)
    if unit == 0:
        return None
    return _path(case, seed, unit, 2 * (critical if 0 < critical < np.inf else 1.0) * unit)


def _divergence(
    case: Case, run: Trajectory | None, directions: _Directions, radius: int
) -> Measurement:
    """The larger divergence at one of the radii."""
    if run is None:
        return Measurement(np.nan, 0)
    own = steps_known(case).geometry
    of_attention, of_head = directions
    W, v = (run.data[name].values[0] for name in ("W", "head_weight"))
    attention = divergences(W, of_attention[None], own)[0]
    head = divergences(v[..., None], of_head[None], own)[0]
    details = {
        "p": own.p,
        "radii": run.steps.tolist(),
        "divergence of attention": attention.tolist(),
        "divergence of the head": head.tolist(),
        "optimality": float(run.data["optimality"].max()),
    }
    return Measurement(float(max(attention[radius], head[radius])), 1, details)


def relaxed_solution(case: Case, selection: Selection | None = None) -> Solution:
    """That of attention where rows beyond the label margin ask for no margin.

    Args:
        case: The data.
        selection: The tokens; default: those selected.
    """
    chosen = case.selection if selection is None else selection
    rows = label_support(label_solution(case, chosen))
    geometry = steps_known(case).geometry
    return case.once(
        ("relaxed solution", geometry.name, chosen.mask.tobytes()),
        lambda: solve(relaxed_problem(case.tokens, chosen, rows), geometry),
    )


def _three_sequences(p: float) -> Case:
    """Three sequences in the plane, the third of which lies beyond the margin of the label."""
    case = joint_training(all_labels_support=False)
    return with_exponent(case.replace(parameterization="v, W"), p)


def _random_sequences(seed: int, chosen: tuple[int, ...], p: float) -> Case:
    """Three random sequences of three tokens in space."""
    tokens, _ = unit_tokens(3, 3, 3, seeds=[seed])
    selection = Selection.from_index(tokens[0], chosen)
    about = f"random data (3, 3, 3), seed {seed}"
    case = Case(tokens[0], LinearHead(np.zeros(3)), "v, W", chosen=selection, about=about)
    case = with_exponent(case, p)
    # The search for the path begins at the head of the data: from none it may miss the minimum.
    return case.replace(head=LinearHead(label_solution(case).W[:, 0]))


def _two_sequences(chosen: list[int]) -> Case:
    tokens = two_sequences()
    return Case(
        tokens,
        LinearHead(np.zeros(2)),
        "v, W",
        chosen=Selection.from_index(tokens, chosen),
        about="two sequences in the plane",
    )


_ASSUMPTIONS = (
    trains("v, W"),
    MIRROR_DESCENT.broken_by(
        lambda: _two_sequences([1, 0]).replace(optimizer="sign descent:learning_rate=0.1")
    ),
    ONE_TOKEN_A_ROW.broken_by(lambda: _two_sequences([1, 0]).replace(chosen=None)),
    feasible().broken_by(lambda: labeled([[0.5, 0], [1, 0], [0, 0]], [[-1, 0], [0, 1], [1, 0]])),
    LABELS_SEPARABLE,
)

JOINT_PATH = CLAIMS.claim(
    "joint-path",
    "head and attention, best in two l_p balls, tend to both max-margin directions",
    statement="joint regularization path in the l_p norm",
    assuming=(*_ASSUMPTIONS, ALL_LABELS_SUPPORT, ATTENTION_ELSEWHERE_COSTS),
    contrast=Comparison(
        "larger divergence, of attention and of the head, from both solutions in the own norm",
        lambda case, seed, named: _divergence(
            case, _in_norms_of_solutions(case, seed), named, RADII.index(10_000)
        ),
        lambda case, seed: _solutions(case, steps_known(case).geometry),
        "the same with the solution of attention in another norm",
        lambda case, seed: _solutions(case, another_norm(case)),
        bound=1e-6,
        reason="both fall like R^-2; at 10,000 norms of the solutions the bound lets c be 100",
    ),
    data=lambda seed: [_two_sequences([1, 0]), with_exponent(_two_sequences([0, 0]), 3.0)],
    note="the tokens are those that the data select: of all, those of the largest label margin",
)

RELAXED_JOINT_PATH = CLAIMS.claim(
    "relaxed-joint-path",
    "labels beyond the head's margin relax the l_p problem of attention to margins of zero",
    statement="joint regularization path in the l_p norm, with labels beyond the margin",
    assuming=(
        *_ASSUMPTIONS,
        SOME_LABEL_BEYOND,
        ATTENTION_ELSEWHERE_COSTS.broken_by(
            lambda: better_mixture(all_labels_support=False).replace(parameterization="v, W")
        ),
    ),
    contrast=Comparison(
        "larger divergence, of attention from the relaxed solution and of the head from its own",
        lambda case, seed, named: _divergence(
            case, _head_ahead(case, seed), named, RADII.index(1000)
        ),
        lambda case, seed: (relaxed_solution(case).W, label_solution(case).W),
        "the same with the max-margin solution, as if all labels were at the margin",
        lambda case, seed: _solutions(case, steps_known(case).geometry),
        bound=1e-5,
        reason="both fall like R^-2; at 1,000 norms of the solution the bound lets c be 4, where 2 "
        "is usual; further out rounding hides what is left to gain",
    ),
    data=lambda seed: [
        *(_three_sequences(p) for p in (1.75, 1.5, 3.0)),
        *(_random_sequences(*each, p) for p in (1.75, 3.0) for each in _BEYOND),
    ],
    note="derived, not quoted: the paper's statement asks that attention to any other token costs, "
    "so that all labels support the head; the head has twice the norm beside attention from which "
    "on the relaxed direction is the limit",
)
