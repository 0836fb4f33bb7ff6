"""The Lipschitz constant of the gradient, by which theorems choose the step."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.analysis.losses.smoothness import smoothness_constant
from attractor.attention import ConcaveHead, LinearHead
from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Exponent, Measurement
from attractor.papers.hypotheses import SCORES_DIFFER, trains
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.measurements.loss_gradients import loss_gradients
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_EACH = 40
_LENGTHS = (0.0, 0.3, 1.0, 3.0, 10.0)
_APART = (1e-3, 0.1, 1.0, 10.0)
_ITERATIONS = 10
_FACTORS = (2.0**-60, 1.0, 2.0**60)
"""Factors of keys at which a power off by a quarter shows, loose as the constant is.

Powers of two scale without rounding.
"""


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


def _ratio(case: Case, seed: int, power: Exponent) -> Measurement:
    """The largest change of the gradient relative to what the constant allows.

    Keys are as given and times a number c, for which the constant is that of the case times a
    power of c.
    """
    assert isinstance(case.head, LinearHead)
    constant = float(
        smoothness_constant(case.tokens, case.head, parameterization=case.parameterization)
    )
    found = []
    for factor in _FACTORS:
        scaled = _with_longer_keys(case, factor)
        matrices, steps = _pairs(scaled, seed)
        change = loss_gradients(scaled, matrices + steps) - loss_gradients(scaled, matrices)
        ratios = np.linalg.norm(change, axis=(-1, -2)) / np.linalg.norm(steps, axis=(-1, -2))
        found.append(float(ratios.max()) / (constant * factor**power))
    details = {"constant": constant, "factors of keys": list(_FACTORS), "ratios at these": found}
    return Measurement(max(found), len(_FACTORS) * len(_LENGTHS) * _EACH, details)


def _with_longer_keys(case: Case, factor: float) -> Case:
    tokens = case.tokens
    keys = factor * tokens.keys
    return case.replace(
        tokens=Tokens(keys, tokens.queries, tokens.labels, tokens.mask, tokens.values)
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


def _opposite_tokens() -> Case:
    """A token and its negative under a long head, where the constant is four times too large."""
    return Case(
        Tokens([[[1.0, 0], [-1, 0]]], [[1.0, 0]], np.ones(1)),
        LinearHead(np.array([100.0, 0])),
        "W",
        about="a token and its negative under a long head",
    )


SMOOTH_GRADIENT = CLAIMS.claim(
    "smooth-gradient",
    "the gradient in W changes no faster than the constant by which steps are chosen",
    statement="Lipschitz gradient of the training loss",
    assuming=(trains("W", "p"), LINEAR_HEAD, SCORES_DIFFER),
    contrast=Comparison(
        "largest |grad L(W) - grad L(W')| / |W - W'|, in units of the constant, for keys of any "
        "length, of which it has the square",
        _ratio,
        lambda *_: Exponent(2),
        "the same with their length to the first power in the constant",
        lambda *_: Exponent(1),
        bound=1.0,
        reason="the constant is an upper bound",
    ),
    data=lambda seed: [
        _opposite_tokens(),
        *(random_unit_tokens(number) for number in range(seed, seed + 5)),
        *(_scaled(number) for number in range(seed, seed + 3)),
        random_unit_tokens(seed, (6, 8, 10)),
    ],
    note="of the logistic loss; the constant is loose by a factor of hundreds on unit tokens, and "
    "of four at best that is known, on a token and its negative under a long head",
)
