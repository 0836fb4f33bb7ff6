"""Problems made to break solvers, by what is nasty about them; each seed gives one problem."""

import warnings

import numpy as np
from margin_examples import unit

from attractor.margin import MarginProblem
from attractor.margin.selection import Selection
from attractor.support.errors import DuplicateTokensWarning
from attractor.tokens import Tokens


def from_tokens(keys, queries, chosen):
    tokens = Tokens(keys, queries)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateTokensWarning)
        return MarginProblem.from_selection(tokens, Selection.from_index(tokens, chosen))


def near_infeasible(rng, d=3):
    """Two constraints that all but contradict each other: a part in 10 to 10^9 is between them."""
    left, right = rng.normal(size=(8, d)), rng.normal(size=(8, d))
    W = rng.normal(size=(d, d))
    left *= np.sign(np.einsum("md,de,me->m", left, W, right))[:, None]
    right[1] = right[0]
    apart = rng.normal(size=d)
    apart *= np.sign(apart @ W @ right[0])
    left[1] = -left[0] + 10.0 ** -rng.uniform(1, 9) * apart
    return MarginProblem(left, right)


def contradictory(rng, d=3):
    """The same with nothing between them, or a random selection that seldom can be kept."""
    if rng.random() < 0.5:
        problem = near_infeasible(rng, d)
        left = problem.left.copy()
        left[1] = -left[0] * 2.0 ** rng.integers(-3, 4)
        return MarginProblem(left, problem.right)
    keys = unit(rng.normal(size=(8, 5, d)))
    return from_tokens(keys, unit(rng.normal(size=(8, 2))), rng.integers(0, 5, size=8))


def duplicated(rng, d=4):
    """Tokens that occur several times, at times the selected one."""
    keys = unit(rng.normal(size=(4, 5, d)))
    keys[:, 3], keys[:, 4] = keys[:, 1], keys[:, 2]
    queries = unit(rng.normal(size=(4, d)))
    queries[1], keys[1] = queries[0], keys[0]
    chosen = np.zeros(4, dtype=int)
    if rng.random() < 0.2:
        chosen[2] = 3
    return from_tokens(keys, queries, chosen)


def badly_scaled(rng, d=3):
    """Rows whose sizes lie anywhere from 1e-8 to 1e8, and bounds of one."""
    left, right = rng.normal(size=(7, d)), rng.normal(size=(7, d))
    left *= np.sign(np.einsum("md,de,me->m", left, rng.normal(size=(d, d)), right))[:, None]
    left *= 10.0 ** rng.uniform(-8, 8, size=(7, 1))
    return MarginProblem(left, right * 10.0 ** rng.uniform(-8, 8))


def badly_scaled_entries(rng, d=3):
    """Columns whose sizes lie anywhere from 1e-8 to 1e8."""
    left, right = rng.normal(size=(5, d)), rng.normal(size=(5, d))
    left *= np.sign(np.einsum("md,de,me->m", left, rng.normal(size=(d, d)), right))[:, None]
    return MarginProblem(left * 10.0 ** rng.uniform(-8, 8, size=d), right)


def rank_one(rng, d=4):
    """All keys on one line, or all queries."""
    keys, queries = unit(rng.normal(size=(4, 4, d))), unit(rng.normal(size=(4, d)))
    if rng.random() < 0.5:
        keys = rng.uniform(0.5, 2, size=(4, 4, 1)) * unit(rng.normal(size=d))
        return from_tokens(keys, np.abs(queries), keys[:, :, 0].argmax(-1))
    return from_tokens(keys, np.repeat(queries[:1], 4, axis=0), rng.integers(0, 4, size=4))


def single_row(rng, d=4):
    """One sequence."""
    return from_tokens(unit(rng.normal(size=(1, 6, d))), unit(rng.normal(size=(1, d))), [0])


def two_tokens(rng, d=4):
    """T = 2."""
    chosen = rng.integers(0, 2, size=6)
    return from_tokens(unit(rng.normal(size=(6, 2, d))), unit(rng.normal(size=(6, d))), chosen)


def one_constraint(rng, d=4):
    """A single inequality, of any size."""
    scale = 10.0 ** rng.uniform(-8, 8)
    return MarginProblem(
        rng.normal(size=(1, d)) * scale, rng.normal(size=(1, d)), rng.uniform(1, 2)
    )


def with_equalities(rng, d=3):
    """Equalities, some of them twice, and bounds of zero and either sign."""
    left, right = rng.normal(size=(9, d)), rng.normal(size=(9, d))
    left[1], right[1] = left[0], right[0]
    margins = np.einsum("md,de,me->m", left, rng.normal(size=(d, d)), right)
    equality = np.arange(9) < 4
    bounds = np.where(equality, margins, margins - rng.uniform(0, 1, size=9))
    if rng.random() < 0.5:  # as selections of several tokens ask for
        left[4:] *= np.sign(margins[4:])[:, None]
        left[2:4] = left[4:6] - left[6:8] * 0.5
        bounds = np.where(equality, 0.0, 1.0)
        left[0] = left[1] = 0.0
    return MarginProblem(left, right, bounds, equality)


KINDS = (
    near_infeasible, contradictory, duplicated, badly_scaled, badly_scaled_entries, rank_one,
    single_row, two_tokens, one_constraint, with_equalities,
)  # fmt: skip


def adversarial_problems(seed, count):
    """Problems of all kinds in turn."""
    rng = np.random.default_rng(seed)
    return [
        (kind.__name__, kind(rng)) for kind, _ in zip(KINDS * count, range(count), strict=False)
    ]
