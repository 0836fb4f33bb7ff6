"""Linear decoders of fixed context embeddings, where several tokens follow a context."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from attractor.corpora import CorpusCase, direction_distance
from attractor.corpora.linear import (
    EmbeddedContexts,
    LinearTrajectory,
    compatibility,
    decoder_problem,
    finite_part,
    linear_regularization_path,
    separability,
    support_projection,
)
from attractor.margin import Solution, solve
from attractor.papers import Comparison, Measurement, once
from attractor_further.linear_next_token.data import (
    CLAIMS,
    FEW_CONTEXTS,
    SEVERAL_FOLLOWERS,
    SPARSE,
    embedded_contexts,
    random_followers,
)
from attractor_further.mechanics.data import random_labels

ASSUMPTIONS = (FEW_CONTEXTS, SPARSE)
WITH_ODDS = (*ASSUMPTIONS, SEVERAL_FOLLOWERS)

NOTE = "contexts of the corpus have random unit embeddings, of two dimensions more than they are"


def decoder_data(seed: int) -> list[CorpusCase]:
    """Corpora where several tokens follow a context, and one where labels conflict."""
    return [
        *(random_followers(number) for number in range(seed, seed + 4)),
        random_labels(seed, cyclic=True),
    ]


def _condition(case: CorpusCase, seed: int, dimension: int) -> Measurement:
    """Residual of the log-odds; infinite where supports cannot be separated."""
    contexts = embedded_contexts(case, seed, dimension)
    residual = float(compatibility(contexts).residual)
    apart = bool(separability(contexts).separable)
    details = {"separable": apart, "residual of the log-odds": residual}
    return Measurement(residual if apart else np.inf, len(contexts.embeddings), details)


OVERPARAMETERIZED = CLAIMS.claim(
    "more-dimensions-than-contexts",
    "embeddings of more dimensions than contexts are compatible and separable",
    statement="overparameterization makes data compatible and separable",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "largest residual of the log-odds, infinite where followers cannot be separated",
        _condition,
        lambda case, seed: decoder_contexts(case, seed).dimension,
        "the same for embeddings of two dimensions",
        lambda *_: 2,
        bound=1e-9,
        reason="rounding",
    ),
    data=decoder_data,
    note=f"{NOTE}; the condition is sufficient: with five contexts four dimensions may do",
    exchange="the condition is sufficient, not necessary",
)


@once
def decoder_contexts(case: CorpusCase, seed: int) -> EmbeddedContexts:
    """Contexts with random embeddings, of two dimensions more than they are."""
    return embedded_contexts(case, seed)


@once
def decoder_solution(case: CorpusCase, seed: int) -> Solution:
    """The solution of the decoder's margin problem."""
    return solve(decoder_problem(decoder_contexts(case, seed)))


def _finite_part(case: CorpusCase, seed: int) -> Float[np.ndarray, "V d"]:
    return finite_part(decoder_contexts(case, seed))


def _nothing(case: CorpusCase, seed: int) -> Float[np.ndarray, "V d"]:
    return np.zeros_like(decoder_solution(case, seed).W)


def _excess(contexts: EmbeddedContexts, W: Float[np.ndarray, "V d"]) -> float:
    """The cross-entropy above the entropy: what odds in supports miss, and what leaks."""
    logits = contexts.embeddings @ W.T
    inside = np.where(contexts.support, logits, -np.inf)
    within = np.asarray(logsumexp(inside, axis=-1))
    outside = np.asarray(logsumexp(np.where(contexts.support, -np.inf, logits), axis=-1))
    # KL from the data's shares to those of the logits within supports, and what leaks outside,
    # log(1 + e^(outside - within)): no difference of two numbers near the entropy is taken.
    shares = np.where(contexts.support, contexts.probabilities, 1.0)
    odds = np.where(contexts.support, np.log(shares) - (logits - within[:, None]), 0.0)
    missed = (contexts.probabilities * odds).sum(-1) + np.logaddexp(0, outside - within)
    return float((contexts.frequencies * missed).sum())


def _excess_far_out(case: CorpusCase, seed: int, part: Float[np.ndarray, "V d"]) -> Measurement:
    """The excess loss of a finite part with ``g W_mm``, for a margin g of 30."""
    contexts, direction = decoder_contexts(case, seed), decoder_solution(case, seed).W
    found = [_excess(contexts, part + margin * direction) for margin in (3, 30)]
    details = {"at a margin of 3": found[0], "entropy": float(contexts.entropy)}
    return Measurement(abs(found[-1]), 1, details)


ENTROPY_IS_INFIMUM = CLAIMS.claim(
    "entropy-is-the-infimum",
    "along W* + g W_mm the cross-entropy tends to the entropy of what follows contexts",
    statement="the cross-entropy tends to the entropy along a direction",
    assuming=WITH_ODDS,
    contrast=Comparison(
        "cross-entropy above the entropy at W* + 30 W_mm",
        _excess_far_out,
        _finite_part,
        "the same at 30 W_mm, without W*",
        _nothing,
        bound=1e-11,
        reason="exp(-30) for every token that does not follow, and rounding",
    ),
    data=decoder_data,
    note=NOTE,
)


@once
def _path(case: CorpusCase, seed: int) -> LinearTrajectory:
    radii = np.geomspace(1, 1000, 7) * float(decoder_solution(case, seed).value)
    return linear_regularization_path(decoder_contexts(case, seed), radii=radii)


def _end_of_path(case: CorpusCase, seed: int, direction: Float[np.ndarray, "V d"]) -> Measurement:
    return Measurement(float(direction_distance(_path(case, seed).W()[0, 0], direction)))


def _start_of_path(case: CorpusCase, seed: int) -> Float[np.ndarray, "V d"]:
    run = _path(case, seed)
    return run.W(float(run.steps[0]))[0, 0]


DECODER_DIRECTION = CLAIMS.claim(
    "regularization-path-of-decoders",
    "minimizers over growing balls turn to the solution of the decoder's margin problem",
    statement="regularization path of the cross-entropy, direction",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "1 - cos of the minimizer and W_mm, at 1000 norms of W_mm",
        _end_of_path,
        lambda case, seed: decoder_solution(case, seed).W,
        "1 - cos of the minimizers at 1000 norms and at one, as if the direction were that of "
        "the beginning",
        _start_of_path,
        bound=1e-4,
        reason="the angle falls like one over the radius",
    ),
    data=decoder_data,
    note=NOTE,
)


def _off_finite_part(case: CorpusCase, seed: int, part: Float[np.ndarray, "V d"]) -> Measurement:
    last = _path(case, seed).W()[0, 0]
    kept = support_projection(decoder_contexts(case, seed), last)
    return Measurement(float(np.linalg.norm(kept - part)))


DECODER_FINITE_PART = CLAIMS.claim(
    "finite-part-of-decoders",
    "within followers of a context the minimizers tend to the log-odds of the data",
    statement="regularization path of the cross-entropy, finite part",
    assuming=WITH_ODDS,
    contrast=Comparison(
        "distance of P_F W from W* at 1000 norms of W_mm",
        _off_finite_part,
        _finite_part,
        "its distance from zero, as if no odds were kept",
        _nothing,
        bound=1e-8,
        reason="rounding: it falls like the loss",
    ),
    data=decoder_data,
    note=NOTE,
)
