"""Attention trained on labels among the tokens of their contexts, which may conflict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from attractor.attention import Head
from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.mechanics import (
    BallPath,
    ball_path,
    label_mass_tokens,
    measure_limits,
    vocabulary_tokens,
)
from attractor.corpora.mechanics.cyclic_part import chord_test
from attractor.corpora.two_stages.two_stage_measures import direction_distance
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.next_token.claims import MECHANICS_CLAIMS
from attractor.papers.next_token.conflicting_data import (
    CONFLICTS,
    LABELS_PRESENT,
    NO_CONFLICTS,
    PRIORITIES,
    SEPARABLE,
    SOME_ORDER,
    limits,
    random_labels,
)
from attractor.papers.next_token.decades import DECADES, last_decade
from attractor.papers.once import once_a_case
from attractor.support.randomness import generator
from attractor.tokens import Tokens
from attractor.training import (
    Optimizer,
    Trajectory,
    gradient_descent,
    normalized_gradient_descent,
    train,
)

_STEP = 0.05
_REACH = 40
"""Length of training, in norms of the solution of the graphs' margin problem."""
_LONGEST = 40_000
_RADII = np.geomspace(1, 1000, 7)
_LEARNING_RATE = 0.5


_Objective = Callable[[CorpusCase], tuple[Tokens, Head, str]]


def _violations(case: CorpusCase, seed: int, objective: _Objective) -> Measurement:
    """The number of random chords that a loss rises above."""
    found = chord_test(*objective(case), seed=seed)
    details = {"chords strictly above": int(found.strict.sum())}
    return Measurement(float(found.violations.sum()), found.heights.size, details)


def _label_mass(case: CorpusCase) -> tuple[Tokens, Head, str]:
    return *label_mass_tokens(case.corpus, case.table), "negative_log"


def _logits(case: CorpusCase) -> tuple[Tokens, Head, str]:
    return *vocabulary_tokens(case.corpus, case.table), "cross_entropy"


LABEL_MASS_CONVEX = MECHANICS_CLAIMS.claim(
    "label-mass-loss-is-convex",
    "the log-loss of the attention on the label is convex in the attention matrix",
    statement="convexity of the training loss",
    assuming=(LABELS_PRESENT, SOME_ORDER),
    contrast=Comparison(
        "number of random chords that the loss rises above",
        _violations,
        lambda *_: _label_mass,
        "number of them for the cross-entropy of logits that the embeddings give",
        lambda *_: _logits,
        bound=0.0,
        reason="rounding is allowed for",
    ),
    data=lambda seed: [
        *(random_labels(number, cyclic=True) for number in range(seed, seed + 3)),
        *(random_labels(number, cyclic=False) for number in range(seed, seed + 3)),
    ],
)


@once_a_case
def _path(case: CorpusCase) -> BallPath:
    return ball_path(limits(case), _RADII * float(limits(case).direction.value))


def _end_of_path(case: CorpusCase, seed: int, direction: Float[np.ndarray, "d d"]) -> Measurement:
    path = _path(case)
    details = {"distance from the finite part": float(np.exp(path.log_distance[-1]))}
    return Measurement(float(direction_distance(path.W[-1], direction)), 1, details)


def _solution(case: CorpusCase, seed: int) -> Float[np.ndarray, "d d"]:
    return limits(case).direction.W


def _start_of_path(case: CorpusCase, seed: int) -> Float[np.ndarray, "d d"]:
    return _path(case).W[0]


ORDERED = (LABELS_PRESENT, SEPARABLE, PRIORITIES)
LABEL_MASS_PATH = MECHANICS_CLAIMS.claim(
    "regularization-path-of-label-mass",
    "minimizers over growing balls turn to the solution of the priority graphs",
    statement="regularization path of the training loss",
    assuming=ORDERED,
    contrast=Comparison(
        "1 - cos of the minimizer and the solution, at 1000 norms of the solution",
        _end_of_path,
        _solution,
        "1 - cos of the minimizers at 1000 norms and at one, as if the direction were that of "
        "the beginning",
        _start_of_path,
        bound=1e-4,
        reason="the angle falls like one over the radius",
    ),
    data=lambda seed: [
        *(random_labels(number, cyclic=True) for number in range(seed, seed + 5)),
        *(random_labels(number, cyclic=True, uneven=True) for number in range(seed, seed + 2)),
        *(random_labels(number, cyclic=False) for number in range(seed, seed + 5)),
    ],
)


def _trained(
    case: CorpusCase,
    optimizer: Optimizer,
    record: Sequence[int],
    start: Float[np.ndarray, "d d"] | float,
) -> Trajectory:
    """Attention trained up to the last step recorded."""
    tokens, head = label_mass_tokens(case.corpus, case.table)
    return train(
        tokens,
        head,
        optimizer,
        steps=record[-1],
        loss="negative_log",
        initial=np.broadcast_to(start, (tokens.key_dimension, tokens.key_dimension)),
        record=record,
        weights="all",
    )


