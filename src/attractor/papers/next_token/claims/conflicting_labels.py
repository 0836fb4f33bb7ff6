"""Attention trained on labels among the tokens of their contexts, which may conflict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.files.corpus import CorpusCase
from attractor.next_token.mechanics import label_mass_tokens, measure_limits, vocabulary_tokens
from attractor.next_token.mechanics._ball_path import BallPath, ball_path
from attractor.next_token.mechanics.convexity import ChordTest, chord_test
from attractor.next_token.two_stage_measures import direction_distance
from attractor.papers.claim import Contrast, Measurement
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
from attractor.papers.next_token.decades import DECADES, against_beginning, last_decade
from attractor.papers.once import once_a_case
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


def _violations(found: ChordTest) -> Measurement:
    details = {"chords strictly above": int(found.strict.sum())}
    return Measurement(float(found.violations.sum()), found.heights.size, details)


def _of_label_mass(case: CorpusCase, seed: int) -> Measurement:
    return _violations(chord_test(*label_mass_tokens(case.corpus, case.table), seed=seed))


def _of_logits(case: CorpusCase, seed: int) -> Measurement:
    tokens, head = vocabulary_tokens(case.corpus, case.table)
    return _violations(chord_test(tokens, head, "cross_entropy", seed=seed))


LABEL_MASS_CONVEX = MECHANICS_CLAIMS.claim(
    "label-mass-loss-is-convex",
    "the log-loss of the attention on the label is convex in the attention matrix",
    statement="convexity of the training loss",
    assuming=(LABELS_PRESENT, SOME_ORDER),
    contrast=Contrast(
        "number of random chords that the loss rises above",
        _of_label_mass,
        "number of them for the cross-entropy of logits that the embeddings give",
        _of_logits,
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


def _end_of_path(case: CorpusCase, seed: int) -> Measurement:
    path, solution = _path(case), limits(case).direction.W
    details = {"distance from the finite part": float(np.exp(path.log_distance[-1]))}
    return Measurement(float(direction_distance(path.W[-1], solution)), 1, details)


def _start_of_path(case: CorpusCase, seed: int) -> Measurement:
    return Measurement(float(direction_distance(_path(case).W[-1], _path(case).W[0])))


ORDERED = (LABELS_PRESENT, SEPARABLE, PRIORITIES)
LABEL_MASS_PATH = MECHANICS_CLAIMS.claim(
    "regularization-path-of-label-mass",
    "minimizers over growing balls turn to the solution of the priority graphs",
    statement="regularization path of the training loss",
    assuming=ORDERED,
    contrast=Contrast(
        "1 - cos of the minimizer and the solution, at 1000 norms of the solution",
        _end_of_path,
        "1 - cos of the minimizers at 1000 norms and at one, as if the direction were that of "
        "the beginning",
        _start_of_path,
        bound=1e-4,
        reason="the angle falls like one over the radius",
    ),
    data=lambda seed: [
        *(random_labels(number, cyclic=True) for number in range(seed, seed + 5)),
        *(random_labels(number, cyclic=False) for number in range(seed, seed + 5)),
    ],
)


def _trained(case: CorpusCase, optimizer: Optimizer, record: Sequence[int]) -> Trajectory:
    """Attention trained from zero up to the last step recorded."""
    tokens, head = label_mass_tokens(case.corpus, case.table)
    return train(
        tokens,
        head,
        optimizer,
        steps=record[-1],
        loss="negative_log",
        initial=np.zeros((tokens.key_dimension, tokens.key_dimension)),
        record=record,
        weights="all",
    )


@once_a_case
def _descent(case: CorpusCase) -> xr.Dataset:
    """Measures of normalized gradient descent from zero, in the end."""
    steps = min(int(_REACH * float(limits(case).direction.value) / _STEP), _LONGEST)
    run = _trained(case, normalized_gradient_descent(_STEP), [steps])
    return measure_limits(run, limits(case)).isel(instance=0, seed=0)


def _off_finite_part(case: CorpusCase, *, zero: bool) -> Measurement:
    """Distance of the part in the cyclic subspace from the finite part, in steps."""
    found = float(_descent(case)["cyclic_norm" if zero else "finite_distance"][-1])
    details = {
        "norm of the finite part": float(np.linalg.norm(limits(case).finite.W)),
        "1 - cos beside it": float(1 - _descent(case)["correlation_outside"][-1]),
    }
    return Measurement(found / _STEP, 1, details)


CYCLIC = (*ORDERED, CONFLICTS)
FINITE_PART = MECHANICS_CLAIMS.claim(
    "conflicts-leave-a-finite-part",
    "within cycles attention tends to finite scores, those of least loss on the cycles",
    statement="global convergence of gradient descent, finite part",
    assuming=CYCLIC,
    contrast=Contrast(
        "distance of the part in the cyclic subspace from the finite part, in steps",
        lambda case, seed: _off_finite_part(case, zero=False),
        "its distance from zero, as if nothing were left there",
        lambda case, seed: _off_finite_part(case, zero=True),
        bound=1.0,
        reason="steps of constant length go to and fro about it, by half a step",
    ),
    data=lambda seed: [random_labels(number, cyclic=True) for number in range(seed, seed + 6)],
    holding=lambda: random_labels(2, cyclic=True),
    note="where odds on the cycles are even the finite part is zero, and the claim vacuous",
)


def _descent_direction(case: CorpusCase, seed: int) -> Measurement:
    found = _descent(case)
    details = {"logarithm of the loss": float(found["log_excess"][-1])}
    return Measurement(float(1 - found["correlation"][-1]), 1, details)


NO_FINITE_PART = MECHANICS_CLAIMS.claim(
    "no-conflicts-no-finite-part",
    "without cycles attention itself tends to the direction of the priority graphs",
    statement="global convergence of gradient descent, labels without conflict",
    assuming=(*ORDERED, NO_CONFLICTS),
    contrast=Contrast(
        "1 - cos of attention and the solution in the end, nothing taken off",
        _descent_direction,
        "1 - cos of the end and beginning of the regularization path",
        _start_of_path,
        bound=5e-3,
        reason="the angle falls like one over the norm, which is 40 times that of the solution",
    ),
    data=lambda seed: [random_labels(number, cyclic=False) for number in range(seed, seed + 6)],
)


@once_a_case
def _matrices(case: CorpusCase) -> list[Float[np.ndarray, "d d"]]:
    """Attention at the three steps, trained from zero."""
    run = _trained(case, gradient_descent(_LEARNING_RATE), DECADES)
    return [run.W(float(step))[0, 0] for step in DECADES]


CONFLICTING_DIRECTION = MECHANICS_CLAIMS.claim(
    "conflicts-leave-the-direction",
    "gradient descent carries attention to infinity along the graphs' margin solution",
    statement="global convergence of gradient descent, direction",
    assuming=CYCLIC,
    contrast=Contrast(
        "1 - cos of the solution and what steps 2,000 to 20,000 add to W",
        lambda case, seed: last_decade(_matrices(case), limits(case).direction),
        "1 - cos of that and W after 20 steps, as if the direction were that of the beginning",
        lambda case, seed: against_beginning(_matrices(case)),
        bound=1.5e-2,
        reason="W itself, which is the solution times log t and a part that stays bounded, turns "
        "like 1/log t; what a decade adds is free of the bounded part",
    ),
    data=lambda seed: [random_labels(number, cyclic=True) for number in range(seed, seed + 4)],
)
