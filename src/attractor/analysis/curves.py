"""Measures of every recorded matrix, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from attractor.analysis.losses.excess_loss import has_excess_loss, log_excess_loss
from attractor.analysis.measures import measure_directions
from attractor.analysis.predictions.trained import attention_heads, favors_token_scores
from attractor.analysis.unselected import log_mean, log_off
from attractor.attention import Loss, get_loss
from attractor.margin.selection import Selection, attended_tokens, token_scores
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.analysis.predictions.reference import Reference
    from attractor.training import Trajectory

_BLOCK = 2**19
"""Numbers that a block works on: few enough for fast memory, enough that Python costs little."""


def attended(tokens: Tokens, W: Float[np.ndarray, "instance seed step d e"]) -> Selection:
    """The tokens that each matrix attends to.

    Args:
        tokens: Data sets, with an axis of instances.
        W: Matrices; NaN counts as zero, and infinity as the largest number.
    """
    runs = W.reshape(len(W), -1, *W.shape[-2:])
    rows = tokens.mask.shape[1:]
    mask = np.empty((*runs.shape[:2], *rows), dtype=bool)
    tied = np.empty(mask.shape[:-1], dtype=bool)
    for place in _blocks(runs.shape[:2], _size(tokens)):
        matrices = np.nan_to_num(runs[place]).swapaxes(0, 1)
        found = attended_tokens(tokens[place[0]], matrices)
        mask[place], tied[place] = found.mask.swapaxes(0, 1), found.tied.swapaxes(0, 1)
    return Selection(mask.reshape(*W.shape[:3], *rows), tied.reshape(*W.shape[:3], *rows[:-1]))


def curves(
    tokens: Tokens,
    W: Float[np.ndarray, "instance seed step d e"],
    reference: Reference,
    trajectory: Trajectory,
) -> dict[str, Float[np.ndarray, "instance seed step"]]:
    """Measures of every recorded matrix, by name.

    Args:
        tokens: Data sets, with an axis of instances.
        W: Matrices; those that are zero or not finite measure NaN.
        reference: What each is compared with.
        trajectory: The run that they are of.
    """
    runs = W.reshape(len(W), -1, *W.shape[-2:])
    number = reference.number.reshape(runs.shape[:2])
    excess = _ExcessLoss.of(tokens, trajectory)
    found: dict[str, np.ndarray] = {}
    constraints = reference.solution.multipliers.shape[-1]
    for place in _blocks(runs.shape[:2], _size(tokens, constraints)):
        # Runs before instances, as the scores of all instances come in one array for each run.
        matrices, own = runs[place].swapaxes(0, 1), number[place].T
        items = np.ascontiguousarray(matrices).reshape(-1, *W.shape[-2:])
        numbers = own.ravel()
        measures = vars(measure_directions(items, reference.solution, reference.row[numbers]))
        finite = np.asarray(np.isfinite(items).all((-1, -2)))
        chosen = reference.selection.mask[numbers]
        with np.errstate(over="ignore", invalid="ignore"):
            counted = np.where(finite[:, None, None], items, 0.0).reshape(matrices.shape)
            scores = tokens[place[0]].scores(counted).reshape(chosen.shape)
        losers = log_mean(log_off(scores, chosen).reshape(len(items), -1))
        # A matrix that is not finite has no probabilities, and must not pass for a saturated one.
        losers[~finite] = np.nan
        measures["log_unselected_probability"] = losers
        measures["selected_probability"] = -np.expm1(np.minimum(losers, 0))
        if excess is not None:
            logs = measures["log_excess_loss"] = np.full(len(items), np.nan)
            instances = reference.instance[numbers[finite]]
            logs[finite] = excess(scores[finite], chosen[finite], instances)
        for name, values in measures.items():
            curve = found.setdefault(name, np.empty(runs.shape[:2]))
            curve[place] = values.reshape(own.shape).T
    return {name: values.reshape(W.shape[:3]) for name, values in found.items()}


def head_curves(
    heads: Float[np.ndarray, "instance seed step v 1"], reference: Reference
) -> dict[str, Float[np.ndarray, "instance seed step"]]:
    """Measures of trained heads against the solutions of their label problems, by name."""
    assert reference.label is not None
    solution, shape = reference.label.solution, heads.shape[:3]
    flat, numbers = heads.reshape(-1, *heads.shape[-2:]), reference.number.ravel()
    found = {name: np.empty(len(flat)) for name in ("margin_ratio", "correlation")}
    size = solution.multipliers.shape[-1] * (flat.shape[-2] + 8)
    for start in range(0, len(flat), step := max(1, _BLOCK // size)):
        place = np.s_[start : start + step]
        measures = measure_directions(flat[place], solution, numbers[place])
        for name, values in found.items():
            values[place] = getattr(measures, name)
    return {f"label_{name}": values.reshape(shape) for name, values in found.items()}


@dataclass(frozen=True)
class _ExcessLoss:
    """The loss above that of the selected tokens, where it follows from head and loss.

    Attributes:
        loss: The loss.
        scores: Token scores.
        reach: What their rounding is relative to.
    """

    loss: Loss
    scores: Float[np.ndarray, "instance sequence query token"]
    reach: Float[np.ndarray, "instance sequence token"]

    @classmethod
    def of(cls, tokens: Tokens, trajectory: Trajectory) -> _ExcessLoss | None:
        """That of a run; None where it does not follow."""
        head = trajectory.head
        weighted = trajectory.tokens.weights is not None
        if head is None or weighted or not favors_token_scores(trajectory):
            return None
        if attention_heads(trajectory) > 1:  # of whose sum the loss is
            return None
        loss = get_loss(trajectory.settings["loss"])
        if not has_excess_loss(loss, head):
            return None
        return cls(loss, token_scores(tokens, head), np.asarray(head.reach(tokens.values)))

    def __call__(
        self,
        scores: Float[np.ndarray, "item sequence query token"],
        chosen: Bool[np.ndarray, "item sequence query token"],
        instance: np.ndarray,
    ) -> Float[np.ndarray, "item"]:
        """Its logarithm, from attention scores and the tokens to be kept."""
        return log_excess_loss(
            self.loss, scores, self.scores[instance], self.reach[instance], chosen
        )


def _size(tokens: Tokens, constraints: int = 0) -> int:
    """Numbers that the work on one matrix takes."""
    d, e = tokens.key_dimension, tokens.query_dimension
    return 8 * (d * e + int(np.prod(tokens.mask.shape[1:]))) + constraints * (d + e)


def _blocks(shape: tuple[int, int], size: int) -> Iterator[tuple[slice, slice]]:
    """Places of (instance, run) that are worked on together.

    Args:
        shape: Instances, and runs of each.
        size: Numbers that the work on one takes.
    """
    most = max(1, _BLOCK // size)
    along = max(1, min(shape[1], most))
    across = max(1, most // along)
    for instance in range(0, shape[0], across):
        for run in range(0, shape[1], along):
            yield np.s_[instance : instance + across, run : run + along]
