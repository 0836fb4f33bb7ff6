"""``TaskSample``: tasks with their prompts, and the risk of heads on them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.prompts.head import AttentionHead
from attractor.prompts.in_context.losses import Loss, summed
from attractor.prompts.measures import Empirical, Measure
from attractor.support.checks import as_number, check_kind, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision


class RiskEstimate(NamedTuple):
    """A risk averaged over tasks.

    Attributes:
        value: The average.
        standard_error: Over tasks, each of which has one prompt and one query.
    """

    value: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class TaskSample:
    """Tasks, each with a prompt, the law of its tokens, a query and a label.

    Prompts of length ``L`` are the first ``L`` tokens of the longest, so that lengths are compared
    on common random numbers.

    Attributes:
        prompts: The longest prompts.
        queries: A query a task.
        labels: Its label or labels.
        limit: The law of tokens, with an axis of tasks; ``Empirical`` where tokens stand for it.
        exact: Whether the limit is the law itself, not tokens in its place.
    """

    prompts: Float[np.ndarray, "task token dimension"]
    queries: Float[np.ndarray, "task dimension"]
    labels: Float[np.ndarray, "task output"]
    limit: Measure
    exact: bool

    @property
    def longest(self) -> int:
        """Tokens of the longest prompts."""
        return self.prompts.shape[1]

    def law(self, length: float) -> Measure:
        """The measure that attention is over on prompts of a length; infinity for the limit.

        Raises:
            InvalidInputError: If prompts are not that long.
        """
        number = as_number(length)
        if number == math.inf:
            return self.limit
        if not 1 <= number <= self.longest or number != int(number):
            raise InvalidInputError(
                "length", f"{shown(length)} is none of them", f"Give 1 to {self.longest} or inf"
            )
        return Empirical(self.prompts[:, : int(number)])

    def halves(self) -> list[Measure]:
        """The two halves of the tokens that stand for infinitely many; none where it is exact."""
        if self.exact or not isinstance(self.limit, Empirical):
            return []
        points = np.asarray(self.limit.points)
        middle = points.shape[1] // 2
        return [Empirical(points[:, :middle]), Empirical(points[:, middle : 2 * middle])]

    def risk(self, head: AttentionHead, loss: Loss, length: float = math.inf) -> RiskEstimate:
        """The average loss of a head over tasks.

        Args:
            head: The head, whose outputs are as many as labels of a query.
            loss: The loss.
            length: Tokens of each prompt, or infinity.

        Raises:
            InvalidInputError: If shapes do not fit, prompts are not that long, or attention over
                infinitely many tokens does not exist.
        """
        losses = self.losses_under(head, loss, self.law(length))
        return _estimate(losses)

    def limit_error(self, head: AttentionHead, loss: Loss) -> float:
        """How far tokens that stand for infinitely many are off, in the risk of a head.

        An estimate: the average risk of the two halves of them less that of all of them, which is
        as large as the error where that falls like one over their number. Zero where the law
        itself is known.
        """
        check_head(self, head, loss)
        halves = [self.losses_under(head, loss, half).mean() for half in self.halves()]
        if not halves:
            return 0.0
        return abs(float(np.mean(halves) - self.losses_under(head, loss, self.limit).mean()))

    def losses_under(
        self, head: AttentionHead, loss: Loss, law: Measure
    ) -> Float[np.ndarray, "task"]:
        """The loss of each task under a law of its tokens."""
        check_head(self, head, loss)
        with double_precision():
            # Converted by jnp.asarray each shape would be a program of its own.
            data = jax.device_put((law, self.queries, self.labels))
            matrices = jax.device_put((head.score_matrix, head.value_matrix))
            losses = np.asarray(_compiled_losses(loss)(*matrices, data))
        if not np.isfinite(losses).all():
            raise InvalidInputError(
                "head",
                f"the loss of task {int(np.argmin(np.isfinite(losses)))} is not finite",
                "Give smaller scores: attention over infinitely many tokens does not exist there",
            )
        return losses


def check_head(sample: TaskSample, head: AttentionHead, loss: Loss) -> None:
    """Refuses heads that are not for these tokens and labels."""
    check_kind("head", head, AttentionHead, "Give one")
    check_kind("loss", loss, Loss, "Give one of attractor.prompts.in_context.LOSSES")
    d, k = sample.queries.shape[1], sample.labels.shape[1]
    if np.shape(head.score_matrix) != (d, d) or np.shape(head.value_matrix) != (k, d):
        raise InvalidInputError(
            "head",
            f"U has the shape {np.shape(head.score_matrix)}, V {np.shape(head.value_matrix)}",
            f"Give ({d}, {d}) and ({k}, {d})",
        )


def _estimate(losses: Float[np.ndarray, "task"]) -> RiskEstimate:
    count = len(losses)
    error = float(losses.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf
    return RiskEstimate(float(losses.mean()), error)


def attended(
    law: Measure, score_matrix: Float[Array, "d d"], queries: Float[Array, "task d"]
) -> Float[Array, "task d"]:
    """The mean of the tokens of each task, tilted by ``exp(x^T U z)`` for its query ``z``."""
    directions = queries @ score_matrix.T
    if isinstance(law, Empirical):  # has axes of prompts of its own
        if law.weights is not None:
            return law.tilted_mean(directions)
        # A third of the time of its tilted mean, whose derivative is exact at any gap of scores.
        weights = jax.nn.softmax(jnp.einsum("tld,td->tl", law.points, directions), axis=-1)
        return jnp.einsum("tl,tld->td", weights, law.points)
    return jax.vmap(lambda one, direction: one.tilted_mean(direction))(law, directions)


def losses_of(
    score_matrix: Float[Array, "d d"],
    value_matrix: Float[Array, "output d"],
    data: Any,
    loss: Loss,
) -> Float[Array, "task"]:
    """The loss of each task; data are the law, the queries and the labels."""
    law, queries, labels = data
    return summed(loss, attended(law, score_matrix, queries) @ value_matrix.T, labels)


@functools.lru_cache(maxsize=64)
def _compiled_losses(loss: Loss) -> Any:
    return jax.jit(functools.partial(losses_of, loss=loss))
