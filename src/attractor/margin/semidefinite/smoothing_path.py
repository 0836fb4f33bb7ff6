"""The path of Newton's method while conditions for optimality are rounded off less and less.

Instances of a batch take their steps together, each at an area of its own. A step is taken unless
it makes the residual explode: requiring it to fall at every step would trap the iterates.

Unknown are a sum ``Y = W + scale M`` and numbers ``z_j = lambda_j - weight_j s_j``. Rounded off by
an area, the conditions on the pair (W, M), and on each pair of a multiplier and a slack, make
these functions of Y and z. What is left is linear in the pairs: M is the combination of the
constraints with the multipliers lambda, and the margins of W are ``c + s``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import singular_value_decomposition
from attractor.margin.batching.batches import Batch, inner_products
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.methods import Task
from attractor.margin.semidefinite.smoothed_norm import (
    Factors,
    GraphPoint,
    NuclearPoint,
    SpectralPoint,
)

_LAST_AREA = 1e-13
_FLATTEST, _STIFFEST = 1e-6, 0.03
"""Range of the slopes below which tangents are cut off: the steepest of them cost digits."""
_FLATTEST_LAST = 1e-4
"""Least slope when the conditions are nearly met: it makes up in digits what it costs in speed."""
_STIFFENING, _LOOSENING = 10.0, 5.0
_SLOW = 0.2
"""Share of the residual that is left by steps that converge too slowly."""
_SHORTEST = 0.02
"""Steps are not shortened below this share: another direction helps more."""
_LINGERING = 15
"""Steps at the last area in which an instance reaches what rounding lets it reach."""
_PATIENCE, _RETREAT = 8, 30.0
"""Steps without progress after which the area grows again, and by how much."""
_SMALL, _LARGE = 0.05, 1.0
"""Residuals below and above which the area falls faster and slower."""
_SOLVED, _FINE = 1e-6, 1e-3
_FINE_SHARE = 1e-6
"""A residual of this share of the norm may be rounding: W is large where margins cancel."""
_RATIOS = 1e-14, 1e6
"""Range of s / lambda, relative to the diagonal of Newton's system."""


@dataclass(frozen=True)
class PathSettings:
    """Schedule of the smoothing area.

    Attributes:
        most_steps: Steps taken at most.
        first_area: The initial area.
        first: Factor of the area in the first steps; it falls while steps go well.
        fastest: Smallest factor; its square where the conditions are nearly met.
        slowest: Largest factor.
        near: Residual above which the area stays as it is.
        closeness: The same, in units of the square root of the area.
        bound: Residual up to which a step is taken whatever the residual was.
        growth: Most that the residual may grow by beyond that.
    """

    most_steps: int
    first_area: float
    first: float
    fastest: float
    slowest: float
    near: float
    closeness: float
    bound: float
    growth: float


