"""Mirror descent on a case: which exponent, from where, and what is measured along the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.analysis import directional_bregman_divergence
from attractor.files.case import Case
from attractor.geometry import Frobenius, Lp
from attractor.margin import Solution, check_local_optimality
from attractor.margin.selection import Selection
from attractor.papers.ledger.claim import once
from attractor.papers.measurements.directions import step_length
from attractor.papers.measurements.mirror_steps import divergences
from attractor.training import Trajectory, get_optimizer, mirror_descent, train

EXPONENT = 1.75
"""The exponent of cases that do not name one."""
STARTS = 16
"""Number of starts, for cases that have none."""
_FAR_OUT = 20.0
"""Norm of starts, in norms of the solution: attention elsewhere is at most exp(-10)."""
_WIDTH = 0.15
"""Noise that starts add to the solution's direction, relative to its largest entry."""
_REACH = 200.0
"""Norm at which training ends, in norms of the solution; in dual norms for p < 2."""
_SHORTEST, _LONGEST = 500, 100_000
_ORDINARY = 5.0
_ROUNDING = 1e-9
_BISECTIONS = 40
NARROWEST = 0.05
"""The least lead over the margin of a token of higher score; starts would be too far out."""


Begin = Callable[[Case, int], Float[np.ndarray, "instance start d e"]]
"""Gives initial matrices of a case and a seed."""


class Steps(NamedTuple):
    """The steps of mirror descent.

    Attributes:
        p: The exponent.
        learning_rate: The learning rate.
    """

    p: float
    learning_rate: float

    @property
    def geometry(self) -> Lp:
        """The norm descended in."""
        return Lp(self.p)


def steps_of(case: Case) -> Steps | None:
    """Exponent and learning rate of a case; None where its optimizer is not mirror descent.

    Gradient descent is, with p = 2. Where a case names no optimizer the learning rate is the
    published 0.1, in the units of its keys.
    """
    if case.optimizer is None:
        return Steps(EXPONENT, 0.1 * (step_length(case) / 0.1) ** (EXPONENT - 1))
    found = get_optimizer(case.optimizer)
    if "gradient descent" in found.name and found.geometry == Frobenius():
        return Steps(2.0, found.settings["learning_rate"])
    if found.name != "mirror descent" or found.geometry is None:
        return None
    return Steps(found.settings["p"], found.settings["learning_rate"])


def steps_known(case: Case) -> Steps:
    """Exponent and learning rate of a case whose optimizer is mirror descent."""
    steps = steps_of(case)
    assert steps is not None
    return steps


def own_solution(case: Case) -> Solution:
    """The solution for the selected tokens in the norm descended in."""
    return case.solution(steps_known(case).geometry)


class Cone(NamedTuple):
    """A cone around the direction of a solution, where every token but the selected one is behind.

    Attributes:
        lead: The least lead required of a selected token, at the norm of the solution.
        slack: Lead beyond the margin over tokens of higher score; infinite without such.
        norm: The least norm.
    """

    lead: float
    slack: float
    norm: float


def cone_of(case: Case) -> Cone:
    """A cone to start in.

    Tokens of higher score are not support tokens of a locally optimal selection. Starts are so
    far out that these have lost all attention to the support tokens.
    """
    solution = own_solution(case)
    _, higher = _leads(case, solution.W)
    slack = max(higher - 1, 0.0)
    further = max(1.0, 1 / slack) if slack >= NARROWEST else 1.0
    norm = _FAR_OUT * further * imbalance(case) * float(solution.value)
    return Cone(0.5, slack, norm)


def imbalance(case: Case) -> float:
    """Factor by which the norm has to grow further as rows pull unequally; 1 where they do not.

    What a token adds to the gradient is its attention times the slope of the loss times its
    score gap. Directions are settled once differences of attention exceed those of the rest.
    """
    own = np.where(case.selection.mask, case.scores, -np.inf).max(-1, keepdims=True)
    gap = np.where(case.tokens.mask, np.abs(own - case.scores), 0.0)
    counts = gap > 0
    pull = np.log(gap, where=counts, out=np.zeros_like(gap)) - np.logaddexp(0, own)
    if not counts.any():
        return 1.0
    spread = np.where(counts, pull, -np.inf).max() - np.where(counts, pull, np.inf).min()
    return max(1.0, float(spread) / _ORDINARY)


def in_cone(case: Case, W: Float[np.ndarray, "d e"]) -> bool:
    """Whether a matrix lies in the cone of a case."""
    cone, steps = cone_of(case), steps_known(case)
    norm = float(steps.geometry.norm(W))
    if not norm >= (1 - _ROUNDING) * cone.norm:
        return False
    least, higher = _leads(case, W * (float(own_solution(case).value) / norm))
    return least >= cone.lead and (higher == np.inf or higher - least >= cone.slack / 2 - _ROUNDING)


