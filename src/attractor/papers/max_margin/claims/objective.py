"""What the loss says of prompts: one query, the least loss, and no stationary point."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.analysis.losses.excess_loss import log_excess_loss
from attractor.attention import get_loss
from attractor.files.case import Case
from attractor.geometry.vectors import cosines
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import (
    EQUAL_SCORES_OR_ALL_SUPPORT,
    OPTIMUM_FEASIBLE,
    SCORES_DIFFER,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.max_margin.data import (
    one_sequence,
    random_prompt_data,
    three_scores_apart,
    three_sequences,
    two_scores,
)
from attractor.papers.measurements.attended import scores_at
from attractor.papers.measurements.directions import step_length
from attractor.papers.measurements.gradients import along, descent_directions, random_matrices
from attractor.papers.measurements.near_misses import turned_past
from attractor.papers.transformers_as_svms.random_data import enclosed_token, tied_scores
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


_DECIDED = 1e-9
"""Relative excess above which it is that of the losses themselves, and not of its formula."""
_FAR = (1000.0, 2000.0)


def _not_above(case: Case, seed: int, kept: Selection) -> Measurement:
    """Counts random matrices whose loss is not above that of keeping certain tokens."""
    matrices = random_matrices(case, seed)
    solution = case.solution(selection=case.optimal)
    if np.isfinite(solution.value):
        matrices = np.concatenate([matrices, along(solution.W, (1.0, 3.0, 10.0, 100.0, 1000.0))])
    least = loss_of_keeping(case, kept)
    excess, exact = losses(case, matrices) - least, log_excess(case, matrices, kept)
    above = np.where(np.abs(excess) > _DECIDED * least, excess > 0, exact > -np.inf)
    details = {
        "least excess": float(excess.min()),
        "told by its logarithm": float(np.nanmin(exact)),
    }
    return Measurement(float((~above).sum()), len(matrices), details)


def one_second_best(case: Case, seed: int) -> Selection:
    """The best tokens but in one row, which keeps its second best: a wrong selection near by."""
    other = runner_up(case)
    assert other is not None  # as the scores of some row differ
    return other


def _decay(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    logs = log_excess(case, along(direction, _FAR), case.optimal)
    rate = float(np.diff(logs)[0]) / (_FAR[1] - _FAR[0])
    return Measurement(abs(rate + 1), 1, {"rate": rate, "log of the excess": logs.tolist()})


def _past_the_margin(case: Case, seed: int) -> np.ndarray:
    solution = case.solution(selection=case.optimal)
    turned = turned_past(solution)
    return turned * float(solution.value) / np.linalg.norm(turned)


OPTIMAL_TOKENS_MINIMIZE_LOSS = CLAIMS.claim(
    "optimal-tokens-minimize-loss",
    "no parameters reach the loss of keeping the best tokens, and none lies below",
    statement="optimal tokens minimize the training loss",
    assuming=(trains("p", "W"), SCORES_DIFFER),
    contrast=Comparison(
        "number of parameters whose loss is not above that of the best tokens",
        _not_above,
        lambda case, seed: case.optimal,
        "number whose loss is not above that of one second best token among the best",
        one_second_best,
        bound=0.0,
        reason="not one is allowed",
    ),
    data=lambda seed: [
        three_sequences(),
        one_sequence(equal_scores=False),
        two_scores(5.0),
        *(random_prompt_data(number, 3, 4, 8) for number in range(seed, seed + 3)),
    ],
)

LEAST_LOSS_AT_INFINITY = CLAIMS.claim(
    "least-loss-at-infinity",
    "along the max-margin direction the loss falls to that of the best tokens like exp(-R)",
    statement="optimal tokens minimize the training loss",
    assuming=(trains("p", "W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE),
    contrast=Comparison(
        "distance from -1 of the slope of log(L(R p) - L_best) in R, p the margin solution",
        _decay,
        lambda case, seed: case.solution(selection=case.optimal).W,
        "the same along a direction just past a support token's margin",
        _past_the_margin,
        bound=0.01,
        reason="from R = 1,000 to 2,000, m tokens just off the margin change it by log(m) / 1000",
    ),
    data=lambda seed: [three_sequences(), one_sequence(equal_scores=False), two_scores(5.0)],
)


def log_excess(
    case: Case, matrices: Float[np.ndarray, "batch d e"], kept: Selection
) -> Float[np.ndarray, "batch"]:
    """Logarithm of the logistic loss above that of keeping certain tokens, at any magnitude.

    NaN where the loss is below it.
    """
    head = np.asarray(case.head.weight)
    lengths = np.linalg.norm(case.tokens.values, axis=-1) * np.linalg.norm(head)
    scores = scores_at(case, matrices)
    return log_excess_loss(get_loss("logistic"), scores, case.scores, lengths, kept.mask)


def losses(case: Case, matrices: Float[np.ndarray, "batch d e"]) -> Float[np.ndarray, "batch"]:
    """The logistic loss ``mean_ik log(1 + exp(-sum_t softmax_t gamma_t))``, straight from that."""
    gamma = np.where(case.tokens.mask, case.scores, 0.0)
    margins = (softmax(scores_at(case, matrices), axis=-1) * gamma).sum(-1)
    return np.logaddexp(0, -margins).mean((-1, -2))


def loss_of_keeping(case: Case, kept: Selection) -> float:
    """The logistic loss with all attention on the best of the kept tokens of every row."""
    gamma = np.where(kept.mask, case.scores, -np.inf).max(-1)
    return float(np.logaddexp(0, -gamma).mean())


def runner_up(case: Case) -> Selection | None:
    """The best tokens but in one row, which keeps its second best: the row where that costs least.

    None where no row has a second score.
    """
    best = case.optimal.mask
    others = np.where(case.tokens.mask & ~best, case.scores, -np.inf)
    advantage = np.where(best, case.scores, -np.inf).max(-1) - others.max(-1)
    if not np.isfinite(advantage).any():
        return None
    row = np.unravel_index(int(np.argmin(advantage)), advantage.shape)
    mask = best.copy()
    mask[row] = np.arange(best.shape[-1]) == others[row].argmax()
    return Selection(mask, case.optimal.tied & (mask == best).all(-1))


def _gain(case: Case, seed: int, direction: Float[np.ndarray, "d e"]) -> Measurement:
    matrices = np.concatenate([random_matrices(case, seed), along(direction)])
    found = cosines(descent_directions(case, matrices), direction)
    return Measurement(
        float(found.min()), len(found), {"places of ascent": int((found <= 0).sum())}
    )


CONTRAST_OF_DESCENT = Comparison[Case, np.ndarray](
    "least cosine of the descent direction with the max-margin direction",
    _gain,
    lambda case, seed: case.solution(selection=case.optimal).W,
    "least cosine of the descent direction with one just past a support token's margin",
    lambda case, seed: turned_past(case.solution(selection=case.optimal)),
    bound=0.0,
    reason="every term of the product is positive; the sign alone is claimed",
    sense=">=",
)
NO_STATIONARY_POINT = CLAIMS.claim(
    "no-stationary-point",
    "descent always gains along the max-margin direction: no finite stationary point",
    statement="absence of finite stationary points",
    assuming=(
        trains("p"),
        UNIQUE_OPTIMUM.broken_by(lambda: tied_scores("p")),
        OPTIMUM_FEASIBLE.broken_by(lambda: enclosed_token("p")),
        EQUAL_SCORES_OR_ALL_SUPPORT.broken_by(three_scores_apart),
    ),
    contrast=CONTRAST_OF_DESCENT,
    data=lambda seed: [one_sequence(equal_scores=True), three_sequences(), two_scores(5.0)],
    exchange=2.1,
)
