"""The path of Newton's method while conditions for optimality are rounded off less and less.

Instances of a batch take their steps together and keep a settings each. A step is taken unless it
makes the residual explode: asking the residual to fall at every step would trap the iterates.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.margin.methods import Task
from attractor.margin.semidefinite.smoothed_conditions import Pairs, SmoothedConditions
from attractor.margin.semidefinite.smoothed_norm import Factors

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


@dataclass(frozen=True)
class PathSettings:
    """How fast the smoothing area goes to zero.

    Attributes:
        most_steps: Steps taken at most.
        first_area: The area to begin with.
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
class SmoothingPath:
    """Where each instance of a batch is.

    Attributes:
        settings: How fast the area goes to zero.
        conditions: The smoothed optimality conditions.
        Y: The unknown ``W + scale M`` where the direction starts.
        z: The unknowns ``lambda_j - weight_j s_j`` where the direction starts.
        dY: Newton direction of ``Y``.
        dz: Newton direction of ``z``.
        share: Step length along the direction, in (0, 1].
        residual: Residual of the conditions where the direction starts.
        area: Smoothing parameter: area under the hyperbola that rounds off the conditions.
        factor: What the area is multiplied by at the next step.
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

    def choose(self, index: Any) -> SmoothingPath:
        """Chooses instances."""
        arrays = {f.name: getattr(self, f.name)[index] for f in fields(self)[2:]}
        return SmoothingPath(self.settings, self.conditions.choose(index), **arrays)

    def evaluate(self) -> tuple[Factors, Float[np.ndarray, "k m"], Pairs]:
        """Factors of Y, z and the pairs at the end of the step under trial."""
        Y = self.Y + self.share[:, None, None] * self.dY
        z = self.z + self.share[:, None] * self.dz
        factors = np.linalg.svd(Y, full_matrices=False)
        return factors, z, self.conditions.at(factors, z, self.area)

    def step(
        self,
        factors: Factors,
        z: Float[np.ndarray, "k m"],
        pairs: Pairs,
        going: Bool[np.ndarray, "k"],
    ) -> None:
        """Takes the step under trial, or shortens it; finds the next direction.

        Args:
            factors: What ``look`` returned.
            z: Likewise.
            pairs: Likewise.
            going: Instances to go on with.
        """
        taken = pairs.residual <= np.maximum(
            self.settings.bound, self.settings.growth * self.residual
        )
        taken = going & (taken | (self.share < _SHORTEST))
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
