"""Checks of the arguments of ``train`` that other functions share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import optax

from attractor.attention import Head, Loss, PredictionHeads
from attractor.attention.heads import as_head
from attractor.support.checks import check_kind, check_number, shown
from attractor.support.errors import InvalidInputError
from attractor.support.storage import check_replaceable
from attractor.tokens import Tokens
from attractor.training.attention_records import Metric
from attractor.training.optimizers import Optimizer
from attractor.training.stored.checkpoint import MARKER
from attractor.training.trajectory import RECORDED


def check_tokens(tokens: Any, loss: Loss) -> None:
    """Checks that tokens can be trained on with a loss."""
    check_kind("tokens", tokens, Tokens, "Give Tokens(keys, queries, labels)")
    if tokens.labels is None:
        raise InvalidInputError(
            "tokens",
            "they carry no labels, so there is nothing to train towards",
            "Pass labels to Tokens",
        )
    loss.validate(tokens.labels)


def refuse_weights(tokens: Tokens, what: str) -> None:
    """Refuses rows that count differently, where they would all be counted alike.

    Raises:
        InvalidInputError: If the rows have weights.
    """
    if tokens.weights is not None:
        raise InvalidInputError(
            "tokens", f"their rows have weights, which {what} does not know", "Give none"
        )


def check_head(head: Any, tokens: Tokens, attention_heads: int | None = None) -> Head:
    """Checks that a head reads what attention returns; an Equinox module becomes a head.

    Args:
        head: The head, or a list of one for each attention head.
        tokens: The data sets.
        attention_heads: Number of attention heads; None where these are not an axis.
    """
    head = as_head(head, tokens.value_dimension)
    if isinstance(head, PredictionHeads) and len(head.each) != attention_heads:
        none = attention_heads is None
        raise InvalidInputError(
            "head",
            f"there are {len(head.each)} prediction heads, but "
            + ("one attention head" if none else f"{attention_heads} attention heads"),
            "Give one head, not a list" if none else "Give one for each, or one for all",
        )
    head.check_dimension(tokens.value_dimension)
    if head.instances not in (None, tokens.instances):
        have = "no axis of instances" if tokens.instances is None else f"{tokens.instances}"
        raise InvalidInputError(
            "head",
            f"it has {head.instances} instances, but the tokens have {have}",
            "Give one head for all, or one for each instance of the tokens",
        )
    return head


def check_targets(head: Head, tokens: Tokens, loss: Loss) -> None:
    """Checks that a loss can compare what a head predicts with the labels."""
    loss.check_classes(head.classes)
    assert tokens.labels is not None
    loss.validate(tokens.labels, head.classes)


def check_optimizer(optimizer: Any, *, several: bool = False) -> None:
    """Checks that an optimizer has declared its geometry.

    Args:
        optimizer: The optimizer.
        several: Whether its hyperparameters may have several values.
    """
    if isinstance(optimizer, Optimizer):
        if optimizer.axes and not several:
            optimizer.init({})  # which raises, as for any loop that takes one value
        return
    if isinstance(optimizer, optax.GradientTransformation):
        raise InvalidInputError(
            "optimizer",
            "this optax transformation does not say which geometry it descends",
            "Wrap it: declare(transformation, geometry=None), or with the norm whose steepest "
            "descent it is, such as Frobenius(); where its state scales with the gradient, "
            "with_rescaled_state(transformation, geometry=None) is exact however small that gets",
        )
    raise InvalidInputError(
        "optimizer",
        f"{type(optimizer).__name__} is not an optimizer",
        "Give one, such as normalized_gradient_descent(0.1)",
    )


def check_metrics(metrics: Any, taken: Iterable[str] = ()) -> tuple[tuple[str, Metric], ...]:
    """Checks that metrics are functions with names of their own.

    Args:
        metrics: Functions by name.
        taken: Names that are taken, beside those of what is recorded always.
    """
    if metrics is not None and not isinstance(metrics, Mapping):
        raise InvalidInputError(
            "metrics", f"{shown(metrics)} is no mapping", "Give {name: function of a Snapshot}"
        )
    chosen = tuple((metrics or {}).items())
    for name, metric in chosen:
        if not callable(metric):
            raise InvalidInputError(
                "metrics", f"{name!r} is {metric!r}", "Give a function of a Snapshot"
            )
        if not isinstance(name, str) or not name.isidentifier() or name in {*RECORDED, *taken}:
            raise InvalidInputError(
                "metrics", f"the name {name!r} cannot be used", "Give a name not recorded already"
            )
    return chosen


def check_checkpoint(path: Any, every: Any) -> None:
    """Checks that a checkpoint can be written to a folder, and how often."""
    check_number("checkpoint_every", every, least=0, example=30)
    if path is None:
        return
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError("checkpoint", f"{path!r} is not a path", "Give that of a folder")
    check_replaceable(path, MARKER, argument="checkpoint")