def _descent(case: CorpusCase, start: Float[np.ndarray, "d d"] | float) -> Trajectory:
    """Normalized gradient descent from a start to its end."""
    steps = min(int(_REACH * float(limits(case).direction.value) / _STEP), _LONGEST)
    return _trained(case, normalized_gradient_descent(_STEP), [steps], start)


@once_a_case
def _within_cycles(case: CorpusCase, seed: int) -> Float[np.ndarray, "d d"]:
    """A random matrix of norm one in the cyclic subspace."""
    space = limits(case).subspace
    drawn = space.embed(generator(seed, purpose="start").normal(size=space.dimension))
    return drawn / np.linalg.norm(drawn)


@once_a_case
def _from_within_cycles(case: CorpusCase, seed: int) -> Trajectory:
    return _descent(case, _within_cycles(case, seed))


def _off_finite_part(case: CorpusCase, seed: int, part: Float[np.ndarray, "d d"]) -> Measurement:
    """Distance of the part in the cyclic subspace from a finite part, in steps."""
    run = _from_within_cycles(case, seed)
    kept = limits(case).subspace.project(run.W()[0, 0])
    outside = measure_limits(run, limits(case))["correlation_outside"].isel(instance=0, seed=0)
    details = {
        "norm of the finite part": float(np.linalg.norm(limits(case).finite.W)),
        "distance from zero, in steps": float(np.linalg.norm(kept)) / _STEP,
        "1 - cos beside it": float(1 - outside[-1]),
    }
    return Measurement(float(np.linalg.norm(kept - part)) / _STEP, 1, details)


CYCLIC = (*ORDERED, CONFLICTS)
FINITE_PART = MECHANICS_CLAIMS.claim(
    "conflicts-leave-a-finite-part",
    "within cycles attention tends to finite scores, those of least loss on the cycles",
    statement="global convergence of gradient descent, finite part",
    assuming=CYCLIC,
    contrast=Comparison(
        "distance of the part in the cyclic subspace from the finite part, in steps",
        _off_finite_part,
        lambda case, seed: limits(case).finite.W,
        "its distance from the random start, as if it stayed there",
        _within_cycles,
        bound=1.0,
        reason="steps of constant length go to and fro about it, by half a step",
    ),
    data=lambda seed: [
        random_labels(number, cyclic=True, uneven=uneven)
        for uneven in (True, False)
        for number in range(seed, seed + 6)
    ],
    note="from a start of norm one within the cycles; labels that are drawn once each are mostly "
    "as frequent as those they conflict with, which makes the finite part zero, and what descent "
    "has to come back to",
)


@once_a_case
def _from_zero(case: CorpusCase) -> Trajectory:
    return _descent(case, 0.0)


def _descent_direction(
    case: CorpusCase, seed: int, direction: Float[np.ndarray, "d d"]
) -> Measurement:
    run = _from_zero(case)
    loss = measure_limits(run, limits(case))["log_excess"].isel(instance=0, seed=0)
    details = {"logarithm of the loss": float(loss[-1])}
    return Measurement(float(direction_distance(run.W()[0, 0], direction)), 1, details)


NO_FINITE_PART = MECHANICS_CLAIMS.claim(
    "no-conflicts-no-finite-part",
    "without cycles attention itself tends to the direction of the priority graphs",
    statement="global convergence of gradient descent, labels without conflict",
    assuming=(*ORDERED, NO_CONFLICTS),
    contrast=Comparison(
        "1 - cos of attention and the solution in the end, nothing taken off",
        _descent_direction,
        _solution,
        "1 - cos of it and the beginning of the regularization path",
        _start_of_path,
        bound=5e-3,
        reason="the angle falls like one over the norm, which is 40 times that of the solution",
    ),
    data=lambda seed: [random_labels(number, cyclic=False) for number in range(seed, seed + 6)],
)


@once_a_case
def _matrices(case: CorpusCase) -> list[Float[np.ndarray, "d d"]]:
    """Attention at the three steps, trained from zero."""
    run = _trained(case, gradient_descent(_LEARNING_RATE), DECADES, 0.0)
    return [run.W(float(step))[0, 0] for step in DECADES]


CONFLICTING_DIRECTION = MECHANICS_CLAIMS.claim(
    "conflicts-leave-the-direction",
    "gradient descent carries attention to infinity along the graphs' margin solution",
    statement="global convergence of gradient descent, direction",
    assuming=CYCLIC,
    contrast=Comparison(
        "1 - cos of the solution and what steps 2,000 to 20,000 add to W",
        lambda case, seed, direction: last_decade(_matrices(case), direction),
        _solution,
        "1 - cos of that and W after 20 steps, as if the direction were that of the beginning",
        lambda case, seed: _matrices(case)[0],
        bound=1.5e-2,
        reason="W itself, which is the solution times log t and a part that stays bounded, turns "
        "like 1/log t; what a decade adds is free of the bounded part",
    ),
    data=lambda seed: [
        *(random_labels(number, cyclic=True) for number in range(seed, seed + 4)),
        *(random_labels(number, cyclic=True, uneven=True) for number in range(seed, seed + 2)),
    ],
)
