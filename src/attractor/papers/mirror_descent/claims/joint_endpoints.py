"""Where joint mirror descent of head and attention ends, with labels beyond the margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.files.case import Case
from attractor.margin import RateRatioDirection, label_support, rate_ratio_direction
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import trains
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.max_margin.data import joint_training
from attractor.papers.measurements.attended import keeping, scores_at
from attractor.papers.measurements.bregman import divergences
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.claims.convergence import SEPARATED, one_token_away
from attractor.papers.mirror_descent.claims.paths import label_solution, relaxed_solution
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import normal_starts, steps_known
from attractor.results.paper import MIRROR_DESCENT as PAPER
from attractor.tokens import Tokens
from attractor.training import mirror_descent, train

CLAIMS = Claims(PAPER, Case, "mirror-descent")

_LENGTH = 8000
_BEGUN = 1 / 20
"""Part of a run after which it must keep to its tokens to count as decided."""
_P_3 = "mirror descent:p=3,learning_rate=20"


class End(NamedTuple):
    """The end of a run of head and attention.

    Attributes:
        W: The matrix of attention.
        head: The head, as a column.
        scores: Attention scores.
        selection: The tokens attended to.
    """

    W: Float[np.ndarray, "d e"]
    head: Float[np.ndarray, "d 1"]
    scores: Float[np.ndarray, "sequence query token"]
    selection: Selection


Directions = tuple[np.ndarray, np.ndarray]
"""Of attention and of the head."""


def _labels_known(case: Case) -> Check:
    labels = case.tokens.labels
    known = labels is not None and bool((np.abs(labels) == 1).all())
    return Check(known, f"{'all' if known else 'not all'} labels are -1 or +1")


LABELS_KNOWN = Assumption(
    "labels",
    "Every label is -1 or +1.",
    _labels_known,
    lambda: _without_labels(_three_sequences()),
)


@once
def _decided(case: Case, seed: int) -> list[End]:
    """The ends of runs from random attention and no head where every row has chosen a token."""
    p, rate = steps_known(case)
    places = normal_starts(case, seed)
    run = train(
        case.tokens,
        LinearHead(np.zeros(case.tokens.values.shape[-1])),
        mirror_descent(rate, p),
        steps=_LENGTH if case.steps is None else case.steps,
        initial=places,
        seeds=places.shape[1],
        parameterization="v, W",
    )
    begun = int(np.searchsorted(run.steps, _BEGUN * run.steps[-1]))
    before = scores_at(case, run.data["W"].isel(step=begun).values[0]).argmax(-1)
    W, heads = run.W()[0], run.data["head_weight"].isel(step=-1).values[0]
    found = []
    for end, head, scores, early in zip(W, heads, scores_at(case, W), before, strict=True):
        ordered = np.sort(scores, axis=-1)
        separated = (ordered[..., -1] - ordered[..., -2]).min() >= SEPARATED
        if separated and (scores.argmax(-1) == early).all():
            selection = keeping(case, scores.argmax(-1))
            found.append(End(end, head[:, None], scores, selection))
    return found


def _beyond(case: Case, seed: int) -> list[End]:
    """Of those the runs whose tokens leave a label beyond the margin, or inseparable."""
    return [
        end
        for end in _decided(case, seed)
        if not label_support(label_solution(case, end.selection)).all()
    ]


def _joint_direction(case: Case, end: End, selection: Selection) -> RateRatioDirection | None:
    """The direction of largest joint margin for a selection; None where labels are inseparable.

    Beside the head of a run: at the ratio of the norms that the run ends with.
    """
    label = label_solution(case, selection)
    if not np.isfinite(label.value):
        return None
    norm = steps_known(case).geometry.norm
    ratio = float(norm(end.head) / norm(end.W))
    return rate_ratio_direction(
        case.tokens, selection, ratio, steps_known(case).geometry, label=label
    )


def _locally_optimal(case: Case, end: End, selection: Selection) -> bool:
    """Whether tokens that bind the joint direction have lower scores for the label solution."""
    found = _joint_direction(case, end, selection)
    if found is None or not np.isfinite(found.value):
        return False
    scores = case.replace(head=LinearHead(found.label.W[:, 0])).scores
    own = np.where(selection.mask, scores, -np.inf).max(-1, keepdims=True)
    return bool((scores < own)[found.support_tokens].all())


def _share_locally_optimal(case: Case, seed: int, ended: Callable[[End], Selection]) -> Measurement:
    ends = _beyond(case, seed)
    holds = [_locally_optimal(case, end, ended(end)) for end in ends]
    return Measurement(
        float(np.mean(holds)) if holds else np.nan, len(ends), _details(case, seed, ends)
    )


def _largest_divergence(case: Case, seed: int, named: Callable[[End], Directions]) -> Measurement:
    """The largest divergence of a run's attention and head from directions of their own."""
    ends = _beyond(case, seed)
    found = [_divergences(case, end, named(end)) for end in ends]
    relaxed = [_divergences(case, end, _relaxed_directions(case, end)) for end in ends]
    attention, head = np.reshape(found, (-1, 2)).T
    details = _details(case, seed, ends) | {
        "largest of attention": float(attention.max(initial=0)),
        "largest of the head": float(head.max(initial=0)),
        "largest of attention from the relaxed direction": float(
            np.reshape(relaxed, (-1, 2))[:, 0].max(initial=0)
        ),
    }
    return Measurement(float(np.max(found)) if ends else np.nan, len(ends), details)