def starts(case: Case, seed: int) -> Float[np.ndarray, "instance start d e"]:
    """Initial matrices: that of the case, or random ones in its cone."""
    if case.initial is not None:
        return np.reshape(case.initial, (1, 1, *_shape(case))).astype(float)
    size = _WIDTH * np.abs(own_solution(case).W).max()
    noise = size * np.random.default_rng([seed, 23]).standard_normal((STARTS, *_shape(case)))
    return _around_solution(case, noise)


def starts_at(case: Case, seed: int, divergence: float) -> Float[np.ndarray, "instance start d e"]:
    """Initial matrices: that of the case, or random ones at a divergence from the solution.

    They are nearer where the cone of the case ends before that.
    """
    if case.initial is not None:
        return starts(case, seed)
    W, geometry = own_solution(case).W, steps_known(case).geometry
    noise = np.random.default_rng([seed, 29]).standard_normal((STARTS, *W.shape))
    noise *= np.abs(W).max()
    low, high = np.zeros((STARTS, 1, 1)), np.ones((STARTS, 1, 1))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        there = directional_bregman_divergence(W + middle * noise, W, geometry)
        beyond = there[:, None, None] > divergence
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return _around_solution(case, low * noise)


def _around_solution(
    case: Case, noise: Float[np.ndarray, "start d e"]
) -> Float[np.ndarray, "instance start d e"]:
    """The solution with noise on it, which is halved until that lies in the cone."""
    solution, cone, geometry = own_solution(case), cone_of(case), steps_known(case).geometry
    found = []
    for each in noise:
        W = cone.norm * _unit(solution.W + each, geometry)
        while not in_cone(case, W):
            each = each / 2
            W = cone.norm * _unit(solution.W + each, geometry)
        found.append(W)
    return np.stack(found)[None]


def normal_starts(case: Case, seed: int) -> Float[np.ndarray, "instance start d e"]:
    """Initial matrices of standard normal entries, in the units of the keys: anywhere."""
    random = np.random.default_rng([seed, 31])
    return step_length(case) / 0.1 * random.standard_normal((1, STARTS, *_shape(case)))


def length(case: Case) -> float:
    """Number of steps until the norm is 200 times that of the solution, or ten times the start.

    For p < 2 this is meant of dual norms, which grow by the learning rate a step.
    """
    if case.steps is not None:
        return case.steps
    steps, solution = steps_known(case), own_solution(case)
    power = steps.p - 1
    goal = (_REACH * imbalance(case)) ** max(power, 1.0) * float(solution.value) ** power
    start = 10 * cone_of(case).norm ** power
    return max(float(np.ceil(max(goal, start) / steps.learning_rate)), _SHORTEST)


@once
def run(case: Case, seed: int, begin: Begin = starts) -> Trajectory | None:
    """Trains a case by normalized mirror descent, by default from within its cone.

    Normalized steps follow the path of those of the statement, and further along it: their
    equivalent number is recorded. None where that would take too many steps.

    Args:
        case: The case.
        seed: Names the random starts.
        begin: Gives the initial matrices.
    """
    if length(case) > _LONGEST:
        return None
    steps, places = steps_known(case), begin(case, seed)
    return train(
        case.tokens,
        case.head,
        mirror_descent(steps.learning_rate, steps.p),
        steps=int(length(case)),
        initial=places,
        seeds=places.shape[1],
        seed=seed,
    )


def divergence_from(
    case: Case, trajectory: Trajectory, solution: Float[np.ndarray, "*start d e"]
) -> Float[np.ndarray, "start record"]:
    """Directional divergences from a solution along every run, in the potential descended in.

    Args:
        case: The case.
        trajectory: The runs.
        solution: One for all runs, or one for each.
    """
    W = trajectory.data["W"].transpose("instance", "seed", "step", ...).to_numpy()[0]
    every = np.broadcast_to(solution, (len(W), *solution.shape[-2:]))
    return divergences(W, every, steps_known(case).geometry)


def is_locally_optimal(case: Case, selection: Selection) -> bool:
    """Whether a selection is locally optimal in the norm descended in."""
    solution = case.solution(steps_known(case).geometry, selection)
    return bool(check_local_optimality(case.tokens, case.head, selection, solution).holds)


def _leads(case: Case, W: Float[np.ndarray, "d e"]) -> tuple[float, float]:
    """Least lead of the selected tokens over others, and over those of no lower score."""
    kept, others = case.selection.mask, case.tokens.mask & ~case.selection.mask
    scores = case.tokens.scores(W)
    lead = np.where(kept, scores, -np.inf).max(-1, keepdims=True) - scores
    own = np.where(kept, case.scores, -np.inf).max(-1, keepdims=True)
    no_lower = others & (case.scores >= own)
    least = np.where(others, lead, np.inf).min()
    return float(least), float(np.where(no_lower, lead, np.inf).min())


def _shape(case: Case) -> tuple[int, int]:
    return case.tokens.key_dimension, case.tokens.query_dimension


def _unit(W: Float[np.ndarray, "d e"], geometry: Lp) -> Float[np.ndarray, "d e"]:
    return W / geometry.norm(W)
