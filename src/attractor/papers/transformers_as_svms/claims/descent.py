"""Gradient descent on W: how smooth the gradient is, and where training leads."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.analysis.losses.smoothness import smoothness_constant
from attractor.attention import ConcaveHead, LinearHead
from attractor.files.case import Case
from attractor.margin import check_local_optimality, enumerate_selections
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Exponent, Measurement
from attractor.papers.hypotheses import (
    EQUAL_SCORES_OR_ALL_SUPPORT,
    FEASIBLE,
    GOOD_FIRST_GRADIENT,
    LOCALLY_OPTIMAL,
    ONE_TOKEN_A_ROW,
    OPTIMUM_FEASIBLE,
    SCORES_DIFFER,
    UNIQUE_OPTIMUM,
    first_step_ratio,
    trains,
)
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.max_margin.claims.descent import (
    CONTRAST_FROM_A_CONE,
    CONTRAST_FROM_ANY_START,
    contrast_with_one_token_fewer,
    every_locally_optimal,
)
from attractor.papers.max_margin.claims.objective import CONTRAST_OF_DESCENT
from attractor.papers.measurements.attended import attended, choosing
from attractor.papers.measurements.directions import (
    distance_from,
    steps_to_converge,
    trained,
    until_converged,
)
from attractor.papers.measurements.gradients import descent_directions, loss_gradients
from attractor.papers.measurements.near_misses import (
    faint_length,
    separates,
    separating_starts,
)
from attractor.papers.transformers_as_svms.data import (
    SMALL,
    equal_other_scores,
    random_unit_tokens,
    trapped,
)
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


def all_tokens_support(seed: int, size: tuple[int, int, int] = SMALL) -> Case:
    """Nearly orthogonal keys and queries with random scores: every margin is one.

    Args:
        seed: Names the data.
        size: Sequences n, tokens T and dimension d; for n and T at most d.
    """
    n, length, d = size
    random = np.random.default_rng([seed, 31])
    keys = np.eye(length, d) + 0.02 * random.standard_normal((n, length, d))
    queries = np.eye(n, d) + 0.02 * random.standard_normal((n, d))
    scores = random.standard_normal((n, length))
    return Case.from_scores(
        keys,
        scores,
        queries=queries,
        parameterization="W",
        about=f"nearly orthogonal tokens {size}, seed {seed}",
    )


NO_STATIONARY_POINT = CLAIMS.claim(
    "no-stationary-point",
    "descent on W always gains along the Frobenius solution: no finite stationary point",
    statement="absence of finite stationary points",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, EQUAL_SCORES_OR_ALL_SUPPORT),
    contrast=CONTRAST_OF_DESCENT,
    data=lambda seed: [
        make(number)
        for number in range(seed, seed + 3)
        for make in (equal_other_scores, all_tokens_support)
    ],
    holding=lambda: all_tokens_support(0),
    note="nothing like it is true of keys and queries: K = Q = 0 is always stationary; with equal "
    "scores descent gains along every direction that separates the best tokens",
)


def small_random_pairs(seed: int, count: int = 40) -> list[Case]:
    """Two sequences of two tokens in the plane with one query, trained from afar."""
    random = np.random.default_rng([seed, 37])
    found = []
    for number in range(count):
        start = random.standard_normal((2, 2))
        found.append(
            Case.from_scores(
                2 * random.standard_normal((2, 2, 2)),
                [[1.0, 0.0], [1.0, 0.0]],
                queries=[[1.0, 0.0], [1.0, 0.0]],
                parameterization="W",
                initial=8 * start / np.linalg.norm(start),
                about=f"two random sequences of one query, number {number} of seed {seed}",
            )
        )
    return found


GLOBAL_CONVERGENCE = CLAIMS.claim(
    "global-convergence",
    "without stationary points any start of W leads to the solution of the best tokens",
    statement="global convergence of gradient descent, read for any start",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, EQUAL_SCORES_OR_ALL_SUPPORT),
    contrast=CONTRAST_FROM_ANY_START,
    data=lambda seed: [
        trapped(0.0),
        trapped(8.0),
        equal_other_scores(seed, initial=np.zeros((4, 4))),
    ],
    holding=lambda: trapped(0.0),
    search=small_random_pairs,
    note="fails: that no finite matrix is stationary does not keep a sequence from staying at a "
    "wrong token for ever; from W = 0 and from near the solution it holds",
)


_QUANTITY = "largest 1 - cos of the second half of the way with the Frobenius solution"
_RATIO = 0.5
_EDGES = 4


def _distance_after_first_step(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    """From zero, and from where a first step leads that is long enough."""
    case = case if case.initial is None else case.replace(initial=None)
    zero = np.zeros((1, case.tokens.key_dimension, case.tokens.query_dimension))
    step = case.once("first step", lambda: descent_directions(case, zero)[0])
    length = faint_length(case) / first_step_ratio(case)
    starts = np.stack([np.zeros_like(step), length * step])
    return _distance(case, seed, starts, direction, length, "first_step")


def _distance_from_afar(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    """From the axis and the edge of the cone of matrices with half the best margin."""
    starts = separating_starts(case, seed, _RATIO, _EDGES)
    if case.initial is not None:
        given = np.asarray(case.initial, dtype=float).reshape(1, *starts.shape[1:])
        starts = given[separates(case, given, _RATIO)]
    if not len(starts):
        return Measurement(np.nan, 0, {"the start": "lies outside the cone"})
    length = float(np.linalg.norm(starts, axis=(-1, -2)).max())
    return _distance(case, seed, starts, direction, length, "length")


def _distance(
    case: Case, seed: int, starts: np.ndarray, direction: np.ndarray, length: float, name: str
) -> Measurement:
    """The distance of training from starts up to a length, which the details report by a name."""
    return until_converged(
        case,
        seed,
        lambda run: distance_from(run, direction, **{name: length}),
        steps=steps_to_converge(case, length),
        initial=starts[None],
        seeds=len(starts),
    )


GOOD_FIRST_GRADIENT_CONVERGENCE = CLAIMS.claim(
    "good-first-gradient",
    "if the first step from zero separates the best tokens, W goes to their solution",
    statement="global convergence of gradient descent under a good first gradient",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, GOOD_FIRST_GRADIENT),
    contrast=contrast_with_one_token_fewer(_QUANTITY, _distance_after_first_step),
    data=lambda seed: [random_unit_tokens(number) for number in range(seed, seed + 12)],
    holding=lambda: random_unit_tokens(18),
    note="from zero, and from the end of a first step so long that other tokens have next to no "
    "weight, as the statement has it; a quarter of random data meet the assumption",
)

LARGE_START = CLAIMS.claim(
    "large-start",
    "from far out with half the best margin, descent on W goes to the Frobenius solution",
    statement="global convergence of gradient descent from large starts around the solution",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, EQUAL_SCORES_OR_ALL_SUPPORT),
    contrast=contrast_with_one_token_fewer(_QUANTITY, _distance_from_afar),
    data=lambda seed: [
        make(number)
        for number in range(seed, seed + 3)
        for make in (equal_other_scores, all_tokens_support)
    ],
    note="what is large and how wide the cone is are derived, not quoted; such starts need no "
    "assumption on scores, as the best tokens are far ahead already",
)


_RADII = (30.0, 100.0)
"""Lengths of starts on a ray, in norms of its solution."""


def _worse_support(case: Case) -> Check:
    local = check_local_optimality(case.tokens, case.head, case.selection, case.solution())
    worst = float(local.worst_advantage)
    return Check(worst < 0, f"the smallest advantage over a support token is {worst:.3g}")


NOT_LOCALLY_OPTIMAL = Assumption(
    "not locally optimal",
    "Some support token of the selection has a higher score than the selected token.",
    _worse_support,
    lambda: random_unit_tokens(0),
)


def _kept(case: Case, seed: int, selection: Selection) -> Measurement:
    """Number of starts on the ray of a selection's solution that keep the selection."""
    solution = case.solution(selection=selection)
    if not np.isfinite(solution.value):
        return Measurement(np.nan, 0)
    starts = np.multiply.outer(_RADII, solution.W)[None]
    if case.parameterization == "p":
        starts = starts[..., 0]
    moved = case.replace(initial=None)
    steps = steps_to_converge(moved, _RADII[-1] * float(solution.value))
    run = trained(moved, seed, steps=steps, initial=starts, seeds=len(_RADII))
    kept = (attended(case, run.W()[0]).mask == selection.mask).all((-1, -2, -3))
    return Measurement(float(kept.sum()), len(kept), {"kept": kept.tolist(), "steps": steps})