def _divergences(case: Case, end: End, directions: Directions) -> list[float]:
    """Of attention and of the head."""
    own = steps_known(case).geometry
    both = zip((end.W, end.head), directions, strict=True)
    return [float(divergences(reached[None], named[None], own)[0]) for reached, named in both]


def _details(case: Case, seed: int, ends: list[End]) -> dict[str, float | list[float]]:
    norm = steps_known(case).geometry.norm
    ratios = [float(norm(end.head) / norm(end.W)) for end in ends]
    return {
        "p": steps_known(case).p,
        "runs decided": len(_decided(case, seed)),
        "norm of the head over that of attention": [min(ratios), max(ratios)] if ends else [],
    }


def _nowhere(case: Case, end: End) -> Directions:
    return np.full_like(end.W, np.nan), np.full_like(end.head, np.nan)


def _joint_directions(case: Case, end: End) -> Directions:
    found = _joint_direction(case, end, end.selection)
    return _nowhere(case, end) if found is None else (found.direction, found.label.W)


def _as_if_all_support(case: Case, end: End) -> Directions:
    """The max-margin solutions, as if every label stood at the margin."""
    attention = case.solution(steps_known(case).geometry, end.selection).W
    return attention, label_solution(case, end.selection).W


def _relaxed_directions(case: Case, end: End) -> Directions:
    """The limit where the head outgrows attention: labels beyond the margin ask for none."""
    return relaxed_solution(case, end.selection).W, label_solution(case, end.selection).W


def _without_labels(case: Case) -> Case:
    return case.replace(tokens=Tokens(case.tokens.keys, case.tokens.queries))


def _three_sequences() -> Case:
    """Three sequences in the plane, the third of which lies beyond the margin of the label."""
    return joint_training(all_labels_support=False).replace(parameterization="v, W")


def _random(seed: int, p: float) -> Case:
    """Four random sequences, whose tokens mostly leave some label beyond the margin."""
    tokens, _ = unit_tokens(4, 4, 4, seeds=[seed])
    case = Case(tokens[0], LinearHead(np.zeros(4)), "v, W", about=f"random data, seed {seed}")
    return case.replace(optimizer=_P_3) if p == 3 else with_exponent(case, p)


def _data(seed: int) -> list[Case]:
    return [
        _three_sequences(),
        *(_random(4 * seed + place, p) for place, p in enumerate((1.5, 1.75, 2.0, 3.0), 1)),
    ]


_ASSUMPTIONS = (
    trains("v, W"),
    MIRROR_DESCENT.broken_by(
        lambda: _three_sequences().replace(optimizer="sign descent:learning_rate=0.1")
    ),
    LABELS_KNOWN,
)
_NOTE = (
    "measured, not proved: the paper has a statement on the joint path alone, for tokens whose "
    "labels all support the head; runs start from standard normal attention and no head; those "
    "with a score gap below 20, with other tokens after a twentieth of the steps, or with all "
    "labels at the margin are not counted"
)

JOINT_ENDPOINTS = CLAIMS.claim(
    "joint-endpoints",
    "with labels beyond the margin, joint descent ends on tokens that are locally optimal for both",
    statement="joint training of head and attention: tokens",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "share of decided runs where tokens that bind the joint direction have lower scores",
        _share_locally_optimal,
        lambda *_: lambda end: end.selection,
        "the same for the tokens one away: the runner-up where it comes nearest",
        lambda case, seed: lambda end: keeping(case, one_token_away(end.scores)),
        bound=1.0,
        reason="every one",
        sense=">=",
    ),
    data=_data,
    note=f"scores are those of the label solution; {_NOTE}",
)

JOINT_DIRECTIONS = CLAIMS.claim(
    "joint-directions",
    "there the head tends to the label solution, attention to the largest joint margin beside it",
    statement="joint training of head and attention: directions",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "largest divergence of a decided run, of attention and of the head, from both directions",
        _largest_divergence,
        lambda case, seed: lambda end: _joint_directions(case, end),
        "the same from the max-margin solutions, as if all labels supported the head",
        lambda case, seed: lambda end: _as_if_all_support(case, end),
        bound=1e-3,
        reason="that of local convergence; of 200 runs on 17 data sets none is beyond it",
    ),
    data=_data,
    note=f"the joint margin is that at the ratio of the norms of head and attention, which tends "
    f"to 1 at equal learning rates; {_NOTE}",
)
