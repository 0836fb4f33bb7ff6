"""The facts on a training run that the direction predicted depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.attention.labels import is_margin_loss
from attractor.attention.readout import LinearReadout, Readout
from attractor.margin.selection import Selection, score_rounding, token_scores
from attractor.margin.selections.tie_classes import equal_scores
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.training import Trajectory

_EXPONENTIAL_TAILS = ("logistic", "exponential")


@dataclass(frozen=True)
class Trained:
    """What was trained on each data set.

    Attributes:
        head_trained: Whether the head was trained beside the attention layer.
        no_statement: Why no statement covers a head that was trained; empty if one does.
        scores: Scores of tokens under a linear head that was fixed, ``(instances, n, K, T)``; None
            where training does not favor the highest.
        rounding: How far rounding can move them, ``(instances, n, K, 1)``.
    """

    head_trained: bool = False
    no_statement: str = ""
    scores: Float[np.ndarray, "*instance sequence query token"] | None = None
    rounding: Float[np.ndarray, "*instance sequence query 1"] | None = None

    def __getitem__(self, instance: Any) -> Trained:
        """What was trained on some of the data sets, a data set possibly several times."""
        if self.scores is None or self.rounding is None:
            return self
        return replace(self, scores=self.scores[instance], rounding=self.rounding[instance])

    def of_equal_score(self, selection: Selection) -> Bool[np.ndarray, "..."]:
        """Tokens that score as the selected one of their row does.

        Rows that keep several tokens have none but these: attention cannot distinguish them.
        """
        assert self.scores is not None and self.rounding is not None
        alone = selection.mask.sum(-1, keepdims=True) == 1
        equal = equal_scores(self.scores, self.rounding, selection.mask)
        return np.where(alone, equal & (self.scores > -np.inf), selection.mask)


def what_was_trained(
    tokens: Tokens, head: Readout | None, loss: str, *, head_trained: bool, attention_heads: int = 1
) -> Trained:
    """Sums up what bears on the direction predicted.

    Args:
        tokens: The data sets, with an axis of instances.
        head: The head: fixed, or where its training started; None where it is not known.
        loss: Name of the loss.
        head_trained: Whether the head was trained.
        attention_heads: Number of attention heads whose predictions were added.
    """
    if head_trained:
        return Trained(True, _uncovered(tokens, head, loss, attention_heads))
    if tokens.labels is None or not isinstance(head, LinearReadout) or not is_margin_loss(loss):
        return Trained()
    rounding = score_rounding(tokens, head)[..., None]
    return Trained(scores=token_scores(tokens, head), rounding=rounding)


def head_was_trained(trajectory: Trajectory) -> bool:
    """Whether a run trained its head beside the attention layer."""
    return any(str(name).startswith("head_") for name in trajectory.data)


def favors_token_scores(trajectory: Trajectory) -> bool:
    """Whether training favors the tokens for which ``y h(x)`` is highest, with the head fixed."""
    head, tokens = trajectory.head, trajectory.tokens
    if head_was_trained(trajectory):
        return False  # the scores changed on the way
    if head is None or head.classes is not None or tokens.labels is None:
        return False
    return is_margin_loss(trajectory.settings.get("loss", ""))


def with_instances(tokens: Tokens) -> Tokens:
    """The same data with an axis of instances, of length one if there was none."""
    if tokens.instances is not None:
        return tokens
    return Tokens(
        tokens.keys[None],
        tokens.queries[None],
        None if tokens.labels is None else tokens.labels[None],
        tokens.mask[None],
        tokens.values[None],
        weights=None if tokens.weights is None else tokens.weights[None],
        instance_numbers=tokens.instance_numbers,
    )


def attention_heads(trajectory: Trajectory) -> int:
    """Number of attention heads that a run trained, of which it may be one."""
    return int(trajectory.settings.get("attention_heads", 1))


def _uncovered(tokens: Tokens, head: Readout | None, loss: str, heads: int) -> str:
    """Why no statement covers a head trained in this way."""
    if heads > 1:
        cause = f"the predictions of {heads} attention heads are added"
    elif not isinstance(head, LinearReadout):
        cause = (
            "it is not linear" if head is not None else "the file does not say of what kind it is"
        )
    elif loss not in _EXPONENTIAL_TAILS:
        cause = f"the {loss} loss has no exponential tail"
    elif tokens.labels is None or not (np.abs(tokens.labels) == 1).all():
        cause = "some labels are not -1 or +1"
    else:
        return ""
    return (
        f"The head is trained, and {cause}: no statement says where W goes then. The margin "
        "problem of the tokens that attention keeps stands in; solve the problem that you expect, "
        "and give its solution."
    )
