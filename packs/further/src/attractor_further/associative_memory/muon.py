"""Muon on associations of very different frequency, stored in a linear decoder."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.corpora import CorpusCase
from attractor.corpora.linear import (
    EmbeddedContexts,
    LinearTrajectory,
    decoder_problem,
    train_linear,
)
from attractor.geometry import Frobenius, Geometry, Spectral
from attractor.margin import solve
from attractor.papers import Claims, Comparison, Measurement, once
from attractor.training import spectral_descent, steepest_descent
from attractor_further.associative_memory import PAPER
from attractor_further.linear_next_token.data import FEW_CONTEXTS
from attractor_further.multiclass_descent.single_followers import (
    ONE_FOLLOWER,
    OWN_ANSWERS,
    associations,
    orthonormal_contexts,
)

CLAIMS = Claims(PAPER, CorpusCase)
_ASSUMPTIONS = (FEW_CONTEXTS, ONE_FOLLOWER, OWN_ANSWERS)
_RATE = 0.1
_STEPS = (1_000, 2_000)
_NOTE = "from zero, without momentum; items have orthonormal embeddings"


def memories(seed: int) -> list[CorpusCase]:
    """Twelve associations, of frequencies that fall like one over the rank and faster."""
    return [associations(seed), associations(seed + 1, exponent=1.5)]


def _gaps(contexts: EmbeddedContexts, W: Float[np.ndarray, "V d"]) -> Float[np.ndarray, "context"]:
    """By how much the answer of each context leads any other token."""
    logits = contexts.embeddings @ W.T
    answers = contexts.support
    return logits[answers] - np.where(answers, -np.inf, logits).max(-1)


def _balance(case: CorpusCase, seed: int, norm: Geometry) -> Measurement:
    """The smallest over the largest lead of answers after the steepest step of a norm."""
    contexts = orthonormal_contexts(case)
    run = train_linear(contexts, steepest_descent(1.0, norm), steps=1, record=[1])
    gaps = _gaps(contexts, run.W()[0, 0])
    details = {"smallest lead": float(gaps.min()), "largest lead": float(gaps.max())}
    return Measurement(float(gaps.min() / gaps.max()), len(gaps), details)


FIRST_STEP = CLAIMS.claim(
    "first-step-of-muon-is-balanced",
    "the first step of Muon stores rare associations nearly as well as common ones",
    statement="uniform progress over frequencies",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "smallest over largest lead of an answer after one spectral step from zero",
        _balance,
        lambda case, seed: Spectral(),
        "the same after a step along the gradient",
        lambda case, seed: Frobenius(),
        bound=0.5,
        reason="after a gradient step it is the ratio of the frequencies, 1/12 or less",
        sense=">=",
    ),
    data=memories,
    note=_NOTE,
)


@once
def _late_run(case: CorpusCase) -> LinearTrajectory:
    contexts = orthonormal_contexts(case)
    return train_linear(contexts, spectral_descent(_RATE), steps=_STEPS[-1], record=list(_STEPS))


def _off_rate(case: CorpusCase, seed: int, norm: Geometry) -> Measurement:
    """The rate at which the logarithm of the loss falls, against the largest margin in a norm."""
    contexts = orthonormal_contexts(case)
    log_loss = _late_run(case).data["log_excess_loss"].isel(instance=0, seed=0).to_numpy()
    rate = -float(log_loss[-1] - log_loss[-2]) / (_RATE * (_STEPS[-1] - _STEPS[-2]))
    margin = 1 / float(solve(decoder_problem(contexts), norm).value)
    details = {"rate": rate, "largest margin": margin, "log of the loss": float(log_loss[-1])}
    return Measurement(abs(rate / margin - 1), len(contexts.embeddings), details)


EXPONENTIAL_LOSS = CLAIMS.claim(
    "loss-of-muon-falls-exponentially",
    "without label noise Muon takes the loss to zero exponentially in the number of steps",
    statement="noiseless case, loss",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "relative distance of the rate of log(loss) per unit of step size, from step 1,000 to "
        "2,000, from the largest margin in the spectral norm",
        _off_rate,
        lambda case, seed: Spectral(),
        "its distance from the largest margin in the Frobenius norm",
        lambda case, seed: Frobenius(),
        bound=1e-3,
        reason="W grows along the spectral solution, once every item is stored",
    ),
    data=memories,
    note=f"{_NOTE}; that of gradient descent falls like one over the steps "
    "(linear-next-token/loss-of-descent)",
)
