"""The rank of nuclear solutions, read from the multipliers instead of from small singular values.

Let ``tau_1 >= tau_2 >= ...`` be the singular values of ``sum_j lambda_j a_j b_j^T``, scaled to at
most one, and g the absolute duality gap. Von Neumann's trace inequality bounds the singular values
of every solution: ``sum_i sigma_i (1 - tau_i) <= g``. What lies beyond the k values of tau that are
one is therefore at most ``g / (1 - tau_{k+1})`` in total, whatever solution it is of. Where
singular values of a computed matrix fade out, the tau fall away from one; the rank is the largest
k with a ``sigma_k`` that stands out from what that bound leaves to the others.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.geometry import Nuclear
from attractor.margin.batching.empty_slots import alike, as_places, without_empty_slots
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import Certificate, evaluate_dual
from attractor.margin.problem import MarginProblem

_UNIT = 1e-4
"""How far below one a singular value of the combination may lie and count as one.

On random data they are mostly within 1e-8 of one or at least 1e-3 away.
"""
_ABOVE_TAIL = 100.0
"""Least singular value, in units of the tail bound, that is distinct from what fades out."""
_ABOVE_ROOT = 10.0
"""The same, in units of ``value sqrt(gap)``.

Where both ``sigma_i`` and ``1 - tau_i`` vanish at the solution, iterates of gap g leave either at
about ``sqrt(g)``: only beyond that is it the singular value that does not vanish.
"""


@dataclass(frozen=True)
class RankEvidence:
    """Proof of the rank of nuclear solutions by multipliers and gap.

    Arrays with one entry an instance, or numbers for a problem without an axis of instances.

    Attributes:
        rank: Number of singular values that stand out; -1 if the smallest kept may belong to the
            tail. A solution may have others, which add up to no more than ``tail_bound``.
        multiplicity: Number k of singular values of the combination that count as one.
        separation: ``1 - tau_{k+1}``; infinite where there are no more than k singular values.
        tail_bound: Bound on ``sum_{i > k} sigma_i`` of every solution, in the units of W.
        smallest_kept: ``sigma_k`` of W; NaN if k is zero.
    """

    rank: Any
    multiplicity: Any
    separation: Any
    tail_bound: Any
    smallest_kept: Any

    def __getitem__(self, index: int) -> RankEvidence:
        """One instance, as scalars."""
        return RankEvidence(**{f.name: getattr(self, f.name)[index].item() for f in fields(self)})


def certified_rank(
    problem: MarginProblem,
    W: Float[np.ndarray, "instances d e"],
    multipliers: Float[np.ndarray, "instances m"],
    certificate: Certificate,
) -> RankEvidence:
    """The rank of the nuclear solutions of a batched problem, and the evidence for it.

    Args:
        problem: The constraints, with an axis of instances.
        W: Matrices; NaN where there is none.
        multipliers: Zero where there are none.
        certificate: Their certificate in the nuclear norm.
    """
    if not len(problem):
        return _certified(problem, W, multipliers, certificate)
    found = []
    for _, instances in alike(problem):
        places = as_places(instances)
        part, place = without_empty_slots(problem, places)
        one = _certified(part, W[places], multipliers[place], certificate[places])
        found.append((instances, [getattr(one, field.name) for field in fields(one)]))
    order = np.argsort(np.concatenate([instances for instances, _ in found]))
    parts = zip(*(arrays for _, arrays in found), strict=True)
    return RankEvidence(*(np.concatenate(arrays)[order] for arrays in parts))


def _certified(
    problem: MarginProblem,
    W: Float[np.ndarray, "instances d e"],
    multipliers: Float[np.ndarray, "instances m"],
    certificate: Certificate,
) -> RankEvidence:
    """The same for instances without empty slots."""
    scaled = ScaledConstraints.of(problem)
    solved = np.isfinite(certificate.value) & np.isfinite(certificate.gap)
    value = np.ldexp(np.where(solved, certificate.value, 0.0), -scaled.unit)
    gap = np.where(solved, certificate.gap, 0.0)
    apart = np.ldexp(np.where(solved, certificate.distance, 0.0), -scaled.unit)[:, None]
    sigma, weights = scaled.scale(W, multipliers)
    with np.errstate(all="ignore"):  # of contradictions, whose sums vanish
        combined, _, dual_norm, doubt, *_ = evaluate_dual(scaled, weights, Nuclear())
        # The largest of tau is off by the doubt at most, and so is the one it is compared with.
        blurred = np.nan_to_num(2 * doubt / dual_norm, nan=0.0)
    tau = np.linalg.svd(np.where(np.isfinite(combined), combined, 0.0), compute_uv=False)
    sigma = np.linalg.svd(np.where(solved[:, None, None], sigma, 0.0), compute_uv=False)
    rounding = np.maximum(4 * sum(problem.shape) * np.finfo(np.float64).eps, blurred)[:, None]
    tau = tau / np.where(tau[:, :1] > 0, tau[:, :1], 1.0)
    # From k to what lies beyond k: nothing beyond the last.
    beyond = np.pad(tau[:, 1:], ((0, 0), (0, 1)), constant_values=-np.inf)
    separation = np.maximum(1 - beyond - rounding, 0)
    bound = (gap * value)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.where(bound > 0, bound / separation, 0.0)
    least = np.maximum(_ABOVE_TAIL * tail, (_ABOVE_ROOT * value * np.sqrt(gap))[:, None]) + apart
    certain = solved[:, None] & (sigma > least) & (tau > 1 - _UNIT)
    size = tau.shape[-1]
    largest = np.where(certain.any(-1), size - np.argmax(certain[:, ::-1], axis=-1), 0)
    multiplicity = np.where(largest > 0, largest, (tau > 1 - _UNIT).sum(-1))
    at = np.maximum(multiplicity, 1)[:, None] - 1
    tail, separation, kept = (
        np.take_along_axis(array, at, axis=-1)[:, 0] for array in (tail, separation, sigma)
    )
    kept = np.where(solved & (multiplicity > 0), kept, np.nan)
    rank = np.where(largest > 0, largest, -1)
    return RankEvidence(
        rank=np.where(solved & (value == 0), 0, rank),
        multiplicity=multiplicity,
        separation=separation,
        tail_bound=np.where(solved, np.ldexp(tail, scaled.unit), np.nan),
        smallest_kept=np.ldexp(kept, scaled.unit),
    )
