"""Limits of the regularization paths of W, and of keys and queries."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.geometry import Frobenius, Geometry, Nuclear
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import OPTIMUM_FEASIBLE, UNIQUE_OPTIMUM, trains
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.max_margin.claims.paths import CONTRAST_OF_PATHS
from attractor.papers.measurements.margin_ratios import margin_ratios
from attractor.papers.measurements.paths import end_of_path, path
from attractor.papers.transformers_as_svms.random_data import (
    SMALL,
    enclosed_token,
    random_unit_tokens,
    tied_scores,
)
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)


def _one_query(case: Case) -> Check:
    return Check(
        case.tokens.queries_per_sequence == 1,
        f"{case.tokens.queries_per_sequence} queries a sequence",
    )


def _several_queries(case: Case) -> Check:
    check = _one_query(case)
    return Check(not check.met, check.found)


_ONE_QUERY = Assumption(
    "one query", "Every sequence has one query.", _one_query, lambda: _causal(0)
)
_SEVERAL_QUERIES = Assumption(
    "several queries",
    "Every sequence has several queries.",
    _several_queries,
    lambda: random_unit_tokens(0),
)


def _own_norm(case: Case, seed: int) -> Geometry:
    return Nuclear() if case.parameterization == "KQ" else Frobenius()


def _other_norm(case: Case, seed: int) -> Geometry:
    return Frobenius() if case.parameterization == "KQ" else Nuclear()


def _short_of(case: Case, seed: int, geometry: Geometry) -> Measurement:
    """``1 -`` the margin ratio of the path in a norm."""
    run = path(case, seed, unit=float(case.solution(_own_norm(case, seed), case.optimal).value))
    ratios = margin_ratios(run.data["W"].to_numpy()[0, 0], case.solution(geometry, case.optimal))
    details = {
        "radii": run.steps.tolist(),
        "margin ratios at these": ratios.tolist(),
        "optimality": float(run.data["optimality"].max()),
    }
    return end_of_path(1 - ratios, 1, details)


_IN_OWN_NORM = Comparison[Case, Geometry](
    "1 - margin ratio of the path in its own norm, at 10,000 norms of the solution",
    _short_of,
    _own_norm,
    "1 - margin ratio of the path in the norm of the other parameterization",
    _other_norm,
    bound=1e-3,
    reason="it falls like c / R; the bound lets c be 10 norms, where 1 is usual",
)
_W_NOTE = "of a linear head and the logistic loss; the lowest minimum found is followed"
_KQ_NOTE = (
    "measured by the margin ratio, since nuclear solutions need not be unique; where the two "
    "norms have one solution the claim says no more than that of W, and is vacuous"
)


def _causal(seed: int, parameterization: str = "W") -> Case:
    """Self-attention in which every position attends to its past and predicts its own label."""
    case = random_unit_tokens(seed, (2, 4, 4), parameterization)
    labels = np.sign(np.random.default_rng([seed, 29]).standard_normal((2, 4)))
    tokens = Tokens.causal(case.tokens.keys, labels)
    return case.replace(tokens=tokens, about=f"causal self-attention (2, 4, 4), seed {seed}")


def _tied_sequence() -> Case:
    """Causal self-attention over sequences that begin with the same token twice."""
    case = _causal(0)
    keys = np.array(case.tokens.keys)
    keys[:, 1] = keys[:, 0]
    return case.replace(tokens=Tokens.causal(keys, case.tokens.labels))


def _contradiction() -> Case:
    """Two queries that are the same and want different tokens."""
    tokens = _causal(0).tokens
    queries = np.repeat(tokens.queries[:, :1], 2, axis=1)
    return _causal(0).replace(tokens=Tokens(tokens.keys, queries, np.tile([1.0, -1.0], (2, 1))))


GLOBAL_PATH = CLAIMS.claim(
    "global-path",
    "minimizers W over balls of growing radius tend to the Frobenius solution's direction",
    statement="regularization path of the attention matrix",
    assuming=(trains("W"), _ONE_QUERY, UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE),
    contrast=CONTRAST_OF_PATHS,
    data=lambda seed: [
        *(random_unit_tokens(number) for number in range(seed, seed + 4)),
        random_unit_tokens(seed, (6, 8, 10)),
    ],
    note=_W_NOTE,
)

KEY_QUERY_PATH = CLAIMS.claim(
    "key-query-path",
    "minimizers (K, Q) over balls of growing radius tend to nuclear solutions",
    statement="regularization path of keys and queries",
    assuming=(
        trains("KQ"),
        _ONE_QUERY.broken_by(lambda: _causal(0, "KQ")),
        UNIQUE_OPTIMUM.broken_by(lambda: tied_scores("KQ")),
        OPTIMUM_FEASIBLE.broken_by(lambda: enclosed_token("KQ")),
    ),
    contrast=_IN_OWN_NORM,
    data=lambda seed: [random_unit_tokens(number, SMALL, "KQ") for number in range(seed, seed + 4)],
    note=_KQ_NOTE,
)

SEQUENCE_PATH = CLAIMS.claim(
    "sequence-path",
    "with one matrix for all queries of a sequence the path leads to their joint solution",
    statement="regularization path of sequence-to-sequence and causal attention",
    assuming=(
        trains("W", "KQ"),
        _SEVERAL_QUERIES,
        UNIQUE_OPTIMUM.broken_by(_tied_sequence),
        OPTIMUM_FEASIBLE.broken_by(_contradiction),
    ),
    contrast=_IN_OWN_NORM,
    data=lambda seed: [
        *(_causal(number) for number in range(seed, seed + 3)),
        _causal(seed, "KQ"),
    ],
    note=f"{_W_NOTE}; Frobenius for W, nuclear for keys and queries",
)
