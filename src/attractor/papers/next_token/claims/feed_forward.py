"""The feed-forward layer: its path, its gradient, its logits."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.linear import LinearTrajectory
from attractor.corpora.two_stages.two_stage_measures import direction_distance
from attractor.papers.claim import Comparison, Exponent, Measurement
from attractor.papers.corpus_hypotheses import ORTHOGONAL, ORTHONORMAL, REALIZABLE, ZERO_START
from attractor.papers.ledger.claim import once
from attractor.papers.measurements.near_misses import turned
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims._published_bounds import (
    Approach,
    direction_contrast,
    norm_contrast,
)
from attractor.papers.next_token.data import (
    grammar,
    random_orders,
    realizable,
    with_long_embeddings,
)
from attractor.papers.next_token.training import (
    RANDOM_SCALE,
    exponent,
    feed_forward_solution,
    feed_forward_weights,
    first_stage,
    slope,
    travelled,
    with_collocation,
)
from attractor.support.randomness import generator

_FROM_ZERO = (REALIZABLE, ORTHONORMAL, ZERO_START)


def _uncentered(case: CorpusCase, seed: int) -> np.ndarray:
    """One at the token that follows, zero at all others."""
    known, labels = with_collocation(case)
    return np.eye(case.corpus.vocabulary_size)[labels].T @ case.table[known]


def _from_line(case: CorpusCase, seed: int, direction: np.ndarray) -> Measurement:
    """The largest distance of W(t) from ``t eta`` times a direction, over ``t eta``."""
    run = first_stage(case, seed)
    distance = travelled(case, run)
    off = feed_forward_weights(run) / distance[:, None, None]
    off -= direction / np.linalg.norm(direction)
    gap = distance / float(feed_forward_solution(case).value)
    stated = np.log1p((case.corpus.vocabulary_size - 1) * np.exp(-gap))
    error = float(np.abs(_losses(run) / stated - 1).max())
    return Measurement(
        float(np.linalg.norm(off, axis=(-1, -2)).max()),
        len(off),
        {"largest relative error of the mean loss log(1 + (V - 1) exp(-gap))": error},
    )


FEED_FORWARD_EXACT = CLAIMS.claim(
    "feed-forward-exact",
    "from zero the feed-forward layer goes along its max-margin solution at every step",
    statement="training dynamics of the feed-forward layer",
    assuming=_FROM_ZERO,
    contrast=Comparison(
        "largest distance of W(t) from t eta W*/|W*|, over t eta",
        _from_line,
        lambda case, seed: feed_forward_solution(case).W,
        "the same for one at the token that follows and zero at all others, in place of W*",
        _uncentered,
        bound=1e-10,
        reason="rounding of some thousand steps, and of the solver",
    ),
    data=realizable,
    note="derived, not quoted: what the published bounds on norm and direction become from zero",
)


def _norms_over_way(case: CorpusCase, seed: int) -> np.ndarray:
    run = first_stage(case, seed)
    return np.linalg.norm(feed_forward_weights(run), axis=(-1, -2)) / travelled(case, run)


FEED_FORWARD_NORM = CLAIMS.claim(
    "feed-forward-norm",
    "the norm of the feed-forward layer lies between t eta/(2 |W*|) and t eta",
    statement="norm of the feed-forward layer",
    assuming=_FROM_ZERO,
    contrast=norm_contrast(
        _norms_over_way,
        feed_forward_solution,
        "rounding; from zero the norm is t eta, and the upper bound met with equality",
    ),
    data=realizable,
    holding=lambda: random_orders(0),
    note="the lower bound never binds: from zero the norm is 2 |W*| times as large",
    exchange="twice either bound is one: from zero the norm is t eta",
)


@once
def _approach(case: CorpusCase, seed: int) -> Approach:
    """From a random start, with the published bound but for its constant."""
    run, norm = first_stage(case, seed, random=True), float(feed_forward_solution(case).value)
    steps = run.steps[1:].astype(float)
    shape = norm**3 * np.log(2 * case.corpus.vocabulary_size) * np.log(steps)
    distance = direction_distance(feed_forward_weights(run), feed_forward_solution(case).W)
    return Approach(steps, distance, shape / travelled(case, run))


FEED_FORWARD_DIRECTION_BOUND = CLAIMS.claim(
    "feed-forward-direction-bound",
    "1 - cos to the feed-forward solution is at most 5 |W*|^3 log(2V) log(t)/(t eta)",
    statement="direction of the feed-forward layer",
    assuming=(REALIZABLE, ORTHONORMAL),
    contrast=direction_contrast(_approach, 5.0, "5 |W*|^3 log(2V) log(t)/(t eta)"),
    data=realizable,
    note="as printed (12 in place of 5 in the appendix), from a random start with entries of "
    "standard deviation 0.06: from zero the direction is exact. It never binds: a constant "
    "hundreds to thousands of times smaller would do, and the bound is more than one, and so says "
    "nothing, up to hundreds of thousands of the published steps; it falls like log(t)/t while "
    "1 - cos falls like 1/t^2",
    exchange="an upper bound, of which twice is one as well",
)


def _off_exponent(case: CorpusCase, seed: int, expected: Exponent) -> Measurement:
    """Distance of the exponent of ``1 - cos`` in t from another, from a random start."""
    steps, distance, _ = _approach(case, seed)
    found = exponent(distance, steps)
    details = {"exponent": found, "1 - cos in the end": float(distance[-1])}
    return Measurement(abs(found - expected), 1, details)


FEED_FORWARD_DIRECTION = CLAIMS.claim(
    "feed-forward-direction",
    "from a random start 1 - cos to the feed-forward solution falls like 1/t^2",
    statement="direction of the feed-forward layer, its rate",
    assuming=(REALIZABLE, ORTHONORMAL),
    contrast=Comparison(
        "distance of the exponent of 1 - cos in t from -2",
        _off_exponent,
        lambda *_: Exponent(-2),
        "distance of the exponent from -1, that of the published bound",
        lambda *_: Exponent(-1),
        bound=0.1,
        reason="what the start left behind stays, while the norm grows; lower orders of 1/t",
    ),
    data=realizable,
    note="published is an upper bound that falls like log(t)/t, see feed-forward-direction-bound; "
    "the part of the start along which all logits are the same is never moved, so that no start "
    "but one without it falls faster",
)


def _off_rate(case: CorpusCase, seed: int, rate: float) -> Measurement:
    """Relative distance of the rate of the loss, in units of ``eta/|W*|``, from another."""
    run = first_stage(case, seed)
    gap = travelled(case, run) / float(feed_forward_solution(case).value)
    found = -slope(np.log(np.expm1(_losses(run))), gap)
    return Measurement(abs(found / rate - 1), 1, {"rate over eta/|W*|": found})


def _over_loss_bound(case: CorpusCase, seed: int, rate: float) -> Measurement:
    """The largest logarithm of the mean loss over ``V exp(-r gap)``, for a gap of t eta/|W*|."""
    run = first_stage(case, seed)
    gap = travelled(case, run) / float(feed_forward_solution(case).value)
    excess = np.log(_losses(run)) - np.log(case.corpus.vocabulary_size) + rate * gap
    details = {"in the end": float(excess[-1])}
    return Measurement(float(excess.max()), len(excess), details)


def _losses(run: LinearTrajectory) -> np.ndarray:
    return run.data["loss"].isel(instance=0, seed=0).to_numpy()[1:]


FEED_FORWARD_LOSS = CLAIMS.claim(
    "feed-forward-loss",
    "from zero exp(mean loss) - 1 of the feed-forward layer falls exactly like exp(-t eta/|W*|)",
    statement="loss of the feed-forward layer, its rate",
    assuming=_FROM_ZERO,
    contrast=Comparison(
        "relative distance of the rate of exp(loss) - 1 from eta/|W*|",
        _off_rate,
        lambda *_: 1.0,
        "its relative distance from eta/(4 |W*|), the rate that is published",
        lambda *_: 0.25,
        bound=1e-6,
        reason="the rate is exact but for rounding",
    ),
    data=realizable,
    note="published is the slower rate as an upper bound, see feed-forward-loss-bound; once the "
    "loss is small it is exp(loss) - 1 itself",
)


FEED_FORWARD_LOSS_BOUND = CLAIMS.claim(
    "feed-forward-loss-bound",
    "from zero the mean loss of the feed-forward layer is at most V exp(-t eta/(4 |W*|))",
    statement="loss of the feed-forward layer",
    assuming=_FROM_ZERO,
    contrast=Comparison(
        "largest logarithm of the mean loss over V exp(-t eta/(4 |W*|))",
        _over_loss_bound,
        lambda *_: 1 / 4,
        "the same with a quarter more than the true rate, V exp(-1.25 t eta/|W*|)",
        lambda *_: 1.25,
        bound=0.0,
        reason="the bound itself",
    ),
    data=realizable,
    note="the rate as printed; the constant is hidden in an O(), and V is that of the bound on the "
    "loss of stage two. It never binds: the rate is four times as large. In the appendix |W*| is "
    "squared, which makes the bound weaker still",
    exchange="the true rate is four times the published one",
)


_ANGLES = np.linspace(0, np.pi, 13)
_GAPS = np.array([0.1, 1.0, 5.0, 30.0])
"""Gaps of the logits that a matrix along the solution would have."""
_HALF_A_RADIAN = 0.5


def feed_forward_gradients(
    case: CorpusCase, W: Float[np.ndarray, "step V d"]
) -> Float[np.ndarray, "step V d"]:
    """The gradients of ``- sum_x log softmax(W x)_n(x)``.

    The entry of the label is minus the sum of the others, so that it has digits where its
    probability is one.
    """
    known, labels = with_collocation(case)
    logits = np.einsum("xd,svd->sxv", case.table[known], W)
    is_label = labels[:, None] == np.arange(case.corpus.vocabulary_size)
    found = np.where(is_label, 0.0, softmax(logits, axis=-1))
    found = np.where(is_label, -found.sum(-1, keepdims=True), found)
    return np.einsum("sxv,xd->svd", found, case.table[known])


def _needed(
    case: CorpusCase, W: Float[np.ndarray, "step V d"], direction: Float[np.ndarray, "V d"]
) -> Float[np.ndarray, "step"]:
    """The a of ``<W/|W|, g> = (1 + a) <U, g>`` at each matrix; infinite where U is no descent."""
    gradients = feed_forward_gradients(case, W)
    along_own = (W * gradients).sum((-1, -2)) / np.linalg.norm(W, axis=(-1, -2))
    along = (direction * gradients).sum((-1, -2)) / np.linalg.norm(direction)
    return np.where(along < 0, along_own / along - 1, np.inf)


def _beyond_published(
    case: CorpusCase, seed: int, direction: Float[np.ndarray, "V d"]
) -> Measurement:
    """The largest a needed, less the published one, where training goes."""
    runs = [first_stage(case, seed), first_stage(case, seed, random=True)]
    W = np.concatenate([feed_forward_weights(run) for run in runs])
    norm, norms = float(feed_forward_solution(case).value), np.linalg.norm(W, axis=(-1, -2))
    published = 2 * norm * np.log(2 * case.corpus.vocabulary_size) / norms
    needed = _needed(case, W, direction)
    details = {"largest a needed": float(needed.max()), "least published": float(published.min())}
    return Measurement(float((needed - published).max()), len(W), details)


def _solution(case: CorpusCase, seed: int) -> Float[np.ndarray, "V d"]:
    return feed_forward_solution(case).W


def _turned_solution(case: CorpusCase, seed: int) -> Float[np.ndarray, "V d"]:
    return turned(feed_forward_solution(case).W, _HALF_A_RADIAN, seed)


_STATEMENT = "gradient of the feed-forward layer along its own direction and the solution's"

FEED_FORWARD_GRADIENT = CLAIMS.claim(
    "feed-forward-gradient",
    "along its own direction the loss falls at most little faster than along the solution",
    statement=_STATEMENT,
    assuming=(REALIZABLE, ORTHONORMAL),
    contrast=Comparison(
        "largest a of <W/|W|, grad> = (1 + a) <W*/|W*|, grad>, less 2|W*| log(2V)/|W|",
        _beyond_published,
        _solution,
        "the same with W* turned by half a radian",
        _turned_solution,
        bound=1e-9,
        reason="rounding; the inequality has slack at every step, and directions more than "
        "arccos(1/(1 + a)) from W* do not meet it",
    ),
    data=realizable,
    note="checked from zero and from a random start, until logits have gaps of 240 or more: where "
    "|W| is small the published a is large and leaves out few directions. No a is needed at all, "
    "see feed-forward-gradient-without-correction",
)


def _needed_anywhere(
    case: CorpusCase, seed: int, direction: Float[np.ndarray, "V d"]
) -> Measurement:
    """The largest a needed at matrices of many lengths and of every angle with the solution."""
    solution, draws = feed_forward_solution(case), generator(seed, purpose="matrices")
    across = draws.normal(size=(len(_ANGLES), *solution.W.shape))
    across -= (across * solution.W).sum((-1, -2), keepdims=True) * solution.W / solution.value**2
    across *= solution.value / np.linalg.norm(across, axis=(-1, -2), keepdims=True)
    angle = _ANGLES[:, None, None]
    rays = np.cos(angle) * solution.W + np.sin(angle) * across
    W = (_GAPS[:, None, None, None] * rays).reshape(-1, *solution.W.shape)
    return Measurement(float(_needed(case, W, direction).max()), len(W))


FEED_FORWARD_GRADIENT_EXACT = CLAIMS.claim(
    "feed-forward-gradient-without-correction",
    "at no matrix does the loss fall faster along its own direction than along the solution",
    statement=f"{_STATEMENT}, without the correction",
    assuming=(REALIZABLE, ORTHONORMAL),
    contrast=Comparison(
        "largest a of <W/|W|, grad> = (1 + a) <W*/|W*|, grad>, wherever W is",
        _needed_anywhere,
        _solution,
        "the same with W* turned by half a radian",
        _turned_solution,
        bound=1e-9,
        reason="rounding: along W* it is an equality",
    ),
    data=realizable,
    note="derived, not quoted: the loss is convex in the gaps and the same whatever their order, "
    "so that it falls most at given sum of gaps where all are the same, and W* is along the sum of "
    "their gradients",
)


def _logit_gaps(case: CorpusCase, seed: int) -> Float[np.ndarray, "token other"]:
    """The gaps of each token's follower's logit over every other one, after stage one."""
    W = feed_forward_weights(first_stage(case, seed))[-1]
    known, labels = with_collocation(case)
    logits = case.table[known] @ W.T
    gaps = logits[np.arange(len(labels)), labels][:, None] - logits
    other = labels[:, None] != np.arange(case.corpus.vocabulary_size)
    return gaps[other].reshape(len(labels), -1)


def _spread(case: CorpusCase, seed: int, start: float) -> Measurement:
    """The largest difference of two other logits, from entries of a standard deviation."""
    gaps = _logit_gaps(case.replace(initial_scales=(start, 0.0)), seed)
    others = gaps.shape[1]
    return Measurement(float(np.ptp(gaps, axis=1).max()), len(gaps) * (others > 1))


EQUAL_LOGITS = CLAIMS.claim(
    "equal-other-logits",
    "from zero the feed-forward layer gives all tokens but the follower the same logit",
    statement="equal logits of tokens that do not follow",
    assuming=_FROM_ZERO,
    contrast=Comparison(
        "largest difference of two other logits of a token, which lie about 10 below the follower",
        _spread,
        lambda *_: 0.0,
        "the same from a random start",
        lambda *_: RANDOM_SCALE,
        bound=1e-10,
        reason="rounding: by symmetry they are the same at every step",
    ),
    data=realizable,
)


def _published_gap(case: CorpusCase, seed: int) -> float:
    """The gap ``D = T eta / (4 |W*|^2)`` that the published bounds are multiples of."""
    distance = travelled(case, first_stage(case, seed))[-1]
    return float(distance) / (4 * float(feed_forward_solution(case).value) ** 2)


def _true_gap(case: CorpusCase, seed: int) -> float:
    """``T eta / |W*|``, which every gap is from zero."""
    return 4 * float(feed_forward_solution(case).value) * _published_gap(case, seed)


def _least(case: CorpusCase, seed: int, bound: float) -> Measurement:
    gaps = _logit_gaps(case, seed)
    gap = float(gaps.min())
    return Measurement(gap / bound, gaps.size, {"gap": gap})


LOGIT_GAP_LEAST = CLAIMS.claim(
    "logit-gaps-from-below",
    "after stage one each follower leads by T eta/(4 |W*|^2) or more",
    statement="logit gaps after training the feed-forward layer, lower bound",
    assuming=_FROM_ZERO,
    contrast=Comparison(
        "smallest gap over T eta/(4 |W*|^2)",
        _least,
        _published_gap,
        "smallest gap over 1.01 T eta/|W*|, just above what it is",
        lambda case, seed: 1.01 * _true_gap(case, seed),
        bound=1.0,
        reason="the bound itself",
        sense=">=",
    ),
    data=realizable,
    note="published for T beyond about 1e9 at ordinary sizes; it holds at every T, with gaps "
    "4 |W*| times as large",
    exchange="gaps are 4 |W*| times the bound, and |W*| is 1 or more",
)


def _largest(case: CorpusCase, seed: int, share: float) -> Measurement:
    """The largest gap over its upper bound, of which ``T eta/(4 |W*|^2)`` is a share."""
    gaps = _logit_gaps(case, seed)
    bound = _published_gap(case, seed) / share
    true = _true_gap(case, seed)
    details = {"gap": float(gaps.max()), "T eta/|W*|": true, "upper bound": bound}
    return Measurement(float(gaps.max()) / bound, gaps.size, details)


LOGIT_GAP_LARGEST = CLAIMS.claim(
    "logit-gaps-from-above",
    "after stage one no follower leads by more than 3 T eta/(4 |W*|^2)",
    statement="logit gaps after training the feed-forward layer, upper bound",
    assuming=(REALIZABLE, ORTHOGONAL, ZERO_START),
    contrast=Comparison(
        "largest gap over 3 T eta/(4 |W*|^2)",
        _largest,
        lambda *_: 1 / 3,
        "largest gap over 2 T eta/(4 |W*|^2)",
        lambda *_: 1 / 2,
        bound=1.0,
        reason="the bound itself",
    ),
    data=lambda seed: [with_long_embeddings(grammar(), 3.0), *realizable(seed)],
    note="from zero the gap is T eta/|W*| at every T, and so above the bound wherever |W*| is more "
    "than 3/4; orthonormal embeddings, of which it is published, have |W*|^2 = V - 1. The proof "
    "takes a lower bound of the norm of the layer for an upper one",
)
