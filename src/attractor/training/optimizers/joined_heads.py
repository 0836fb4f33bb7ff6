"""The arrays of all attention heads as one, side by side, for any optimizer."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from attractor.attention.multi_head import AttentionHeads
from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.optimizer import Optimizer, rebuilt

JOINED = "joined "
"""What the names of such optimizers begin with."""


def joined(optimizer: Optimizer) -> Optimizer:
    """An optimizer to which the arrays of all attention heads are one, side by side.

    By themselves optimizers take attention heads as arrays apart: Muon makes the step of each head
    orthogonal. Implementations of transformers hold the projections of all heads as one matrix,
    ``[K_1 ... K_H]`` in ``R^(d x H m)``, and Muon then makes that orthogonal. This wrapper joins
    arrays as they do, columns side by side: ``W_h`` to ``R^(d x H e)``, ``K_h`` and ``Q_h`` each,
    prompt vectors to a matrix with a column for each head. What knows no arrays, such as gradient
    descent or sign descent, is left as it was, to rounding. Gradients of heads that lie
    magnitudes apart are brought to one scale where they become one array, as they do in a step.

    Args:
        optimizer: Any optimizer of this library, or one that was declared.

    Raises:
        InvalidInputError: If it is none.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> joint = at.joined(at.spectral_descent(0.03))
        >>> run = at.train(tokens, head, joint, steps=1000, parameterization="2 x W")
        >>> run.settings["arrangement"], run.geometry
        ('side by side', 'spectral')
    """
    check_kinds(optimizer=(optimizer, Optimizer))
    if optimizer.joins_heads:
        raise InvalidInputError("optimizer", "it joins attention heads already", "Give it as it is")
    return _remade(optimizer)


class _Joined(Optimizer):
    """An optimizer that sees one array where there are attention heads."""

    inner: Optimizer

    def read(self, gradient: PyTree[Scaled]) -> PyTree:
        """What the optimizer reads of the joined gradient, by head."""
        return _apart(self.inner.read(_together(gradient)), gradient)

    def step(
        self, gradient: PyTree[Scaled], memory: PyTree, parameters: PyTree, **further: Array
    ) -> tuple[PyTree, PyTree]:
        """A step of the optimizer on joined arrays."""
        moved, memory = self.inner.step(
            _together(gradient), memory, _together(parameters), **further
        )
        return _apart(moved, parameters), memory

    def at_step(self, memory: PyTree) -> Optimizer:
        """The optimizer of the next step."""
        now = self.inner.at_step(memory)
        return self if now is self.inner else _around(now)

    def at_rest(self, memory: PyTree, before: PyTree) -> Bool[Array, ""]:
        """Whether the same gradient would move nothing again."""
        return self.inner.at_rest(memory, before)


def _remade(inner: Optimizer) -> Optimizer:
    """The same object for the same optimizer, so that nothing is compiled twice."""
    traced = any(isinstance(value, jax.Array) for value in inner.hyperparameters.values())
    return _around(inner) if traced else _remembered(inner)


def _around(inner: Optimizer) -> Optimizer:
    def update(
        updates: PyTree, state: PyTree, params: PyTree | None = None, **further: Any
    ) -> tuple[PyTree, PyTree]:
        weights = None if params is None else _together(params)
        steps, state = inner.update(_together(updates), state, weights, **further)
        return _apart(steps, updates), state

    log_time, retract = inner.log_time_step, inner.retract

    def retracted(params: PyTree, memory: PyTree) -> PyTree:
        assert retract is not None
        return _apart(retract(_together(params), memory), params)

    return rebuilt(
        inner,
        _Joined,
        lambda params: inner.init(_together(params)),
        update,
        name=f"{JOINED}{inner.name}",
        rule=inner.rule._replace(
            retract=retract and retracted,
            log_time_step=log_time and (lambda gradient, **it: log_time(_together(gradient), **it)),
            joins_heads=True,
        ),
        _remake=lambda values: _remade(inner.with_numbers(values)),
        inner=inner,
    )


_remembered = functools.cache(_around)


def _together(tree: PyTree) -> PyTree:
    """Arrays of attention heads as one, their columns side by side."""
    return jax.tree.map(_join, tree, is_leaf=_are_heads)


def _join(node: Any) -> Any:
    if not _are_heads(node):
        return node
    return jax.tree.map(lambda *leaves: _side_by_side(leaves), *node.each)


def _are_heads(node: Any) -> bool:
    return isinstance(node, AttentionHeads)


def _side_by_side(leaves: tuple[Any, ...]) -> Any:
    if not isinstance(leaves[0], Scaled):
        return jnp.concatenate([_with_columns(leaf) for leaf in leaves], axis=-1)
    mantissas = [leaf.mantissa for leaf in leaves]
    scales = [leaf.log_scale for leaf in leaves]
    if jnp.ndim(scales[0]):
        return Scaled(_side_by_side(tuple(mantissas)), _side_by_side(tuple(scales)))
    common = common_log_scale(jnp.stack(scales))
    in_common = (m * relative(s, common) for m, s in zip(mantissas, scales, strict=True))
    return Scaled(_side_by_side(tuple(in_common)), common)


def _with_columns(leaf: Array) -> Array:
    """A vector is a column."""
    return leaf[:, None] if leaf.ndim == 1 else leaf


def _apart(tree: PyTree, like: PyTree) -> PyTree:
    """Joined arrays by attention head again, as in another tree."""

    def split(node: Any, whole: PyTree) -> Any:
        if not _are_heads(node):
            return whole
        first, structure = jax.tree.flatten(node.each[0])
        by_leaf = [
            [part.reshape(_shape(leaf)) for part in jnp.split(one, len(node.each), axis=-1)]
            for leaf, one in zip(first, jax.tree.leaves(whole), strict=True)
        ]
        parts = zip(*by_leaf, strict=True)
        return AttentionHeads(tuple(structure.unflatten(part) for part in parts))

    return jax.tree.map(split, like, tree, is_leaf=_are_heads)


def _shape(leaf: Any) -> tuple[int, ...]:
    return (leaf.mantissa if isinstance(leaf, Scaled) else leaf).shape
