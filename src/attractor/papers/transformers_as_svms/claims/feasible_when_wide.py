"""In wide enough embeddings every selection has a solution."""

from __future__ import annotations

import warnings

import numpy as np

from attractor.files.case import Case
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.transformers_as_svms.random_data import (
    first_token_queries,
    random_unit_tokens,
)
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.support.errors import DuplicateTokensWarning
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_SELECTIONS = 50
_SIZES = ((2, 2, 2), (3, 4, 4), (5, 5, 5), (4, 5, 4), (5, 6, 5), (3, 6, 5), (10, 11, 10))
_INDEPENDENT = 1e-9


def _choices(case: Case) -> np.ndarray:
    """The rows that choose between tokens."""
    return case.tokens.mask.sum(-1) > 1


def _rows_and_most(case: Case) -> tuple[int, int]:
    """The number of rows that choose, and the most tokens of a row."""
    return int(_choices(case).sum()), int(case.tokens.mask.sum(-1).max())


def _wide(case: Case) -> Check:
    rows, most = _rows_and_most(case)
    keys, queries = case.tokens.key_dimension, case.tokens.query_dimension
    return Check(
        keys >= most - 1 and queries >= rows,
        f"{most} tokens with keys in R^{keys}, {rows} queries in R^{queries}",
    )


WIDE = Assumption(
    "wide",
    "The dimension is at least the number of rows, and that of the tokens of a row less one.",
    _wide,
    lambda: random_unit_tokens(0, (5, 5, 3)),
)


def _independence(vectors: np.ndarray) -> float:
    """The least singular value of the vectors scaled to length one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return float(np.linalg.svd(scaled, compute_uv=False).min(initial=1.0))


def _general(case: Case) -> Check:
    tokens, rows = case.tokens, _choices(case)
    queries = _independence(tokens.queries[rows])
    masks = tokens.mask[rows]
    keys = tokens.keys[np.nonzero(rows)[0]]
    spreads = [
        _independence(own[seen][1:] - own[seen][0]) for own, seen in zip(keys, masks, strict=True)
    ]
    least = min(queries, *spreads)
    return Check(
        least > _INDEPENDENT,
        f"least singular value of the queries {queries:.3g}, of key differences {min(spreads):.3g}",
    )


GENERAL_POSITION = Assumption(
    "general position",
    "All queries, and the differences of the keys of every row, are linearly independent.",
    _general,
    lambda: _repeated_query(),
)


def _selections(case: Case, seed: int) -> np.ndarray:
    """Random tokens of each row, beside those of the case where it has one a row, ``(s, n, K)``."""
    random = np.random.default_rng([seed, 41])
    drawn = random.random((_SELECTIONS, *case.tokens.mask.shape))
    found = np.where(case.tokens.mask, drawn, -1.0).argmax(-1)
    one = (case.selection.mask.sum(-1) == 1).all()
    return np.concatenate([case.selection.mask.argmax(-1)[None], found]) if one else found


def _enough(case: Case, seed: int) -> int:
    rows, most = _rows_and_most(case)
    return max(rows, most - 1)


def _projected(vectors: np.ndarray, width: int, random: np.random.Generator) -> np.ndarray:
    """Vectors projected on a random subspace, in its coordinates, unless they are of few entries.

    Back in all entries they would be of its dimension to rounding alone.
    """
    dimension = vectors.shape[-1]
    if width >= dimension:
        return vectors
    basis = np.linalg.qr(random.standard_normal((dimension, width)))[0]
    return vectors @ basis


def _infeasible(case: Case, seed: int, width: int) -> Measurement:
    """Number of selections without a solution, of data projected to a dimension."""
    tokens, index = case.tokens, _selections(case, seed)
    if not width:  # all scores are zero there, and in some row there is a choice
        return Measurement(float(len(index)), len(index))
    random = np.random.default_rng([seed, 71])
    arrays = (
        _projected(tokens.keys, width, random),
        _projected(tokens.queries, width, random),
        tokens.mask,
    )
    keys, queries, mask = (np.tile(array, (len(index), 1, 1, 1)) for array in arrays)
    copies = Tokens(keys, queries, mask=mask)
    chosen = index[..., None] == np.arange(tokens.length)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateTokensWarning)
        problem = MarginProblem.from_selection(
            copies, Selection(chosen, np.zeros(chosen.shape[:-1], dtype=bool))
        )
    found = solve(problem)
    solved = np.isfinite(found.value)
    all_support = solved & (found.support | ~problem.present).all(-1)
    details = {
        "all others support tokens": int(all_support.sum()),
        "largest duality gap": float(np.max(found.gap[solved], initial=0.0)),
    }
    return Measurement(float((~solved).sum()), len(index), details)


def _repeated_query() -> Case:
    """Wide data in which two sequences have one query."""
    case = random_unit_tokens(0)
    queries = np.array(case.tokens.queries)
    queries[1] = queries[0]
    return case.replace(tokens=Tokens(case.tokens.keys, queries, case.tokens.labels))


FEASIBLE_WHEN_WIDE = CLAIMS.claim(
    "feasible-when-wide",
    "in dimension max(n, T - 1) or more, tokens of any selection can be separated",
    statement="separability of attention by overparameterization",
    assuming=(WIDE, GENERAL_POSITION),
    contrast=Comparison(
        "selections without a solution, of the data projected to max(n, T - 1) dimensions",
        _infeasible,
        _enough,
        "selections without a solution in half as many dimensions",
        lambda case, seed: _enough(case, seed) // 2,
        bound=0,
        reason="a count, of the case's selection and 50 random ones; each answer is certified",
    ),
    data=lambda seed: [
        *(random_unit_tokens(seed, size) for size in _SIZES),
        first_token_queries(seed),
        first_token_queries(seed, (5, 5, 5)),
    ],
    note="random data are in general position with probability one; the width is sufficient and "
    "far from necessary, as most data of half of it can be separated too",
)
