"""Training of cases: starts, lengths, and the direction in which W goes to infinity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.attention import get_parameterization
from attractor.files.case import Case
from attractor.geometry.vectors import cosines
from attractor.papers.claim import Measurement
from attractor.training import Optimizer, Trajectory, get_optimizer, train

NORMALIZED = "normalized gradient descent:learning_rate=0.1"
"""The step that the papers' figures are drawn with."""
REACH = (200.0, 2000.0)
"""Least and largest default length of training, in norms of the margin solution."""
LENGTHS = (0.1, 5.0, 30.0)
"""Norms of random starts."""
CONVERGED = 1e-4
"""``1 - cos`` up to which training counts as going in a direction."""
CONVERGED_BECAUSE = (
    "going to and fro by a step of 0.1, over 100 norms of the solution or more, leaves about "
    "1e-6; one support token more or less makes 1e-2"
)
_NEARLY = 20.0
_PLAIN = 100.0
_FADED = 20.0
_LONGEST = 200_000
_ORDINARY = 4.0


def step_length(case: Case) -> float:
    """The published step of 0.1, or what it is in the units of keys of another order of size.

    Training on keys times c with steps divided by c is the same training. Lengths are divided by
    a power of two, and by none where the largest key and query give scores near one.
    """
    tokens = case.tokens
    keys = np.linalg.norm(tokens.keys, axis=-1)[tokens.mask.any(-2)]
    size = float(keys.max() * np.linalg.norm(tokens.queries, axis=-1).max())
    ordinary = size == 0 or 1 / _ORDINARY <= size <= _ORDINARY
    return 0.1 if ordinary else 0.1 * 2.0 ** -round(np.log2(size))


def random_starts(
    case: Case, seed: int, *, lengths: tuple[float, ...] = LENGTHS, each: int = 3
) -> dict[str, np.ndarray] | None:
    """Random directions of several norms, in units of ten steps; None where the case has a start.

    Args:
        case: The data.
        seed: Names the directions.
        lengths: Norms.
        each: Directions of each norm.

    Returns:
        By name, ``(1, starts, ...)``; each array has the norm if several are trained.
    """
    if case.initial is not None:
        return None
    random = np.random.default_rng([seed, 11])
    norms = np.repeat(lengths, each) * 10 * step_length(case)
    found = {}
    for name, shape in _shapes(case).items():
        drawn = random.standard_normal((len(norms), int(np.prod(shape))))
        drawn *= norms[:, None] / np.linalg.norm(drawn, axis=-1, keepdims=True)
        found[name] = drawn.reshape(1, len(norms), *shape)
    return found


def steps_to_converge(case: Case, distance: float) -> int:
    """Number of steps after which tokens off the support have relative weight below exp(-20).

    Their softmax weight is relative to that of support tokens; the number stays within the bounds
    of ``REACH``.

    Args:
        case: The data.
        distance: Distance of the start from the solution; ten times that is added.
    """
    solution = case.solution()
    norm = float(solution.value)
    reach = REACH[0]
    if np.isfinite(norm):
        problem = solution.problem
        slack = problem.margins(solution.W) - problem.bounds
        beyond = problem.present & ~problem.equality & ~solution.support
        least = float(np.where(beyond, slack, np.inf).min(initial=np.inf))
        reach = norm * float(np.clip(_FADED / least, *REACH))
    return int(np.clip((reach + 10 * distance) / step_length(case), 1000, _LONGEST))


def trained(
    case: Case,
    seed: int,
    *,
    steps: int | None = None,
    optimizer: str | Optimizer | None = None,
    seeds: int = 1,
    initial: Any = None,
    **other: Any,
) -> Trajectory:
    """Trains on a case; its own start, optimizer and number of steps take precedence.

    Args:
        case: The data.
        seed: The first seed.
        steps: Number of steps, unless the case has one; default: ``steps_to_converge`` for the
            longest start.
        optimizer: The optimizer, unless the case has one; default: normalized gradient descent
            with steps of ``step_length``.
        seeds: Number of starts, unless the case has one.
        initial: The start, unless the case has one: as ``train`` takes it, with an axis of
            instances and one of as many starts as ``seeds`` if there are several.
        **other: Other arguments of ``train``.
    """
    start, count = (initial, seeds) if case.initial is None else (case.initial, 1)
    steps = steps if case.steps is None else case.steps
    if steps is None:
        steps = steps_to_converge(case, 0.0 if start is None else _longest(case, start))
    chosen = optimizer if case.optimizer is None else case.optimizer
    if chosen is None:
        chosen = f"normalized gradient descent:learning_rate={step_length(case)!r}"
    step = get_optimizer(chosen)

    def compute() -> Trajectory:
        return train(
            case.tokens,
            case.head,
            step,
            parameterization=case.parameterization,
            initial=start,
            steps=steps,
            seeds=count,
            seed=seed,
            **other,
        )

    settings = (step.name, str(sorted(step.settings.items())), steps, count, seed)
    further = tuple(sorted((name, _identity(value)) for name, value in other.items()))
    return case.once(("trained", *settings, _identity(start), further), compute)


