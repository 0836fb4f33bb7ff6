"""Heads that return the posterior mean of a point that is seen with noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from attractor.files.head import HeadCase
from attractor.papers.assumption import Assumption
from attractor.papers.claim import Claim, Contrast, Measurement
from attractor.papers.large_prompt.claims import MIXTURE_CLAIMS
from attractor.papers.large_prompt.denoising import (
    Denoiser,
    Points,
    both_heads,
    first_of_two,
    one_head,
    plain_residual,
    posterior_mean,
    residual,
)
from attractor.papers.large_prompt.denoising_data import (
    DENOISING,
    EQUAL_VARIANCES,
    TWO_DIMENSIONS,
    noisy_points,
    variances,
)
from attractor.papers.large_prompt.mixture_data import FEW_DIMENSIONS

_QUERIES = 16
_LARGEST_DEVIATION = 5.0


def _off_posterior(denoiser: Denoiser) -> Callable[[HeadCase, int], Measurement]:
    """Measures the largest difference from the mean of a point given what is seen."""

    def measure(case: HeadCase, seed: int) -> Measurement:
        seen = _within_reach(case, case.queries.sample(_QUERIES, seed=seed))
        difference = denoiser(case, seen) - posterior_mean(case, seen)
        return Measurement(float(np.abs(difference).max(initial=0.0)), len(seen))

    return measure


def _data(seed: int) -> Sequence[HeadCase]:
    return [
        noisy_points(),
        noisy_points(spread=1.5, noise=1.0, probability=0.3),
        noisy_points((2.0, 1.0, 0.0), (-1.0, 0.0, 2.0)),
    ]


def _within_reach(case: HeadCase, seen: Points) -> Points:
    """Seen points so near to the origin that the quadrature of every head is exact."""
    spread, noise = variances(case)
    widest = np.linalg.norm(seen, axis=-1) * max(1.0, spread / noise) / np.sqrt(spread + noise)
    return seen[widest <= _LARGEST_DEVIATION]


def _denoises(
    name: str,
    statement: str,
    summary: str,
    right: Denoiser,
    wrong: tuple[str, Denoiser],
    further: tuple[Assumption, ...] = (),
    data: Callable[[int], Sequence[HeadCase]] = _data,
) -> Claim:
    return MIXTURE_CLAIMS.claim(
        name,
        summary,
        statement=statement,
        assuming=(*DENOISING, FEW_DIMENSIONS, *further),
        contrast=Contrast(
            "largest difference of attention by quadrature over the tokens from E[X | Z]",
            _off_posterior(right),
            f"the same for {wrong[0]}",
            _off_posterior(wrong[1]),
            bound=1e-9,
            reason="rounding",
        ),
        data=data,
    )


RESIDUAL_DENOISER = _denoises(
    "residual-denoiser",
    "in-context construction of the posterior mean with a residual connection",
    "a head added to its query, less 2 xi^2/(gamma^2 + xi^2) of it, returns E[X | Z]",
    residual,
    ("the head with a plain residual connection", plain_residual),
)
TWO_HEAD_DENOISER = _denoises(
    "two-head-denoiser",
    "two heads realize the posterior mean",
    "two heads together return the mean of a point given what is seen of it",
    both_heads,
    ("the first of the two heads alone", first_of_two),
    (TWO_DIMENSIONS,),
)
ONE_HEAD_DENOISER = _denoises(
    "one-head-denoiser",
    "one head realizes the posterior mean where noise and spread are alike",
    "one head alone returns E[X | Z] where the noise is as large as the spread of points",
    one_head,
    ("the head with a plain residual connection", plain_residual),
    (EQUAL_VARIANCES,),
    lambda seed: [
        noisy_points(spread=2.0),
        noisy_points((2.0, 1.0, 0.0), (-1.0, 0.0, 2.0), noise=1.0, probability=0.3),
    ],
)
