"""Tools of iterative methods: an estimate of the gap, and the best iterate of each instance."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from attractor.geometry import Geometry
from attractor.margin.batching.scaling import ScaledConstraints


class BestIterates:
    """The iterate of smallest gap of each instance, whatever the last one looks like.

    Attributes:
        W: Matrices; NaN before the first.
        multipliers: Scaled to ``||sum_j lambda_j a_j b_j^T||_dual = 1``.
        gap: Estimated relative duality gap; infinite before the first.
    """

    def __init__(self, instances: int, shape: tuple[int, int], constraints: int) -> None:
        """Starts with nothing for every instance."""
        self.W = np.full((instances, *shape), np.nan)
        self.multipliers = np.zeros((instances, constraints))
        self.gap = np.full(instances, np.inf)

    def offer(
        self,
        places: Int[np.ndarray, "k"],
        scaled: ScaledConstraints,
        W: Float[np.ndarray, "k d e"],
        multipliers: Float[np.ndarray, "k m"],
        geometry: Geometry,
    ) -> Float[np.ndarray, "k"]:
        """Keeps the iterates that are better than the best so far; returns the gaps of all.

        Args:
            places: Instances the iterates belong to.
            scaled: The constraints of these instances.
            W: Matrices; those whose margins can be met by scaling are scaled.
            multipliers: Of any scale; negative ones of inequalities count as zero.
            geometry: The norm.
        """
        W, multipliers, gap = normalized(scaled, W, multipliers, geometry)
        better = gap < self.gap[places]
        chosen = places[better]
        self.W[chosen], self.multipliers[chosen] = W[better], multipliers[better]
        self.gap[chosen] = gap[better]
        return gap


def normalized(
    scaled: ScaledConstraints,
    W: Float[np.ndarray, "k d e"],
    multipliers: Float[np.ndarray, "k m"],
    geometry: Geometry,
) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, "k"]]:
    """W scaled to smallest margin one, multipliers to dual norm one, and the gap between them.

    The gap is an estimate that leaves rounding out: the certificate bounds that as well.
    """
    with np.errstate(all="ignore"):
        c = scaled.bounds
        x = np.where(scaled.inequality, np.maximum(multipliers, 0.0), multipliers)
        x = np.where(scaled.present, x, 0.0)
        dual_norm = geometry.dual_norm(scaled.combine(x))
        x = x / np.where(dual_norm > 0, dual_norm, 1.0)[:, None]
        margins = scaled.margins(W)
        positive = scaled.positive
        ratios = np.where(positive, margins / np.where(positive, c, 1.0), np.inf)
        least = ratios.min(-1, initial=np.inf)
        stretch = np.where(scaled.scalable & (least > 0) & np.isfinite(least), least, 1.0)
        W, margins = W / stretch[:, None, None], margins / stretch[:, None]
        unmet = np.where(scaled.equality, np.abs(margins - c), np.maximum(c - margins, 0.0))
        unmet = np.where(scaled.equality | scaled.inequality, unmet, 0.0)
        norm = geometry.norm(W)
        lower = np.maximum((c * x).sum(-1), 0.0)
        gap = np.maximum(norm - lower, 0.0) + (np.abs(x) * unmet).sum(-1)
        gap = np.maximum(gap / norm, unmet.max(-1, initial=0.0))
        gap = np.where(norm == 0, unmet.max(-1, initial=0.0), gap)
    return W, x, np.where(np.isfinite(gap), gap, np.inf)