@dataclass
class SmoothingPath(Batch):
    """Iterates, directions and smoothing areas of a batch.

    Attributes:
        settings: Schedule of the area.
        conditions: The smoothed optimality conditions.
        Y: The unknown ``W + scale M`` where the direction starts.
        z: The unknowns ``lambda_j - weight_j s_j`` where the direction starts.
        dY: Newton direction of ``Y``.
        dz: Newton direction of ``z``.
        share: Step length along the direction, in (0, 1].
        residual: Residual of the conditions where the direction starts.
        area: Smoothing parameter: area under the hyperbola that rounds off the conditions.
        factor: Factor of the area at the next step.
        flattest: Least slope allowed in the derivative of the smoothed conditions.
        waiting: Steps since the area was last reduced.
        lingering: Steps taken at the last area.
        ended: Whether there is no further step to take.
    """

    settings: PathSettings
    conditions: SmoothedConditions
    Y: Float[np.ndarray, "k p q"]
    z: Float[np.ndarray, "k m"]
    dY: Float[np.ndarray, "k p q"]
    dz: Float[np.ndarray, "k m"]
    share: Float[np.ndarray, "k"]
    residual: Float[np.ndarray, "k"]
    area: Float[np.ndarray, "k"]
    factor: Float[np.ndarray, "k"]
    flattest: Float[np.ndarray, "k"]
    waiting: Int[np.ndarray, "k"]
    lingering: Int[np.ndarray, "k"]
    ended: Bool[np.ndarray, "k"]

    @classmethod
    def start(cls, task: Task, settings: PathSettings, *, spectral: bool) -> SmoothingPath:
        """From the Frobenius solution of constraints on matrices with p >= q."""
        conditions, Y, z = SmoothedConditions.around(task, spectral=spectral)
        count = len(Y)
        return cls(
            settings=settings,
            conditions=conditions,
            Y=Y,
            z=z,
            dY=np.zeros_like(Y),
            dz=np.zeros_like(z),
            share=np.ones(count),
            residual=np.full(count, np.inf),
            area=np.full(count, settings.first_area),
            factor=np.full(count, settings.first),
            flattest=np.full(count, _FLATTEST),
            waiting=np.zeros(count, dtype=int),
            lingering=np.zeros(count, dtype=int),
            ended=np.zeros(count, dtype=bool),
        )

    def evaluate(self) -> tuple[Factors, Float[np.ndarray, "k m"], Pairs]:
        """Factors of Y, z and the pairs at the end of the step under trial."""
        Y = self.Y + self.share[:, None, None] * self.dY
        z = self.z + self.share[:, None] * self.dz
        factors = singular_value_decomposition(Y)
        return factors, z, self.conditions.at(factors, z, self.area)

    def step(
        self,
        factors: Factors,
        z: Float[np.ndarray, "k m"],
        pairs: Pairs,
        active: Bool[np.ndarray, "k"],
    ) -> None:
        """Takes the step under trial, or shortens it; finds the next direction.

        Args:
            factors: The first of what ``evaluate`` returned.
            z: The second.
            pairs: The third.
            active: Instances that take further steps.
        """
        taken = pairs.residual <= np.maximum(
            self.settings.bound, self.settings.growth * self.residual
        )
        taken = active & (taken | (self.share < _SHORTEST))
        self.share = np.where(taken, 1.0, 0.3 * self.share)
        places = np.flatnonzero(taken)
        if not places.size:
            return
        first = np.isinf(self.residual[places])
        later = places[~first]
        self._adapt_tangents(later, pairs)
        self._reduce_area(later, pairs.residual[later])
        U, y, V = (array[places] for array in factors)
        z = z[places]
        conditions = self.conditions if taken.all() else self.conditions.choose(places)
        pairs = conditions.at((U, y, V), z, self.area[places])
        dY, dz = conditions.newton_step(pairs, self.flattest[places])
        sound = np.logical_and(np.isfinite(dY).all((-1, -2)), np.isfinite(dz).all(-1))
        self.ended[places] |= ~sound
        self.Y[places], self.z[places] = (U * y[:, None]) @ V, z
        self.dY[places] = np.where(sound[:, None, None], dY, 0.0)
        self.dz[places] = np.where(sound[:, None], dz, 0.0)
        self.residual[places] = pairs.residual

    def _reduce_area(self, places: Int[np.ndarray, "k"], residual: Float[np.ndarray, "k"]) -> None:
        """Rounds the conditions off less where they are nearly met, more where they never are."""
        settings, area, factor = self.settings, self.area[places], self.factor[places]
        least = np.where(residual < _FINE, settings.fastest**2, settings.fastest)
        faster = np.maximum(factor**1.5, least)
        slower = np.minimum(np.sqrt(factor), settings.slowest)
        factor = np.where(residual > _LARGE, slower, factor)
        factor = np.where(residual < _SMALL, faster, factor)
        close = residual < np.minimum(settings.near, settings.closeness * np.sqrt(area))
        close |= residual < _SOLVED
        waiting = np.where(close, 0, self.waiting[places] + 1)
        lost = waiting > _PATIENCE
        reduced = np.where(close, np.maximum(area * factor, _LAST_AREA), area)
        widened = np.minimum(_RETREAT * area, settings.first_area)
        self.area[places] = np.where(lost, widened, reduced)
        self.factor[places] = np.where(lost, settings.slowest, factor)
        self.waiting[places] = np.where(lost, 0, waiting)
        self.lingering[places] += area == _LAST_AREA
        self.ended |= self.lingering > _LINGERING

    def _adapt_tangents(self, places: Int[np.ndarray, "k"], pairs: Pairs) -> None:
        """Cuts slopes off earlier where rounding shows, later where the steps converge slowly."""
        after: Any = pairs.residual[places]
        before: Any = self.residual[places]
        fine = after < np.maximum(_FINE, _FINE_SHARE * pairs.point.norm[places])
        flattest = self.flattest[places]
        arriving = (after < _SOLVED) & (before >= _SOLVED)
        flattest = np.where(arriving, np.maximum(flattest, _FLATTEST_LAST), flattest)
        flattest = np.where(fine & (after > before), _STIFFENING * flattest, flattest)
        slow = fine & (after <= before) & (after > _SLOW * before)
        flattest = np.where(slow, flattest / _LOOSENING, flattest)
        self.flattest[places] = np.clip(flattest, _FLATTEST, _STIFFEST)