def until_converged(
    case: Case,
    seed: int,
    distance: Callable[[Trajectory], Measurement],
    *,
    steps: int,
    **training: Any,
) -> Measurement:
    """Measures a run, or one eight times as long where that one has nearly arrived.

    A support token that the start happens to favor only counts once training has made up for
    that, and until then the direction is the one without it.

    Args:
        case: The data.
        seed: The first seed.
        distance: Measures a run; up to ``CONVERGED`` it has arrived.
        steps: Number of steps, unless the case has one.
        **training: Other arguments of ``trained``.
    """
    measured = distance(trained(case, seed, steps=steps, **training))
    if case.steps is None and CONVERGED < measured.value <= _NEARLY * CONVERGED:
        measured = distance(trained(case, seed, steps=8 * steps, **training))
    return measured


def from_anywhere(
    case: Case,
    seed: int,
    distance: Callable[[Trajectory], Measurement],
    lengths: tuple[float, ...] = LENGTHS,
) -> Measurement:
    """Measures training from random starts, or from that of the case.

    Args:
        case: The data.
        seed: Names the starts.
        distance: Measures a run.
        lengths: Norms of the starts, as ``random_starts`` takes them.
    """
    starts = random_starts(case, seed, lengths=lengths)
    given = starts if case.initial is None else case.initial
    count = 1 if starts is None else next(iter(starts.values())).shape[1]
    steps = steps_to_converge(case, _longest(case, given))
    return until_converged(case, seed, distance, steps=steps, initial=starts, seeds=count)


def second_half(run: Trajectory) -> Float[np.ndarray, "instance seed d e"]:
    """The displacement of each trial over the second half of its path.

    If W tends to infinity, the directions of ``W`` and of ``W(end) - W(half way)`` have the same
    limit; but what training left behind at the beginning, which fades from the first like
    ``1 / ||W||``, is not in the second.
    """
    every = run.data["W"].transpose("instance", "seed", run.axis, "row", "column").to_numpy()
    distance = np.linalg.norm(every[:, :, -1:] - every, axis=(-1, -2))
    late = distance >= 0.5 * distance[:, :, :1]
    half = late.shape[-1] - 1 - late[..., ::-1].argmax(-1)
    middle = np.take_along_axis(every, half[..., None, None, None], axis=2)[:, :, 0]
    return every[:, :, -1] - middle


def distance_from(
    run: Trajectory, direction: Float[np.ndarray, "d e"], **details: Any
) -> Measurement:
    """The largest ``distances`` of a run from a direction.

    Args:
        run: A run on one data set with recorded matrices.
        direction: The margin solution that is predicted.
        **details: Further details to report, beside the start from which it is largest.
    """
    travelled = second_half(run)[0]
    found = distances(travelled, direction)
    worst = int(np.argmax(found))  # NaN if there is one
    start = run.data["W"].transpose("instance", "seed", run.axis, ...)[0, worst, 0]
    measured = {
        "1 - cos of W itself": float((1 - cosines(run.W()[0], direction)).max()),
        "length of the second half": float(np.linalg.norm(travelled, axis=(-1, -2)).min()),
        "start": start.to_numpy().tolist(),
    }
    return Measurement(float(found[worst]), len(found), measured | details)


def distances(
    ways: Float[np.ndarray, "*batch d e"], solution: Float[np.ndarray, "d e"]
) -> Float[np.ndarray, "*batch"]:
    """``1 - cos`` of the angles between ways and a solution, for ways of 100 of its norms.

    The angle of a shorter way falls as it goes on, like one over its length, and so it is scaled:
    by ``(length / 100 norms)^2``.
    """
    lengths = np.linalg.norm(ways, axis=(-1, -2)) / np.linalg.norm(solution)
    return (1 - cosines(ways, solution)) * np.minimum(lengths / _PLAIN, 1) ** 2


def _longest(case: Case, start: Any) -> float:
    """The largest norm of an array that training starts at."""
    shapes = _shapes(case)
    given = start if isinstance(start, Mapping) else {next(iter(shapes)): start}
    norms = [
        np.linalg.norm(np.reshape(array, (-1, int(np.prod(shapes[name])))), axis=-1).max()
        for name, array in given.items()
    ]
    return float(max(norms))


def _shapes(case: Case) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what is trained."""
    layer = get_parameterization(case.parameterization)
    return layer.shapes(case.tokens.key_dimension, case.tokens.query_dimension)


def _identity(value: Any) -> Any:
    """A hashable value that distinguishes arguments."""
    if isinstance(value, Mapping):
        return tuple((name, _identity(value[name])) for name in sorted(value))
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        return array.shape, array.tobytes()
    return value if value is None or isinstance(value, str | int | float | bool) else id(value)
