"""Gradient descent on linear decoders of fixed context embeddings."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.corpora import CorpusCase
from attractor.corpora.linear import (
    LinearTrajectory,
    finite_part,
    measure_linear,
    support_projection,
    train_linear,
)
from attractor.papers import Comparison, Exponent, Measurement, once
from attractor.papers.measures import where_it_ends
from attractor.training import gradient_descent
from attractor_further.decades import DECADES, last_decade
from attractor_further.linear_next_token.data import CLAIMS
from attractor_further.linear_next_token.decoders import (
    ASSUMPTIONS,
    NOTE,
    WITH_ODDS,
    decoder_contexts,
    decoder_data,
    decoder_solution,
)

_LEARNING_RATE = 0.5
_THIRDS = np.geomspace(*DECADES[-2:], 4).round().astype(int)
"""Ends of the thirds of the last decade of steps."""
_BEGUN = 100.0
"""Steps, times their length and the frequency of the rarest pair of context and follower, from
which on all of them are learned; before, the loss falls as if the rarest were not there."""


@once
def _run(case: CorpusCase, seed: int) -> LinearTrajectory:
    contexts = decoder_contexts(case, seed)
    descent = gradient_descent(_LEARNING_RATE)
    record = np.union1d(DECADES, _THIRDS)
    return train_linear(contexts, descent, steps=DECADES[-1], record=record, weights="all")


def _decoders(case: CorpusCase, seed: int) -> list[Float[np.ndarray, "V d"]]:
    return [_run(case, seed).W(float(step))[0, 0] for step in DECADES]


DESCENT_DIRECTION = CLAIMS.claim(
    "descent-of-decoders",
    "gradient descent carries the decoder to infinity along the margin solution",
    statement="gradient descent on the cross-entropy, direction",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "1 - cos of W_mm and what steps 2,000 to 20,000 add to W",
        lambda case, seed, direction: last_decade(_decoders(case, seed), direction),
        lambda case, seed: decoder_solution(case, seed).W,
        "1 - cos of that and W after 20 steps, as if the direction were that of the beginning",
        lambda case, seed: _decoders(case, seed)[0],
        bound=2e-2,
        reason="W itself, which is W_mm log t and a part that stays bounded, turns like 1/log t; "
        "what a decade adds is free of the bounded part",
    ),
    data=decoder_data,
    note=NOTE,
)


def _off_exponent(case: CorpusCase, seed: int, exponent: Exponent) -> Measurement:
    """The distance of the exponent of the excess loss in the last decade of steps from another.

    Its interval is that of the exponents of the thirds of the decade.
    """
    contexts = decoder_contexts(case, seed)
    found = measure_linear(_run(case, seed), decoder_solution(case, seed)).isel(instance=0, seed=0)
    at = found.sel(step=_THIRDS)
    excess, norm = (at[name].to_numpy() for name in ("excess_loss", "norm"))
    slopes = np.diff(np.log(excess)) / np.diff(np.log(_THIRDS))
    slope = float(np.log(excess[-1] / excess[0]) / np.log(_THIRDS[-1] / _THIRDS[0]))
    shares = contexts.frequencies[:, None] * contexts.probabilities
    seen = float(_LEARNING_RATE * DECADES[-1] * shares[shares > 0].min())
    details = {
        "exponent": slope,
        "exponents in thirds of the decade": slopes.tolist(),
        "steps in units of the rarest pair": seen,
        "loss above the entropy": float(excess[-1]),
        "entropy": float(contexts.entropy),
        "norm after 2,000 and 20,000 steps": [float(norm[0]), float(norm[-1])],
    }
    off = abs(slope - exponent)
    end = where_it_ends(abs(slopes - exponent), begun=seen >= _BEGUN)
    assert end.interval is not None
    return Measurement(off, 1, {**end.details, **details}, (min(end.interval[0], off), off))


DESCENT_LOSS = CLAIMS.claim(
    "loss-of-descent",
    "gradient descent takes the cross-entropy to the entropy, like one over the number of steps",
    statement="gradient descent on the cross-entropy, loss and norm",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "distance from -1 of the exponent of the cross-entropy above the entropy, from 2,000 to "
        "20,000 steps",
        _off_exponent,
        lambda *_: Exponent(-1),
        "its distance from -1/2",
        lambda *_: Exponent(-1 / 2),
        bound=0.05,
        reason="what is left falls with the logarithm of the number of steps",
    ),
    data=decoder_data,
    note=f"the norm grows like the logarithm of the number of steps; {NOTE}",
)


def _off_finite_part(case: CorpusCase, seed: int, part: Float[np.ndarray, "V d"]) -> Measurement:
    kept = support_projection(decoder_contexts(case, seed), np.stack(_decoders(case, seed)))
    decade = DECADES[-1] / DECADES[-2]
    limit = (decade * kept[-1] - kept[-2]) / (decade - 1)  # of what approaches it like 1 / t
    distance = np.linalg.norm(kept - part, axis=(-1, -2))
    found = measure_linear(_run(case, seed), decoder_solution(case, seed))
    excess = float(found["excess_loss"].isel(instance=0, seed=0)[-1])
    details = {
        "after 2,000 steps": float(distance[-2]),
        "after 20,000 steps": float(distance[-1]),
        "loss above the entropy": excess,
    }
    return Measurement(float(np.linalg.norm(limit - part)), 1, details)


DESCENT_FINITE_PART = CLAIMS.claim(
    "descent-keeps-odds",
    "gradient descent takes the odds of followers of a context to those of the data",
    statement="gradient descent on the cross-entropy, finite part",
    assuming=WITH_ODDS,
    contrast=Comparison(
        "distance from W* of P_F W after 20,000 steps, less what falls like one over the steps",
        _off_finite_part,
        lambda case, seed: finite_part(decoder_contexts(case, seed)),
        "its distance from zero, as if no odds were kept",
        lambda case, seed: np.zeros_like(decoder_solution(case, seed).W),
        bound=2e-2,
        reason="P_F W approaches W* like one over the number of steps, by constants of up to 700; "
        "taken off by the difference of two decades, that leaves .007 or less",
    ),
    data=decoder_data,
    note=NOTE,
)