def every_other_selection(case: Case) -> list[Case]:
    """A case for each feasible selection that is not locally optimal, of small data."""
    chosen = enumerate_selections(case.tokens)
    cases = [
        case.replace(chosen=chosen[number], about=f"{case.about}, tokens {chosen[number].index}")
        for number in range(len(chosen.mask))
    ]
    return [one for one in cases if FEASIBLE.check(one).met and _worse_support(one).met]


def _another_first_token() -> Case:
    """The best tokens of small data but in the first sequence, where the last token is selected."""
    case = random_unit_tokens(0)
    index = case.optimal.index.ravel()
    index[0] = case.tokens.length - 1
    return choosing(case, index, f"tokens {index}")


LOCAL_CONVERGENCE = CLAIMS.claim(
    "local-convergence",
    "from a cone around a locally optimal direction, descent on W converges to it",
    statement="local convergence of gradient descent",
    assuming=(trains("W"), ONE_TOKEN_A_ROW, FEASIBLE, LOCALLY_OPTIMAL),
    contrast=CONTRAST_FROM_A_CONE,
    data=lambda seed: [
        each
        for number in range(seed, seed + 3)
        for each in every_locally_optimal(random_unit_tokens(number))
    ],
    note="the cone is derived and narrow, and begins far out; true basins are larger",
)

ONLY_LOCAL_OPTIMA_ATTRACT = CLAIMS.claim(
    "only-local-optima-attract",
    "a selection that is not locally optimal is left, even from its own solution's ray",
    statement="directions to which gradient descent cannot converge",
    assuming=(trains("W", "p"), ONE_TOKEN_A_ROW, FEASIBLE, NOT_LOCALLY_OPTIMAL),
    contrast=Comparison(
        "starts on the ray of the selection's solution that keep it",
        _kept,
        lambda case, seed: case.selection,
        "starts on the ray of the best tokens' solution that keep those",
        lambda case, seed: case.optimal,
        bound=0,
        reason="a count, of starts at 30 and 100 norms of the solution",
    ),
    data=lambda seed: every_other_selection(random_unit_tokens(seed))[:8],
    holding=_another_first_token,
    note="a support token of higher score pulls attention away at any distance, if slowly",
)
