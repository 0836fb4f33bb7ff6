"""Methods for smooth norms: Newton steps on the variables of the dual."""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Geometry, Lp, Schatten
from attractor.margin.batching.batches import Batch, solutions
from attractor.margin.batching.iterates import BestIterates
from attractor.margin.batching.reduction import reduce_to_spans
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.correction import meet_constraints
from attractor.margin.methods import Candidates, Task
from attractor.margin.smooth.norm_expansions import (
    EntrywiseExpansions,
    Expansion,
    SingularValueExpansions,
    kept_curvature,
)

_LEAST_CURVATURE = 1e-8

_Matrices = Float[np.ndarray, "k d e"]
_Vectors = Float[np.ndarray, "k m"]
_Exponents = Float[np.ndarray, "k 1 1"]
_Residuals = Float[np.ndarray, "k"]
_System = tuple[Float[np.ndarray, "k m m"], _Vectors]


@runtime_checkable
class Expansions(Protocol):
    """Expansions of norms of one kind, for the constraints of a batch."""

    def choose(self, index: Any) -> Expansions:
        """Chooses instances."""
        ...

    def at(self, Z: _Matrices, exponent: _Exponents) -> Expansion:
        """The expansion at Z of the norm with such an exponent."""
        ...


@dataclass(frozen=True)
class Evaluation(Batch):
    """The margins, the residual of stationarity and the expansion of the norm at an iterate.

    Attributes:
        W: The matrices.
        margins: ``a_j^T W b_j``.
        strain: ``M`` less the gradient of ``||W||^2 / 2``.
        exponent: Of the smooth norm.
        expansion: Of the smooth norm.
    """

    W: _Matrices
    margins: _Vectors
    strain: _Matrices
    exponent: _Exponents
    expansion: Expansion


@dataclass(frozen=True)
class Variables(Batch, abc.ABC):
    """The linear algebra of one choice of variables.

    Attributes:
        scaled: The constraints.
        expansions: Of the norm that is smooth.
    """

    scaled: ScaledConstraints
    expansions: Expansions

    @abc.abstractmethod
    def evaluate(self, multipliers: _Vectors, W: _Matrices, exponent: _Exponents) -> Evaluation:
        """Evaluates the margins and the expansion at an iterate."""

    @abc.abstractmethod
    def system(self, evaluation: Evaluation, residual: _Residuals) -> _System:
        """Change of the margins by a Newton step: a matrix times that of multipliers, plus more."""

    @abc.abstractmethod
    def step(self, evaluation: Evaluation, residual: _Residuals, change: _Vectors) -> _Matrices:
        """The step of W that goes with a change of the multipliers."""


@dataclass(frozen=True)
class MultipliersAlone(Variables):
    """For p < 2: W is the gradient of half the squared dual norm."""

    def evaluate(self, multipliers: _Vectors, W: _Matrices, exponent: _Exponents) -> Evaluation:
        """The W that the multipliers make, whatever W was."""
        expansion = self.expansions.at(self.scaled.combine(multipliers), exponent)
        W = expansion.gradient
        return Evaluation(W, self.scaled.margins(W), np.zeros_like(W), exponent, expansion)

    def system(self, evaluation: Evaluation, residual: _Residuals) -> _System:
        """The Hessian of ``||M||_q^2 / 2`` in the multipliers."""
        expansion = evaluation.expansion
        matrix = expansion.frame.gram(_curvature(evaluation, residual))
        normal = evaluation.margins / expansion.norm[:, 0]
        matrix -= (evaluation.exponent - 2) * normal[:, :, None] * normal[:, None]
        return matrix, np.zeros_like(normal)

    def step(self, evaluation: Evaluation, residual: _Residuals, change: _Vectors) -> _Matrices:
        """Zero: W follows from the multipliers."""
        return np.zeros_like(evaluation.W)


