"""The Lipschitz constant of the gradient, by which theorems choose the step."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.analysis.smoothness import smoothness_constant
from attractor.attention import ConcaveHead, LinearHead
from attractor.files.case import Case
from attractor.papers.assumption import Assumption, Check
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.hypotheses import SCORES_DIFFER, trains
from attractor.papers.measurements.loss_gradients import loss_gradients
from attractor.papers.paper import TRANSFORMERS_AS_SVMS
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_EACH = 40
_LENGTHS = (0.0, 0.3, 1.0, 3.0, 10.0)
_APART = (1e-3, 0.1, 1.0, 10.0)
_ITERATIONS = 10
_LONG = 1e5
"""Length of queries at which a wrong power of it shows, loose as the constant is."""


LINEAR_HEAD = Assumption[Case](
    "linear head",
    "The head is linear.",
    lambda case: Check(isinstance(case.head, LinearHead), f"the head is {case.head.name}"),
    lambda: random_unit_tokens(0).replace(head=ConcaveHead(np.ones(4), 1.0)),
)


def _pairs(case: Case, seed: int) -> tuple[Float[np.ndarray, "pair d e"], ...]:
    """Matrices, and steps from them along which the gradient changes most, short and long ones.

    Lengths are in units at which scores change by one; the direction is found by iterating the
    change of the gradient itself, as for the largest eigenvalue of the Hessian.
    """
    tokens, random = case.tokens, np.random.default_rng([seed, 59])
    keys, queries = (np.linalg.norm(a, axis=-1).max() for a in (tokens.keys, tokens.queries))
    unit = 1 / (keys * queries)
    shape = (len(_LENGTHS), _EACH, tokens.key_dimension, tokens.query_dimension)
    matrices, steps = (_unit(array) for array in random.standard_normal((2, *shape)))
    matrices = (matrices * unit * np.reshape(_LENGTHS, (-1, 1, 1, 1))).reshape(-1, *shape[2:])
    steps = steps.reshape(matrices.shape)
    here = loss_gradients(case, matrices)
    for _ in range(_ITERATIONS):
        steps = _unit(loss_gradients(case, matrices + _APART[0] * unit * steps) - here)
    lengths = unit * np.resize(_APART, len(matrices))
    return matrices, steps * lengths[:, None, None]


def _unit(matrices: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(matrices, axis=(-1, -2), keepdims=True)
    return np.divide(matrices, lengths, out=np.ones_like(matrices), where=lengths > 0)


def _ratio(case: Case, seed: int, shrunk: float = 1.0) -> Measurement:
    """The largest change of the gradient relative to a share of what the constant allows."""
    assert isinstance(case.head, LinearHead)
    constant = shrunk * float(
        smoothness_constant(case.tokens, case.head, parameterization=case.parameterization)
    )
    matrices, steps = _pairs(case, seed)
    change = loss_gradients(case, matrices + steps) - loss_gradients(case, matrices)
    ratios = np.linalg.norm(change, axis=(-1, -2)) / np.linalg.norm(steps, axis=(-1, -2))
    details = {"constant": constant, "largest ratio of change and distance": float(ratios.max())}
    return Measurement(float(ratios.max()) / constant, len(ratios), details)


def _of_long_queries(case: Case) -> Case:
    """The same data with other, long queries."""
    tokens = case.tokens
    queries = np.random.default_rng(67).standard_normal(tokens.queries.shape)
    queries *= _LONG / np.linalg.norm(queries, axis=-1, keepdims=True)
    return case.replace(
        tokens=Tokens(tokens.keys, queries, tokens.labels, tokens.mask, tokens.values)
    )


def _scaled(seed: int) -> Case:
    """Random tokens and queries of many lengths."""
    case, random = random_unit_tokens(seed), np.random.default_rng([seed, 61])
    tokens, scores = case.tokens, case.scores[:, 0]
    return Case.from_scores(
        tokens.keys * np.exp(random.standard_normal((3, 4, 1))),
        scores * np.exp(random.standard_normal((3, 1))),
        queries=tokens.queries[:, 0] * np.exp(random.standard_normal((3, 1))),
        parameterization="W",
        about=f"tokens of many lengths, seed {seed}",
    )


SMOOTH_GRADIENT = CLAIMS.claim(
    "smooth-gradient",
    "the gradient in W changes no faster than the constant by which steps are chosen",
    statement="Lipschitz gradient of the training loss",
    assuming=(trains("W", "p"), LINEAR_HEAD, SCORES_DIFFER),
    contrast=Contrast(
        "largest |grad L(W) - grad L(W')| / |W - W'|, in units of the constant",
        _ratio,
        "the same for long queries, with their length to the first power in the constant",
        lambda case, seed: _ratio(_of_long_queries(case), seed, 1 / _LONG),
        bound=1.0,
        reason="the constant is an upper bound",
    ),
    data=lambda seed: [
        *(random_unit_tokens(number) for number in range(seed, seed + 5)),
        *(_scaled(number) for number in range(seed, seed + 3)),
        random_unit_tokens(seed, (6, 8, 10)),
    ],
    note="of the logistic loss; the constant is loose by a factor of hundreds on unit tokens",
)
