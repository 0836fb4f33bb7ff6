"""Gradient descent on W with one query for all sequences is gradient descent on a prompt."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import trains
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.measurements.directions import step_length
from attractor.results.paper import MAX_MARGIN
from attractor.tokens import Tokens
from attractor.training import gradient_descent, train

CLAIMS = Claims(MAX_MARGIN, Case)

_STEPS = 500
_ROUNDING = 1e-12


def _shared_query(case: Case) -> Check:
    queries = case.tokens.queries.reshape(-1, case.tokens.query_dimension)
    apart = float(np.linalg.norm(queries - queries[0], axis=-1).max())
    if not queries[0].any():
        return Check(False, "the first query is zero")
    return Check(
        apart <= _ROUNDING * float(np.linalg.norm(queries[0])),
        f"queries differ from the first by up to {apart:.3g}",
    )


SHARED_QUERY = Assumption(
    "one query",
    "All rows have the same query, which is not zero.",
    _shared_query,
    lambda: _data(0, shared=False),
)


@once
def _both(case: Case, seed: int, factor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices and prompts at the recorded steps, and the query.

    The steps on the prompt are those on the matrix times a factor.
    """
    tokens, u = case.tokens, case.tokens.queries[0, 0]
    rate = 10 * step_length(case) ** 2
    settings = {"steps": _STEPS, "seed": seed, "record": np.arange(0, _STEPS + 1, 50)}
    matrix = train(
        tokens, case.head, gradient_descent(rate / factor), initial=case.initial, **settings
    )
    W = matrix.data["W"].to_numpy()[0, 0]
    ones = np.ones((*tokens.queries.shape[:-1], 1))
    prompts = Tokens(tokens.keys, ones, tokens.labels, tokens.mask, tokens.values)
    vector = train(
        prompts, case.head, gradient_descent(rate), initial=(W[0] @ u)[:, None], **settings
    )
    return W, vector.data["W"].to_numpy()[0, 0, :, :, 0], u


def _apart(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))


def _difference(case: Case, seed: int, factor: float) -> Measurement:
    W, p, u = _both(case, seed, factor)
    change = (p - p[0])[..., None] * u / (u @ u)
    scores, moved = _apart(W @ u, p), _apart(W - W[0], change)
    details = {"of W u from p": scores, "of the change of W from rank one": moved}
    return Measurement(max(scores, moved), len(p), details)


def _squared_length(case: Case, seed: int) -> float:
    u = case.tokens.queries[0, 0]
    return float(u @ u)


def _data(seed: int, *, shared: bool = True) -> Case:
    random = np.random.default_rng([seed, 5])
    keys = random.standard_normal((3, 4, 4))
    scores = random.standard_normal((3, 4))
    u = random.standard_normal(4)
    u *= 2 / np.linalg.norm(u)
    queries = np.tile(u, (3, 1)) if shared else random.standard_normal((3, 4))
    return Case.from_scores(
        keys, scores, queries=queries, parameterization="W", about=f"random data, seed {seed}"
    )


MATRIX_AND_PROMPT_EQUIVALENCE = CLAIMS.claim(
    "matrix-and-prompt-equivalence",
    "with one query u, descent on W is descent on p = W u with steps |u|^2 times as long",
    statement="equivalence of training the key-query matrix and the prompt",
    assuming=(trains("W"), SHARED_QUERY),
    contrast=Comparison(
        "largest difference of W(t) u from p(t), and of W(t) - W(0) from rank one",
        _difference,
        _squared_length,
        "the same with steps a quarter longer",
        lambda case, seed: 1.25 * _squared_length(case, seed),
        bound=_ROUNDING,
        reason="rounding of 500 steps",
    ),
    data=lambda seed: [_data(number) for number in range(seed, seed + 3)],
    note="normalized steps relate by |u| in place of its square: the gradient's norm has it too",
)