@dataclass(frozen=True)
class MatrixAndMultipliers(Variables):
    """For p > 2: W is varied too, by the inverse of the Hessian of half its squared norm."""

    def evaluate(self, multipliers: _Vectors, W: _Matrices, exponent: _Exponents) -> Evaluation:
        """Evaluates at W and the multipliers."""
        expansion = self.expansions.at(W, exponent)
        strain = self.scaled.combine(multipliers) - expansion.gradient
        return Evaluation(W, self.scaled.margins(W), strain, exponent, expansion)

    def system(self, evaluation: Evaluation, residual: _Residuals) -> _System:
        """The inverse Hessian of ``||W||_p^2 / 2`` between the constraints."""
        inverse, along, factor = _inverse(evaluation, residual)
        frame = evaluation.expansion.frame
        matrix = frame.gram(inverse)
        normal = self.scaled.margins(frame.leave(along))
        matrix += (factor[:, 0] * normal)[:, :, None] * normal[:, None]
        return matrix, self.scaled.margins(
            _solve_for_direction(evaluation, residual, evaluation.strain)
        )

    def step(self, evaluation: Evaluation, residual: _Residuals, change: _Vectors) -> _Matrices:
        """The step that takes the strain away, to first order."""
        return _solve_for_direction(
            evaluation, residual, self.scaled.combine(change) + evaluation.strain
        )


def _inverse(
    evaluation: Evaluation, residual: _Residuals
) -> tuple[np.ndarray, np.ndarray, _Exponents]:
    """D, u and f of the inverse Hessian ``diag(D) + f u u^T`` in the frame."""
    expansion, excess = evaluation.expansion, evaluation.exponent - 2
    inverse = 1 / _curvature(evaluation, residual)
    along = inverse * expansion.normal
    share = (along * expansion.normal).sum((-1, -2), keepdims=True)
    return inverse, along, excess / (1 - excess * share)


def _curvature(evaluation: Evaluation, residual: _Residuals) -> _Matrices:
    residual = residual[:, None, None]
    return kept_curvature(evaluation.expansion, evaluation.exponent, residual, _LEAST_CURVATURE)


def _solve_for_direction(evaluation: Evaluation, residual: _Residuals, G: _Matrices) -> _Matrices:
    """The inverse Hessian at a matrix."""
    inverse, along, factor = _inverse(evaluation, residual)
    frame = evaluation.expansion.frame
    inside = frame.enter(G)
    projection = (along * inside).sum((-1, -2), keepdims=True)
    return frame.leave(inverse * inside + factor * projection * along)


_BLOCK_ENTRIES = 2**20
"""Entries of the constraints, written out as matrices, of the instances iterated at a time."""
_LEAST_MULTIPLIER = 0.02
"""Least multiplier to start from, beside the largest."""
_LEAST_SCALE = 0.1
_MOST_REDUCTIONS = 20
_MOST_GROWTH = 1.3
"""Largest factor by which that may raise the dual norm."""
_FIRST_EXPONENTS = (4.0, 3.0)
"""Largest exponent to start from when the multipliers are varied alone, and W with them."""
_MOST_STEPS = 100
_MOST_HALVINGS = 12
_PATIENCE = 15
"""Steps in a row that may bring nothing before an instance is given up."""
_ROUNDING = 1e-14
"""Residuals that are rounding; what is added to the diagonal of systems, relatively."""
_MOST_RESIDUAL = 0.3
"""Residual, in units of the solution, above which it has to fall with every step."""
_DECREASE = 0.01
"""Least share of the decrease of a residual promised to first order."""
_CALM = 0.2
"""Residual, in units of the solution, below which exponents are raised."""
_LEAST_SHARE, _LEAST_SHARE_RAISING, _MOST_SHARE = 1e-4, 0.3, 0.8
"""Least and most of mu that a step leaves; the least also while exponents are raised."""
_NEGLIGIBLE = 0.01
"""Share of the tolerance that the slacks may make up in the end."""
_NEAR = 1e-8
"""Gap from which on iterates are compared."""