@dataclass(frozen=True)
class Pairs:
    """The pairs that Y and z determine, and their residuals in the conditions.

    Attributes:
        point: W and M as a point of the graph.
        W: The matrix.
        M: Its smoothed subgradient.
        multipliers: lambda.
        slacks: s; zero on equalities.
        off: The combination of the constraints with the multipliers, less M.
        short: ``c + s`` less the margins of W.
        residual: Size of both, relative to M and to c.
        gap: Upper bound on the relative duality gap of W and the multipliers.
    """

    point: GraphPoint
    W: Float[np.ndarray, "k p q"]
    M: Float[np.ndarray, "k p q"]
    multipliers: Float[np.ndarray, "k m"]
    slacks: Float[np.ndarray, "k m"]
    off: Float[np.ndarray, "k p q"]
    short: Float[np.ndarray, "k m"]
    residual: Float[np.ndarray, "k"]
    gap: Float[np.ndarray, "k"]


@dataclass(frozen=True)
class SmoothedConditions(Batch):
    """The conditions of a batch.

    Attributes:
        graph: The graph of the norm.
        scaled: Constraints on ``p x q`` matrices, p >= q.
        left_gram: ``a_i^T a_j``.
        scale: Weight of M in Y.
        width: Unit of the area that the graph of the norm is rounded off by.
        weight: Weight of s in z; zero on equalities.
        slack_width: Unit of the area for slacks and multipliers.
    """

    graph: type[NuclearPoint | SpectralPoint]
    scaled: ScaledConstraints
    left_gram: Float[np.ndarray, "k m m"]
    scale: Float[np.ndarray, "k"]
    width: Float[np.ndarray, "k"]
    weight: Float[np.ndarray, "k m"]
    slack_width: Float[np.ndarray, "k m"]

    @classmethod
    def around(cls, task: Task, *, spectral: bool) -> tuple[SmoothedConditions, Any, Any]:
        """The conditions, measured in units of the Frobenius solution, and its Y and z."""
        scaled, W, x = task.scaled, task.W, task.multipliers
        q = W.shape[-1]
        values = np.linalg.svd(W, compute_uv=False)
        dual = np.linalg.svd(scaled.combine(x), compute_uv=False)
        # Singular values of subgradients add up to one, or are one each.
        size = dual.sum(-1) if spectral else dual[:, 0] / 0.9
        x = x / np.where(size > 0, size, 1.0)[:, None]
        scale = q * values[:, 0] if spectral else values.mean(-1)
        width = np.full(len(W), q**-2.0) if spectral else scale
        present = scaled.present.sum(-1)
        typical = np.maximum(np.abs(scaled.bounds * x).sum(-1), 1e-3 * values[:, 0]) / present
        weight = np.where(scaled.inequality, 2 * typical[:, None], 0.0)
        slacks = np.maximum(scaled.margins(W) - scaled.bounds, 0.0)
        x = np.where(scaled.inequality, np.maximum(x, 0.0), x)
        conditions = cls(
            graph=SpectralPoint if spectral else NuclearPoint,
            scaled=scaled,
            left_gram=scaled.left @ np.swapaxes(scaled.left, -1, -2),
            scale=scale,
            width=width,
            weight=weight,
            slack_width=0.5 * typical[:, None] * weight,
        )
        return conditions, W + scale[:, None, None] * scaled.combine(x), x - weight * slacks

    def at(
        self,
        factors: Factors,
        z: Float[np.ndarray, "k m"],
        area: Float[np.ndarray, "k"],
    ) -> Pairs:
        """Pairs and residuals at Y and z.

        Args:
            factors: Singular value decomposition of Y.
            z: Multipliers less weighted slacks.
            area: Smoothing parameter.
        """
        scaled, c = self.scaled, self.scaled.bounds
        point = self.graph.at(factors, self.scale, area * self.width)
        multipliers, slacks = self._multipliers_and_slacks(z, area)
        W, M = point.W, point.M
        off = scaled.combine(multipliers) - M
        margins = scaled.margins(W)
        short = np.where(scaled.present, c + slacks - margins, 0.0)
        off_size = np.sqrt(inner_products(off, off))
        short_size = np.sqrt(inner_products(short, short))
        M_size = np.sqrt(inner_products(point.m, point.m))
        residual = np.hypot(off_size / M_size, short_size / np.sqrt((c * c).sum(-1)))
        residual = np.where(np.isfinite(residual), residual, np.inf)
        # The dual norm of what is off is at most this many times its Frobenius norm.
        constant = np.sqrt(factors[1].shape[-1])
        dual_norm = point.dual_norm + constant * off_size
        gap = self._gap(point.norm, margins, multipliers, dual_norm)
        return Pairs(point, W, M, multipliers, slacks, off, short, residual, gap)

    def newton_step(
        self, pairs: Pairs, flattest: Float[np.ndarray, "k"]
    ) -> tuple[Float[np.ndarray, "k p q"], Float[np.ndarray, "k m"]]:
        """Newton's direction for Y and z: one system of the size of the multipliers.

        Args:
            pairs: The iterate that the step starts from.
            flattest: Least slope to be used in tangents.
        """
        tangent, scaled = pairs.point.tangent(flattest), self.scaled
        system, column = tangent.gram(scaled.left, scaled.right, self.left_gram)
        diagonal = np.einsum("kjj->kj", system)
        largest = diagonal.max(-1, initial=0.0)[:, None]
        # Slacks eliminated: their moves are those of the multipliers times s / lambda.
        with np.errstate(all="ignore"):
            ratio = pairs.slacks / pairs.multipliers
        lowest, highest = _RATIOS
        ratio = np.where(scaled.inequality, ratio, np.where(scaled.equality, 0.0, np.inf))
        ratio = np.clip(ratio, lowest * largest, highest * largest)
        diagonal += ratio
        right = pairs.short - scaled.margins(tangent.move(pairs.off))
        if column is None:
            dx = np.linalg.solve(system, right[..., None])[..., 0]
            raised = 0.0
        else:  # the level of the threshold moves: one more unknown, by a second right-hand side
            both = np.linalg.solve(system, np.stack([right, column], axis=-1))
            first, second = both[..., 0], both[..., 1]
            product = (tangent.level * pairs.point.m).sum(-1)
            wanted = (column * (pairs.multipliers + first)).sum(-1) - product
            dt = wanted / ((column * second).sum(-1) + tangent.level_slope)
            dx = first - second * dt[:, None]
            raised = tangent.raise_level(dt)
        dM = scaled.combine(pairs.multipliers + dx) - pairs.M
        dY = tangent.move(dM) + raised + self.scale[:, None, None] * dM
        return dY, dx * (1 + self.weight * ratio)

    def _multipliers_and_slacks(self, z: Any, area: Any) -> tuple[np.ndarray, np.ndarray]:
        """The pair on a hyperbola with ``lambda - weight s = z``, each without cancellation."""
        product = area[:, None] * self.slack_width
        root = np.sqrt(z * z + 4 * product)
        with np.errstate(divide="ignore", invalid="ignore"):
            larger = 0.5 * (np.abs(z) + root)
            smaller = np.where(larger > 0, product / larger, 0.0)
            x = np.where(z > 0, larger, smaller)
            s = np.where(z > 0, smaller, larger) / self.weight
        held = self.scaled.inequality
        return np.where(held, x, z), np.where(held, s, 0.0)

    def _gap(self, norm: Any, margins: Any, multipliers: Any, dual_norm: Any) -> np.ndarray:
        """The gap once W is scaled to meet its margins; what scaling cannot meet is left out."""
        scaled, c = self.scaled, self.scaled.bounds
        positive, fixed = scaled.positive, ~scaled.scalable
        with np.errstate(all="ignore"):
            least = np.where(positive, margins / c, np.inf).min(-1, initial=np.inf)
            value = np.where(fixed | np.isinf(least), norm, norm / least)
            gap = np.abs(value - (c * multipliers).sum(-1) / dual_norm) / value
        return np.where((fixed | (least > 0)) & np.isfinite(gap), gap, np.inf)
