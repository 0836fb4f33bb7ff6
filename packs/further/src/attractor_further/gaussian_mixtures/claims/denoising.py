"""Heads that return the posterior mean of a point that is seen with noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from attractor.papers import Assumption, Claim, Comparison, Measurement
from attractor.prompts import AttentionHead, HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.denoising import (
    Points,
    attention,
    left_out,
    posterior_mean,
    size,
    together,
    two_heads,
    with_residual,
)
from attractor_further.gaussian_mixtures.denoising_data import (
    DENOISING,
    EQUAL_VARIANCES,
    TWO_DIMENSIONS,
    noisy_points,
    variances,
)
from attractor_further.gaussian_mixtures.mixture_data import FEW_DIMENSIONS

_QUERIES = 16
_LARGEST_DEVIATION = 5.0
_Named = TypeVar("_Named")


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
    denoised: Callable[[HeadCase, Points, _Named], Points],
    right: Callable[[HeadCase], _Named],
    wrong: tuple[str, Callable[[HeadCase], _Named]],
    further: tuple[Assumption, ...] = (),
    data: Callable[[int], Sequence[HeadCase]] = _data,
) -> Claim:
    """The claim that points denoised by what is named are means of points given what is seen."""

    def off_posterior(case: HeadCase, seed: int, named: _Named) -> Measurement:
        seen = _within_reach(case, case.queries.sample(_QUERIES, seed=seed))
        difference = denoised(case, seen, named) - posterior_mean(case, seen)
        return Measurement(float(np.abs(difference).max(initial=0.0)) / size(case), len(seen))

    return CLAIMS.claim(
        name,
        summary,
        statement=statement,
        assuming=(*DENOISING, FEW_DIMENSIONS, *further),
        contrast=Comparison(
            "largest difference of attention by quadrature over the tokens from E[X | Z], over the "
            "root mean square of Z",
            off_posterior,
            lambda case, seed: right(case),
            f"the same for {wrong[0]}",
            lambda case, seed: wrong[1](case),
            bound=1e-9,
            reason="rounding, and what hypotheses that are met to 1e-12 leave",
        ),
        data=data,
    )


def _of_noise_alone(case: HeadCase) -> AttentionHead:
    """The head of the case with scores over the variance of the noise."""
    return AttentionHead(np.eye(len(case.U)) / variances(case).noise, case.V)


RESIDUAL_DENOISER = _denoises(
    "residual-denoiser",
    "in-context construction of the posterior mean with a residual connection",
    "a head added to its query, less 2 xi^2/(gamma^2 + xi^2) of it, returns E[X | Z]",
    with_residual,
    left_out,
    ("the head added to its query less half as much", lambda case: left_out(case) / 2),
)
TWO_HEAD_DENOISER = _denoises(
    "two-head-denoiser",
    "two heads realize the posterior mean",
    "two heads together return the mean of a point given what is seen of it",
    lambda case, seen, heads: together(case, heads, seen),
    two_heads,
    ("the first of the two heads alone", lambda case: two_heads(case)[:1]),
    (TWO_DIMENSIONS,),
)
ONE_HEAD_DENOISER = _denoises(
    "one-head-denoiser",
    "one head realizes the posterior mean where noise and spread are alike",
    "one head alone returns E[X | Z] where the noise is as large as the spread of points",
    lambda case, seen, head: attention(case, head, seen),
    lambda case: case.head,
    ("the head with scores over the variance of the noise alone", _of_noise_alone),
    (EQUAL_VARIANCES,),
    lambda seed: [
        noisy_points(spread=2.0),
        noisy_points((2.0, 1.0, 0.0), (-1.0, 0.0, 2.0), noise=1.0, probability=0.3),
    ],
)
