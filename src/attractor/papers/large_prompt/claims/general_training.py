"""Training on prompts of any in-context task: the risk, the paths, and the assumption."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Comparison, Measurement
from attractor.papers.large_prompt.claims import IN_CONTEXT_CLAIMS
from attractor.papers.large_prompt.in_context_data import FAMILIES, family
from attractor.papers.large_prompt.in_context_hypotheses import (
    COMPARED_LENGTHS,
    LIGHT_SIGMA,
    SETTLED,
    SHORT_QUERIES,
    SHORT_TIME,
    SIGMA_GIVEN,
    SMOOTH_LOSS,
    TILTED_MOMENTS,
    transfer,
)
from attractor.papers.ledger.claim import once
from attractor.prompts.files.in_context import InContextCase
from attractor.prompts.head import AttentionHead
from attractor.prompts.in_context.assumption import DECAY_INDEX, tail_of
from attractor.prompts.in_context.training import gradient_flow, initial_head

_LEVEL, _END = 2.576, 3.0
_LARGEST_SIGMA = 4.0
_ASSUMPTION = (SMOOTH_LOSS, SHORT_QUERIES, LIGHT_SIGMA, TILTED_MOMENTS)
_Path = Float[np.ndarray, "time parameter"]


def _families(seed: int) -> list[InContextCase]:
    return [family(name, seed) for name in FAMILIES]


def _trained_on_infinite(case: InContextCase, seed: int) -> float:
    """The risk that training on infinite prompts reaches."""
    return float(transfer(case).data["risk"].sel(length=math.inf).values[-1])


def _untrained(case: InContextCase, seed: int) -> float:
    return float(transfer(case).data["risk"].sel(length=math.inf).values[0])


def _excess_ratio(case: InContextCase, seed: int, level: float) -> Measurement:
    """Distance from a level of the risk trained on the longest prompts, over that on the shortest.

    A level between the two risks is near to both, and the distance is then over that of the risks.
    Errors are those of differences task by task from the risk trained on infinite prompts.
    """
    last = transfer(case).data.isel(time=-1)
    risks = {length: float(last["risk"].sel(length=length)) for length in case.lengths}
    errors = [float(last["excess_error"].sel(length=length)) for length in case.lengths]
    first, longest = (abs(risks[case.lengths[place]] - level) for place in (0, -1))
    scale = max(first, abs(risks[case.lengths[0]] - risks[case.lengths[-1]]), 1e-300)
    ratio = longest / scale
    error = math.hypot(errors[-1], ratio * errors[0]) / scale
    details = {f"risk at {length:,} tokens": risk for length, risk in risks.items()}
    details |= {"level": level, "standard error": error}
    ends = (ratio - _LEVEL * error, ratio + _LEVEL * error)
    return Measurement(ratio, len(risks), details, interval=ends)


GENERAL_RISK = IN_CONTEXT_CLAIMS.claim(
    "general-risk-limit",
    "on tasks and losses of any kind, the risk trained on long prompts tends to that on infinite",
    statement="training on long prompts reaches the risk of training on infinite ones, in general",
    assuming=(COMPARED_LENGTHS, *_ASSUMPTION, SETTLED),
    contrast=Comparison(
        "distance of the trained risk from that trained on infinite prompts, on the longest "
        "prompts over the larger of the same on the shortest and the distance of the two risks",
        _excess_ratio,
        _trained_on_infinite,
        "the same of its distance from the risk of the head that training starts with",
        _untrained,
        bound=0.6,
        reason="a limit other than that of the risks leaves a ratio of one or more; where the "
        "excess falls like one over the length, prompts 16 times longer leave a sixteenth",
    ),
    data=_families,
    note="the theorem gives no rate; risks are taken on tasks that were not trained on, at the end "
    "of a finite time, in the second half of which hardly anything falls any more; for some seeds "
    "(1) the interval of a few data sets has the bound inside: not settled then",
)


@once
def _path(case: InContextCase, length: float, scale: float = 0.5) -> _Path:
    """``(U, V)`` along the flow over a fixed time, flattened."""
    times = np.linspace(0.0, _END, 13)
    train, _ = case.samples()
    start = initial_head(case.prompts.shape[2], case.labels.shape[1], scale)
    flow = gradient_flow(train, case.loss, AttentionHead(*_matrices(start)), length, times)
    flat = flow.score_matrix.reshape(13, -1), flow.value_matrix.reshape(13, -1)
    return np.concatenate(flat, axis=1)


def _matrices(head: AttentionHead) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(head.score_matrix), np.asarray(head.value_matrix)


def _gap_ratio(case: InContextCase, seed: int, path: _Path) -> Measurement:
    """Largest distance from a path of the flow on the longest prompts over that on the shortest."""
    gaps = [
        float(np.linalg.norm(_path(case, length) - path, axis=1).max()) for length in case.lengths
    ]
    details = {f"gap at {n:,} tokens": gap for n, gap in zip(case.lengths, gaps, strict=True)}
    return Measurement(gaps[-1] / max(gaps[0], 1e-300), len(gaps), details)


GENERAL_PATHS = IN_CONTEXT_CLAIMS.claim(
    "general-trajectory-stability",
    "on tasks of any kind, flows on long prompts stay near that on infinite ones for a fixed time",
    statement="stability of gradient flow over a fixed time, in general",
    assuming=(COMPARED_LENGTHS, *_ASSUMPTION, SHORT_TIME),
    contrast=Comparison(
        "largest distance up to time 3 of (U, V) from the flow on infinite prompts, on the longest "
        "prompts over the same on the shortest",
        _gap_ratio,
        lambda case, seed: _path(case, math.inf),
        "the same of its distance from the flow on infinite prompts from a start twice as large",
        lambda case, seed: _path(case, math.inf, 1.0),
        bound=0.6,
        reason="over a sample of tasks the distance falls like one over the root of the length, by "
        "4 for prompts 16 times longer, or faster",
    ),
    data=_families,
)


def _given(case: InContextCase, seed: int) -> Float[np.ndarray, "draw"]:
    assert case.sigma is not None  # an assumption says so
    return case.sigma


def _squared_tokens(case: InContextCase, seed: int) -> Float[np.ndarray, "draw"]:
    """``exp(x^2)`` of a token of each task, as if moments of that were asked for.

    For a fixed ``sigma`` the tail has the index ``1 / (2 sigma^2)``, above 8 where it is below 1/4.
    """
    draws = np.random.default_rng(seed).standard_normal(len(_given(case, seed)))
    # From there on the index is far below 8, and exp may overflow.
    return np.exp((np.minimum(_given(case, seed), _LARGEST_SIGMA) * draws) ** 2)


def _tail_index(case: InContextCase, seed: int, sigma: Float[np.ndarray, "draw"]) -> Measurement:
    tail = tail_of(sigma)
    details = {"like a power": tail.power, "interval": f"[{tail.low:.4g}, {tail.high:.4g}]"}
    return Measurement(tail.index, len(sigma), details, interval=(tail.low, tail.high))


SIGMA_DECAY = IN_CONTEXT_CLAIMS.claim(
    "sub-gaussian-decay",
    "ln(L)^4 E[L^(-c / sigma^2)] tends to 0: the tail of sigma has an index above 8",
    statement="the assumption on sub-Gaussian parameters of a task",
    assuming=(SIGMA_GIVEN,),
    contrast=Comparison(
        "index of the tail of sigma, by a generalized Pareto law of the largest in 64; at least "
        "that, where the tail is lighter than a power",
        _tail_index,
        _given,
        "the same for exp(x^2) in place of sigma, of tokens x of the law N(0, sigma^2)",
        _squared_tokens,
        bound=DECAY_INDEX,
        sense=">=",
        reason="where P(sigma > t) falls like t^-k, E[L^(-c / sigma^2)] falls like ln(L)^(-k / 2), "
        "whatever c is: k = 8 is where its product with ln(L)^4 stops to vanish",
    ),
    data=_families,
    note="every moment of sigma above the eighth is enough, so that the condition follows from the "
    "one on moments; it says nothing at lengths in use, where the product is still above 1",
    exchange="draws of sigma; a vector turned is no draw of anything",
)