def solve_by_aggressive_newton(task: Task) -> Candidates:
    """Candidates for an ``Lp`` or ``Schatten`` geometry, started from the Frobenius solution."""
    return _solve_in_blocks(task, AGGRESSIVE)


def solve_by_conservative_newton(task: Task) -> Candidates:
    """The same in shorter steps."""
    return _solve_in_blocks(task, CONSERVATIVE)


def _solve_in_blocks(task: Task, settings: StepSettings) -> Candidates:
    geometry = task.geometry
    assert isinstance(geometry, (Lp, Schatten))
    W, multipliers = task.W.copy(), np.zeros_like(task.multipliers)
    known = task.warm_started
    entries = task.scaled.left.size * task.W.shape[-1] // max(len(task.W), 1)
    step = max(1, _BLOCK_ENTRIES // max(entries, 1))
    for first in range(0, known.size, step):
        block = known[first : first + step]
        part = task.choose(block)
        with np.errstate(all="ignore"):  # what fails is not finite, and given up
            W[block], multipliers[block] = _solve(part, geometry, settings)
    return W, multipliers


def _solve(task: Task, geometry: Lp | Schatten, settings: StepSettings) -> Candidates:
    """Candidates for a block of instances that all have a matrix to start from."""
    if not geometry.unitarily_invariant:
        return _solve_in_full(task, geometry, settings)
    W, multipliers = np.empty_like(task.W), np.empty_like(task.multipliers)
    for places, scaled, left, right in reduce_to_spans(task.scaled):
        part = task.choose(places)
        inner = np.swapaxes(left, -1, -2) @ part.W @ right
        found = _solve_in_full(replace(part, scaled=scaled, W=inner), geometry, settings)
        W[places] = left @ found[0] @ np.swapaxes(right, -1, -2)
        multipliers[places] = found[1]
    return W, multipliers


def _solve_in_full(task: Task, geometry: Lp | Schatten, settings: StepSettings) -> Candidates:
    scaled = task.scaled
    unit = geometry.norm(task.W)
    unit = np.where(unit > 0, unit, 1.0)
    present = scaled.nonzero
    scaled = replace(
        scaled,
        bounds=scaled.bounds / unit[:, None],
        inequality=scaled.inequality & present,
        equality=scaled.equality & present,
    )
    multipliers = _first_multipliers(scaled, task.multipliers, geometry)
    kind = SingularValueExpansions if isinstance(geometry, Schatten) else EntrywiseExpansions
    expansions = kind(scaled.left, scaled.right)
    alone = geometry.p < 2
    variables = (MultipliersAlone if alone else MatrixAndMultipliers)(scaled, expansions)
    last = geometry.q if alone else geometry.p
    first = min(last, _FIRST_EXPONENTS[0 if alone else 1])
    W = 1.1 * task.W / unit[:, None, None]
    best = iterate(
        scaled, variables, multipliers, W, (first, last), geometry, task.tolerance / 2, settings
    )
    return best.W * unit[:, None, None], best.multipliers


def _first_multipliers(
    scaled: ScaledConstraints, multipliers: Float[np.ndarray, "k m"], geometry: Geometry
) -> Float[np.ndarray, "k m"]:
    """The Frobenius multipliers at the scale that is best in the geometry, away from zero.

    Multipliers may nearly cancel one another: raising them must not raise what is left of them.
    """
    x = np.where(scaled.present, multipliers, 0.0)
    norm = geometry.dual_norm(scaled.combine(x))
    x = np.where((norm > 0)[:, None], x, scaled.inequality)
    norm = np.where(norm > 0, norm, 1.0)
    scale = np.maximum((scaled.bounds * x).sum(-1) / norm, _LEAST_SCALE)
    x, norm = x * (scale / norm)[:, None], scale
    least = _LEAST_MULTIPLIER * np.abs(x).max(-1, keepdims=True)
    raised = x
    for _ in range(_MOST_REDUCTIONS):
        raised = np.where(scaled.inequality, np.maximum(x, least), x)
        large = geometry.dual_norm(scaled.combine(raised)) > _MOST_GROWTH * norm
        if not large.any():
            break
        least = np.where(large[:, None], 0.25 * least, least)
    return raised


@dataclass(frozen=True)
class StepSettings:
    """Step lengths and safeguards of the predictor-corrector method.

    Attributes:
        slack: Least slack to start from, beside the largest bound.
        reach: Share of the way to where a slack or multiplier vanishes.
        proportion: Largest residual, relative to mu.
        lead: Least mu, relative to the residual.
        growth: Factor by which an exponent is raised after a step that went well.
        caution: Power of the predictor's length by which the correction is multiplied. Taken
            whole, it can make steps go in circles.
    """

    slack: float
    reach: float
    proportion: float
    lead: float
    growth: float
    caution: float


AGGRESSIVE = StepSettings(
    slack=0.05, reach=0.999, proportion=100.0, lead=1e-6, growth=1.5, caution=0.0
)
CONSERVATIVE = StepSettings(
    slack=0.3, reach=0.99, proportion=10.0, lead=1e-3, growth=1.2, caution=1.0
)


@dataclass(frozen=True)
class _State(Batch):
    """Iterates of the active instances, and their numbers in the batch."""

    places: Int[np.ndarray, "k"]
    scaled: ScaledConstraints
    variables: Variables
    multipliers: Float[np.ndarray, "k m"]
    slacks: Float[np.ndarray, "k m"]
    evaluation: Evaluation


def iterate(
    scaled: ScaledConstraints,
    variables: Variables,
    multipliers: Float[np.ndarray, "k m"],
    W: Float[np.ndarray, "k d e"],
    exponents: tuple[float, float],
    geometry: Geometry,
    tolerance: float,
    settings: StepSettings,
) -> BestIterates:
    """The best iterates on the way to the solution.

    Args:
        scaled: Constraints, in units in which W and the multipliers are about one.
        variables: The variables of Newton's method.
        multipliers: To start from; positive on inequalities.
        W: To start from where it is varied; its margins may be any.
        exponents: Of the smooth norm, first and last.
        geometry: The norm.
        tolerance: Relative duality gap at which to stop.
        settings: Step lengths and safeguards.
    """
    count, m = multipliers.shape
    best = BestIterates(count, W.shape[1:], m)
    first, last = exponents
    evaluation = variables.evaluate(multipliers, W, np.full((count, 1, 1), first))
    size = np.abs(scaled.bounds).max(-1, keepdims=True, initial=0.0)
    slacks = np.maximum(evaluation.margins - scaled.bounds, settings.slack * size)
    least_mu = _NEGLIGIBLE * tolerance / max(m, 1)
    state = _State(np.arange(count), scaled, variables, multipliers, slacks, evaluation)
    least, patience = np.full(count, np.inf), np.full(count, _PATIENCE)
    for _ in range(_MOST_STEPS):
        places, (gap, shortfall) = state.places, _gap_and_shortfall(state)
        there = state.evaluation.exponent[:, 0, 0] == last
        merit = gap + shortfall
        better = merit < least[places]
        least[places] = np.fmin(merit, least[places])
        patience[places] = np.where(better, _PATIENCE, patience[places] - 1)
        ended = (patience[places] == 0) | ~np.isfinite(merit)
        close = gap + np.minimum(shortfall, _NEAR) <= max(10 * tolerance, 2 * _NEAR)
        near = np.flatnonzero((there & close) | ended)
        if near.size:
            ended[near] |= _offer(best, state, near, geometry, tolerance) <= tolerance
        if ended.all():
            return best
        state = state.choose(~ended) if ended.any() else state
        exponent = state.evaluation.exponent
        state = _stepped(state, last, settings, least_mu)
        raised = (state.evaluation.exponent > exponent)[:, 0, 0]
        least[state.places[raised]], patience[state.places[raised]] = np.inf, _PATIENCE
    _offer(best, state, np.arange(len(state.places)), geometry, tolerance)
    return best


def _offer(
    best: BestIterates,
    state: _State,
    near: Int[np.ndarray, "n"],
    geometry: Geometry,
    tolerance: float,
) -> Float[np.ndarray, "n"]:
    """Compares iterates of some instances with the best so far; returns their gaps."""
    places, scaled = state.places[near], state.scaled.choose(near)
    W, x, s = state.evaluation.W[near], state.multipliers[near], state.slacks[near]
    gap = best.offer(places, scaled, meet_constraints(scaled, W), x, geometry)
    # Where multipliers nearly cancel, W inherits their rounding, and what it then falls short of
    # is cheaper to make up for by a correction than by scaling W.
    short = np.flatnonzero((gap > tolerance) & (_gap_and_shortfall(state)[0][near] <= tolerance))
    if short.size:
        scaled, x, s = scaled.choose(short), x[short], s[short]
        relative_x = x / np.abs(x).max(-1, keepdims=True)
        relative_s = s / np.abs(scaled.bounds).max(-1, keepdims=True)
        active = scaled.inequality & (relative_x > relative_s)
        W = meet_constraints(scaled, W[short], active)
        gap[short] = best.offer(places[short], scaled, W, x, geometry)
    return gap


def _stepped(state: _State, last: float, settings: StepSettings, least_mu: float) -> _State:
    """The state after one step; the exponent is raised where it went well."""
    scaled, evaluation, variables = state.scaled, state.evaluation, state.variables
    inequality, x, s = scaled.inequality, state.multipliers, state.slacks
    residual = _residual(scaled, evaluation, s)
    raising = evaluation.exponent[:, 0] < last
    least_share = np.where(raising, _LEAST_SHARE_RAISING, _LEAST_SHARE)
    dx, ds = _direction(state, residual, least_share, settings, least_mu)
    dW = variables.step(evaluation, residual, dx)

    length = np.minimum(_longest(inequality, x, dx), _longest(inequality, s, ds))
    length = np.minimum(settings.reach * length, 1.0)
    # Halved until the residual is in proportion to the new mu, or falls as promised to first order.
    rounding = _ROUNDING * (1 + evaluation.exponent[:, 0, 0] * np.abs(x).sum(-1))
    halvings = 0
    while True:
        next_x, next_s = x + length * dx, s + length * ds
        next_evaluation = variables.evaluate(
            next_x, evaluation.W + length[..., None] * dW, evaluation.exponent
        )
        next_residual = _residual(scaled, next_evaluation, next_s)
        allowed = settings.proportion * _complementarity(inequality, next_x, next_s)[:, 0]
        lower = (1 - _DECREASE * length[:, 0]) * residual
        allowed = np.maximum(np.minimum(allowed, _MOST_RESIDUAL), lower) + rounding
        long = next_residual > allowed
        if not long.any() or halvings == _MOST_HALVINGS:
            break
        length = np.where(long[:, None], 0.5 * length, length)
        halvings += 1
    if raising.any():
        well = (length[:, 0] >= 0.5) & (next_residual <= _CALM)
        raised = np.minimum(settings.growth * evaluation.exponent, last)
        exponent = np.where(well[:, None, None], raised, evaluation.exponent)
        next_evaluation = variables.evaluate(next_x, next_evaluation.W, exponent)
    return _State(state.places, scaled, variables, next_x, next_s, next_evaluation)


def _direction(
    state: _State,
    residual: Float[np.ndarray, "k"],
    least_share: Float[np.ndarray, "k 1"],
    settings: StepSettings,
    least_mu: float,
) -> tuple[Float[np.ndarray, "k m"], Float[np.ndarray, "k m"]]:
    """Steps of multipliers and slacks: a predictor toward ``mu = 0``, then the corrector.

    How far mu is lowered follows from how far the predictor could go.
    """
    scaled, inequality = state.scaled, state.scaled.inequality
    x, s = state.multipliers, state.slacks
    positive = np.where(inequality, x, 1.0)
    # With ds = (center - s) - (s / x) dx eliminated, what is left is a system in dx alone.
    ratio = np.where(inequality, s / positive, 0.0)
    matrix, shift = state.variables.system(state.evaluation, residual)
    diagonal = np.einsum("ijj->ij", matrix)
    diagonal += ratio + _ROUNDING * diagonal  # repeated constraints would make it singular
    diagonal += np.where(diagonal > 0, 0.0, 1.0)
    base = -_unmet(scaled, state.evaluation.margins, s) - np.where(inequality, s, 0.0) - shift

    dx = solutions(matrix, base)
    ds = np.where(inequality, -s - ratio * dx, 0.0)
    mu = _complementarity(inequality, x, s)
    reach_x, reach_s = _longest(inequality, x, dx), _longest(inequality, s, ds)
    # Mehrotra's rule: mu falls by the cube of the share that the predictor leaves of it.
    whole = np.where(mu > 0, mu, 1.0)
    left = _complementarity(inequality, x + reach_x * dx, s + reach_s * ds)
    share = (left / whole) ** 3
    share = np.maximum(np.maximum(share, least_share), settings.lead * residual[:, None] / whole)
    mu = np.maximum(mu * np.minimum(share, _MOST_SHARE), least_mu)
    trust = np.minimum(reach_x, reach_s) ** settings.caution
    center = np.where(inequality, (mu - trust * dx * ds) / positive, 0.0)
    dx = solutions(matrix, base + center)
    return dx, np.where(inequality, center - s - ratio * dx, 0.0)


def _unmet(
    scaled: ScaledConstraints, margins: Float[np.ndarray, "k m"], slacks: Float[np.ndarray, "k m"]
) -> Float[np.ndarray, "k m"]:
    """``a_j^T W b_j - c_j - s_j``; without slack for equalities."""
    excess = margins - scaled.bounds
    return np.where(scaled.inequality, excess - slacks, np.where(scaled.equality, excess, 0.0))


def _residual(
    scaled: ScaledConstraints, evaluation: Evaluation, slacks: Float[np.ndarray, "k m"]
) -> Float[np.ndarray, "k"]:
    """The largest residual, of the constraints or of stationarity."""
    unmet = np.abs(_unmet(scaled, evaluation.margins, slacks)).max(-1, initial=0.0)
    return np.maximum(unmet, np.abs(evaluation.strain).max((-1, -2)))


def _complementarity(
    inequality: Bool[np.ndarray, "k m"], x: Float[np.ndarray, "k m"], s: Float[np.ndarray, "k m"]
) -> Float[np.ndarray, "k 1"]:
    """The mean of ``s_j lambda_j``; zero without inequalities."""
    total = np.where(inequality, x * s, 0.0).sum(-1, keepdims=True)
    return total / np.maximum(inequality.sum(-1, keepdims=True), 1)


def _longest(
    inequality: Bool[np.ndarray, "k m"], x: Float[np.ndarray, "k m"], dx: Float[np.ndarray, "k m"]
) -> Float[np.ndarray, "k 1"]:
    """The longest step, up to one, that keeps x from turning negative."""
    rate = np.where(inequality, -dx / np.where(inequality, x, 1.0), 0.0)
    return 1 / np.maximum(rate.max(-1, keepdims=True, initial=0.0), 1.0)


def _gap_and_shortfall(state: _State) -> tuple[Float[np.ndarray, "k"], Float[np.ndarray, "k"]]:
    """Gap that would be left if W met its constraints, and how far it is from doing so."""
    scaled, evaluation = state.scaled, state.evaluation
    c = scaled.bounds
    square = np.square(evaluation.expansion.norm[:, 0, 0])
    weighed = np.where(scaled.inequality, state.multipliers * state.slacks, 0.0)
    unmet = np.abs(_unmet(scaled, evaluation.margins, state.slacks))
    relative = unmet / np.where(scaled.positive, c, 1.0)
    return weighed.sum(-1) / square, relative.max(-1, initial=0.0)
