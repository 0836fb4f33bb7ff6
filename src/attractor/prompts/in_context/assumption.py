"""The hypotheses on a task under which risks of long prompts tend to those of infinite ones.

With ``sigma`` the sub-Gaussian parameter of tokens given the task: (i) moments of ``sigma`` are
finite; (ii) ``ln(L)^4 E[L^(-c / sigma^2)] -> 0`` for every ``c > 0``; (iii) moments of tokens and
queries tilted by the scores of a head are bounded by a polynomial in ``sigma``, the same for all
heads in a ball; queries are 1-sub-Gaussian (arXiv 2512.11784, the assumption of the theorem on
general in-context learning, as far as it is known).

(ii) follows from (i): ``exp(-s) <= (k / (e s))^k`` gives ``E[L^(-c / sigma^2)] <= (k / (e c ln
L))^k E[sigma^(2 k)]``, so that a moment above the eighth is enough. And where ``P(sigma > t)``
falls like ``t^-index``, ``E[L^(-c / sigma^2)]`` falls like ``ln(L)^(-index / 2)``, whatever ``c``
is: (ii) asks for an index above 8, and no less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.prompts.in_context.losses import Finding, State, check_loss
from attractor.prompts.in_context.task import InContextTask, KnownLaw
from attractor.prompts.measures import Gaussian
from attractor.results import PlainText
from attractor.results.html import rows_table
from attractor.support.checks import check_count, check_flag, check_kind, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_shaped
from attractor.support.randomness import generator

DECAY_INDEX = 8.0
"""The index of the tail of ``sigma`` above which (ii) holds."""
MOMENT_INDEX = 12.0
"""The highest power of ``sigma`` in the published bounds, those on gradients in ``U``: what a
sample can show of (i) is that moments up to it are finite."""
_SHARE = 64
"""One in so many values is in the tail that an index is fitted to."""
_LEVEL = 2.576
"""Standard errors on both sides: intervals of 99 per cent."""
_SLOW = 0.04
"""What the variation of logarithms may lack of that of a power, as it tends to it slowly."""
_GAUSSIAN = 0.9
"""Squared variation of the excess of a normal number over its quantile at 1/64; 1 for exponential
tails, and less for lighter ones."""
_DEGREE = 8.0
"""Growth in ``sigma`` of the fourth moment of Gaussian tokens, tilted in a ball of heads."""
_TASKS, _TOKENS = 256, 2048
_BOUNDED = 1e-9


@dataclass(frozen=True)
class Tail:
    """The tail of positive numbers, fitted to the largest one in 64.

    Attributes:
        index: Estimate of the power with which it falls; infinity where it is bounded, or
            exponential.
        low: Lower end of an interval of 99 per cent.
        high: Upper end; infinite where the tail is lighter than a power, as then the estimate only
            bounds the index from below.
        power: Whether logarithms of excesses vary as those of a power do, or more: the ratio of
            their standard deviation to their mean is 1 for a power, and less for any lighter tail
            such as that of a log-normal law.
    """

    index: float
    low: float
    high: float
    power: bool


def tail_of(values: Float[np.ndarray, "count"]) -> Tail:
    """The index of the tail of positive numbers, with an interval.

    It is one over the shape ``xi`` of the generalized Pareto law of their excesses over a
    threshold, which a constant added to all numbers does not change; that of logarithms (Hill 1975)
    would grow without bound with the constant.

    Args:
        values: At least 128 of them.

    Raises:
        InvalidInputError: If there are fewer, or one is not positive.

    Source:
        Zhang and Stephens, "A new and efficient estimation method for the generalized Pareto
        distribution" (2009).
    """
    array = as_shaped("values", values, ("count",), largest=1e300)
    kept = check_count("values", len(array), 2 * _SHARE) // _SHARE
    ordered = np.sort(array)[::-1]
    if ordered[-1] <= 0:
        raise InvalidInputError("values", f"one is {ordered[-1]:.3g}", "Give positive numbers")
    logs = np.log(ordered[:kept] / ordered[kept])
    mean, half = float(logs.mean()), _LEVEL / math.sqrt(kept)
    if mean <= 1e-12:
        return Tail(math.inf, math.inf, math.inf, False)
    power = float(logs.std()) / mean + max(half, _SLOW) >= 1
    xi = _generalized_pareto_shape(np.expm1(logs[::-1]))
    room = half * (1 + abs(xi))
    index, low, high = (1 / x if x > 0 else math.inf for x in (xi, xi + room, xi - room))
    return Tail(index, low, high if power else math.inf, power)


def _generalized_pareto_shape(excess: Float[np.ndarray, "count"]) -> float:
    """The shape of the generalized Pareto law of excesses in increasing order.

    The likelihood is averaged over a grid of scales that the data suggest.
    """
    n = len(excess)
    grid = 30 + math.isqrt(n)
    b = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = b / (3 * excess[int(n / 4 + 0.5) - 1]) + 1 / excess[-1]
    shapes = np.log1p(-b[:, None] * excess).mean(axis=1)
    likelihood = n * (np.log(-b / shapes) - shapes - 1)
    weights = np.exp(likelihood - likelihood.max())
    return float(np.log1p(-(b @ weights) / weights.sum() * excess).mean())


def decay(
    sigma: Float[np.ndarray, "count"], lengths: Float[np.ndarray, "length"], constant: float = 1.0
) -> tuple[Float[np.ndarray, "length"], Float[np.ndarray, "length"]]:
    """``ln(L)^4 E[L^(-c / sigma^2)]``, averaged over draws of ``sigma``, and its standard error.

    Args:
        sigma: Draws.
        lengths: ``L``.
        constant: ``c``.

    Raises:
        InvalidInputError: If a number is not positive, or a length below 1.
    """
    draws = as_shaped("sigma", sigma, ("count",), largest=LARGEST)
    given = as_shaped("lengths", lengths, ("length",), largest=1e300)
    constant = check_number("constant", constant, above=0.0, most=LARGEST, example=1.0)
    for argument, least, wanted in (("sigma", draws, 1 / LARGEST), ("lengths", given, 1.0)):
        if least.min() < wanted:
            raise InvalidInputError(
                argument, f"one is {least.min():.3g}", f"Give numbers from {wanted:g} on"
            )
    log = np.log(given)
    terms = np.exp(-constant * log[:, None] / draws**2)
    error = terms.std(axis=1) / math.sqrt(len(draws))
    return log**4 * terms.mean(axis=1), log**4 * error


@dataclass(frozen=True, eq=False, repr=False)
class AssumptionCheck(PlainText):
    """The hypotheses on a task, decided one by one.

    Attributes:
        about: The task in words.
        findings: The hypotheses, in order.
    """

    about: str
    findings: tuple[Finding, ...]

    @property
    def state(self) -> State:
        """Whether all are met; not met if one is not."""
        states = [each.state for each in self.findings]
        for state in (State.NOT_MET, State.NOT_SETTLED):
            if state in states:
                return state
        return State.MET

    def __str__(self) -> str:
        """A line for each hypothesis."""
        lines = [f"{each.name:<16} {each.state.value:<12} {each.found}" for each in self.findings]
        return "\n".join([f"{self.about}: {self.state.value}", *("  " + line for line in lines)])

    def _html_parts(self) -> list[str]:

        rows = [(each.name, f"{each.state.value}: {each.found}") for each in self.findings]
        return [rows_table(f"{self.about}: {self.state.value}", rows)]


def check_assumption(
    task: InContextTask, *, seed: int = 0, draws: int = 2**18, proven: bool = True
) -> AssumptionCheck:
    """Decides the hypotheses of the theorem on a task.

    What the task knows of its law (``InContextTask.law``), or that its tokens are Gaussian given
    the task, decides exactly. The rest is measured, and decided by intervals of 99 per cent: "met"
    then means as far as the sample shows, and what it leaves open is "not settled".

    Args:
        task: The task.
        seed: Of what is drawn.
        draws: Values of ``sigma`` that its tail is fitted to.
        proven: Whether to use what is proven; False to measure everything.

    Raises:
        InvalidInputError: If a function of the task gives what cannot be used.
    """
    check_kind("task", task, InContextTask, "Derive a class from InContextTask")
    draws = check_count("draws", draws, 2 * _SHARE, 2**24)
    law = task.law if check_flag("proven", proven) else None
    tokens = _TOKENS if law is None else 2  # measured only where nothing is proven
    sample = task.sample(_TASKS, tokens, seed=seed, limit_tokens=2)
    sigma = task.sub_gaussian_parameters(draws, seed=seed)
    words = f"{draws:,} draws of sigma"
    if sigma is None:
        sigma, words = _largest_deviations(task, seed, max(draws // 64, 2 * _SHARE))
    gaussian = proven and sample.exact and isinstance(sample.limit, Gaussian)
    return AssumptionCheck(
        task.name,
        (
            check_loss(task.loss, sample.labels),
            moments_finding(sigma, law, words),
            decay_finding(sigma, law, words),
            tilted_finding(sample.prompts, law, gaussian=gaussian, seed=seed),
            query_finding(sample.queries, law),
        ),
    )


def moments_finding(
    sigma: Float[np.ndarray, "count"], law: KnownLaw | None = None, words: str = "draws"
) -> Finding:
    """(i) Whether polynomial moments of ``sigma`` are finite.

    Args:
        sigma: Draws of it.
        law: What is proven, or None.
        words: What the draws are.
    """
    if law is not None:
        met = law.tail_index == math.inf
        known = f"moments of sigma above {law.tail_index:g} are infinite"
        if law.tail_index in (0, math.inf):
            known = "every moment of sigma is finite" if met else "sigma is infinite"
        return Finding("moments", State.MET if met else State.NOT_MET, f"{known}: {law.reason}")
    return Finding("moments", *_by_tail(sigma, MOMENT_INDEX, words))


def decay_finding(
    sigma: Float[np.ndarray, "count"], law: KnownLaw | None = None, words: str = "draws"
) -> Finding:
    """(ii) Whether ``ln(L)^4 E[L^(-c / sigma^2)]`` tends to 0 for every ``c > 0``.

    Args:
        sigma: Draws of it.
        law: What is proven, or None.
        words: What the draws are.
    """
    values, errors = decay(sigma, np.array([1e3, 1e6, 1e12]))
    at = "/".join(f"{value:.3g} ({error:.1g})" for value, error in zip(values, errors, strict=True))
    measured = f"; c = 1 at 1e3/1e6/1e12 tokens: {at}"
    if law is not None:
        met = law.tail_index > DECAY_INDEX
        known = f"tail of sigma of index {law.tail_index:g}, above {DECAY_INDEX:g} needed"
        return Finding("decay", State.MET if met else State.NOT_MET, known + measured)
    state, found = _by_tail(sigma, DECAY_INDEX, words)
    return Finding("decay", state, found + measured)


def _by_tail(sigma: Float[np.ndarray, "count"], needed: float, words: str) -> tuple[State, str]:
    tail = tail_of(sigma)
    shape = "like a power" if tail.power else "lighter than a power"
    found = f"tail index {tail.index:.3g} in [{tail.low:.3g}, {tail.high:.3g}] of {words}, {shape}"
    if tail.low > needed:
        return State.MET, f"{found}, above {needed:g}"
    if tail.high < needed:
        return State.NOT_MET, f"{found}, below {needed:g}"
    return State.NOT_SETTLED, f"{found}, {needed:g} needed"


def tilted_finding(
    prompts: Float[np.ndarray, "task token dimension"],
    law: KnownLaw | None = None,
    *,
    gaussian: bool = False,
    seed: int = 0,
) -> Finding:
    """(iii) Whether tilted moments are bounded by a polynomial in ``sigma``.

    Measured, it asks for tails of tokens that are lighter than exponential ones, so that moments
    tilted by any head exist, and for fourth moments tilted by random heads in the unit ball which
    grow no faster than for Gaussian tokens, like the eighth power of the largest deviation.

    Args:
        prompts: Tokens of tasks.
        law: What is proven, or None.
        gaussian: Whether tokens are Gaussian given the task, which decides it.
        seed: Of the heads.
    """
    if law is not None or gaussian:
        met = gaussian or (law is not None and law.tilted_moments)
        reason = law.reason if law is not None else "tokens are Gaussian given the task"
        return Finding("tilted moments", State.MET if met else State.NOT_MET, reason)
    variation, error = _variation(prompts)
    low, high = variation - _LEVEL * error, variation + _LEVEL * error
    found = f"squared variation of tails of tokens {variation:.3g} in [{low:.3g}, {high:.3g}]"
    if low > _GAUSSIAN:
        words = f"{found}, 1 for exponential ones: moments tilted by long scores are infinite"
        return Finding("tilted moments", State.NOT_MET, words)
    growth, error = _growth(prompts, seed)
    found += f", below 1 needed; tilted fourth moments grow like sigma^{growth:.2g} ({error:.1g})"
    met = high < 1 and growth + _LEVEL * error <= _DEGREE
    return Finding("tilted moments", State.MET if met else State.NOT_SETTLED, found)


def _variation(prompts: Float[np.ndarray, "task token dimension"]) -> tuple[float, float]:
    """Squared ratio of deviation to mean of excesses of entries of tokens, 1 for exponential tails.

    Within tasks, whose scales differ; of the entry where it is largest, with its standard error.
    """
    kept = max(prompts.shape[1] // _SHARE, 2)
    sizes = np.abs(prompts - prompts.mean(axis=1, keepdims=True))
    kept = min(kept, prompts.shape[1] - 1)
    top = np.sort(np.partition(sizes, prompts.shape[1] - kept - 1, axis=1)[:, -kept - 1 :], axis=1)
    excess = top[:, 1:] - top[:, :1]
    mean = excess.mean(axis=1)
    bounded = mean <= _BOUNDED * top[:, -1]
    # Of k excesses with an exponential law the ratio has the expectation k / (k + 1).
    square = (excess.var(axis=1, ddof=1) / np.where(bounded, 1, mean) ** 2) * (kept + 1) / kept
    square = np.where(bounded, 0.0, square)
    worst = int(square.mean(axis=0).argmax())
    return float(square[:, worst].mean()), float(square[:, worst].std() / math.sqrt(len(square)))


def _growth(prompts: Float[np.ndarray, "task token dimension"], seed: int) -> tuple[float, float]:
    """The power of the largest deviation that tilted fourth moments grow with, over tasks."""
    m = prompts.shape[2]
    random = generator(seed, purpose="heads that tilt tokens")
    heads = random.standard_normal((len(prompts), m, m))
    heads /= np.linalg.norm(heads, axis=(1, 2), keepdims=True)
    queries = random.standard_normal((len(prompts), m))
    scores = np.einsum("tlm,tmk,tk->tl", prompts, heads, queries, optimize=True)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    moments = (weights * (prompts**2).sum(-1) ** 2).sum(1) / weights.sum(1)
    second = np.einsum("tlm,tln->tmn", prompts, prompts, optimize=True) / prompts.shape[1]
    sigma = np.log(np.sqrt(np.linalg.eigvalsh(second)[:, -1]))
    if float(sigma.std()) < 1e-2:  # one sigma for all tasks: nothing grows
        return 0.0, 0.0
    (slope, _), covariance = np.polyfit(sigma, np.log(moments), 1, cov=True)
    return float(slope), math.sqrt(covariance[0, 0])


def query_finding(
    queries: Float[np.ndarray, "task dimension"], law: KnownLaw | None = None
) -> Finding:
    """Whether queries are 1-sub-Gaussian; what is measured is that no variance is above 1.

    Args:
        queries: Draws.
        law: What is proven, or None.
    """
    if law is not None:
        met = law.query_parameter <= 1 + 1e-9
        words = f"sub-Gaussian parameter {law.query_parameter:.4g}"
        return Finding("queries", State.MET if met else State.NOT_MET, words)
    centered = queries - queries.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered / len(queries))
    squares = (centered @ vectors[:, -1]) ** 2
    error = float(squares.std()) / math.sqrt(len(queries))
    words = f"largest variance {values[-1]:.3g} ({error:.1g})"
    if values[-1] - _LEVEL * error > 1:
        return Finding("queries", State.NOT_MET, f"{words}: divide queries by its root")
    return Finding("queries", State.MET, f"{words}, at most 1 within its error")


def _largest_deviations(
    task: InContextTask, seed: int, count: int
) -> tuple[Float[np.ndarray, "count"], str]:
    """Largest standard deviations of tokens, which bound ``sigma`` from below, at least 1."""
    sample = task.sample(count, 256, seed=seed, limit_tokens=2)
    second = np.einsum("tlm,tln->tmn", sample.prompts, sample.prompts, optimize=True) / 256
    found = np.sqrt(np.maximum(np.linalg.eigvalsh(second)[:, -1], 1.0))
    return found, f"{count:,} largest deviations of prompts"
