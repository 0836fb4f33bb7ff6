"""Mirror descent on the entries of a matrix or on its singular values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PyTree

from attractor.attention.scaled import Scaled, direction
from attractor.geometry import Lp, Schatten
from attractor.geometry.exponent import positive_power
from attractor.geometry.jax_decompositions import sum_of_powers
from attractor.geometry.precision_limits import mirror_limits
from attractor.support.checks import check_function
from attractor.support.errors import InvalidInputError, PrecisionWarning, warn_caller
from attractor.training.optimizers.algorithms.gradient_descent import time_of_unit_step
from attractor.training.optimizers.checks import (
    Number,
    check_mirror_exponent,
    check_not_traced,
    is_zero,
)
from attractor.training.optimizers.hyperparameters import name_of
from attractor.training.optimizers.leaves import as_scaled, log_size, on_matrices, square_sum, unit
from attractor.training.optimizers.optimizer import SINGULAR_POWERS, GradientScale, Optimizer
from attractor.training.optimizers.schedules import Numbers
from attractor.training.optimizers.table import register_optimizer

Exponents = float | Callable[[str], float]


def _check_exponents(argument: str, p: Any) -> Exponents:
    """Checks one exponent, or a function to exponents."""
    if callable(p) and not isinstance(p, Tracer):
        return check_function(argument, p, "Give an exponent")
    return check_mirror_exponent(p, argument)


_PLAIN = ("momentum", "weight_decay", "dual_weight_decay")
_CHECKS = {"p": _check_exponents, **dict.fromkeys(_PLAIN, check_not_traced)}


@register_optimizer(
    "mirror descent",
    "md",
    hyperparameters=("learning_rate", "eps", "momentum", "dual_weight_decay", "weight_decay"),
    **_CHECKS,
    eps=check_not_traced,
)
def mirror_descent(
    learning_rate: Numbers,
    p: Exponents = 1.5,
    normalize: bool = True,
    *,
    per_factor: bool = True,
    eps: Numbers = 0.0,
    momentum: Numbers = 0.0,
    weight_decay: Numbers = 0.0,
    dual_weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Mirror descent with the potential ``sum |W_ij|^p / p``.

        M <- momentum M + G,    Y <- Y - learning_rate (M + dual_weight_decay Y),
        W <- sign(Y) |Y|^(1 / (p - 1))

    ``Y`` starts at ``sign(W) |W|^(p - 1)`` and ``M`` at zero; ``G`` is the gradient, divided by its
    norm ``||.||_q``, ``q = p / (p - 1)``, if normalized. Without momentum and decay this is
    l_p-AttGD, and with a trained head l_p-JointGD, of *Optimizing Attention with Mirror Descent*
    (arXiv 2410.14581). With p = 2 it is (normalized) gradient descent, to the last bit.

    ``Y`` is the state, in single precision at least, because near p = 1 most values of ``Y`` are
    images of weights too small to store: a weight that starts at zero would never leave it.
    The parameters follow from ``Y`` alone. So in a chain of optax transformations this one comes
    last, and a loop of your own must not change the parameters otherwise; where it has to, as when
    weights are loaded, call ``init`` again. An entry that never had a gradient keeps its bits.

    ``update`` gives differences in the precision of ``Y``, and ``optax.apply_updates`` brings the
    sum back to that of the parameters. In half precision the parameters are then ``Y`` mapped and
    rounded once.

    Args:
        learning_rate: The length of a step in ``Y``, positive; or a schedule of it.
        p: The exponent, more than 1; or a function from the path of an array among the parameters,
            such as "attention" or "head.weight", to its exponent.
        normalize: Whether the gradient is divided by its dual norm. If not, steps follow its true
            magnitude.
        per_factor: Whether every array is divided by the dual norm of its own gradient, as the
            paper trains attention and head; otherwise all by the one norm of all together. With a
            single array there is no difference.
        eps: What is added to the dual norm that divides, 2.2e-16 in published code: gradients
            much smaller than it make no progress.
        momentum: What remains of the memory of gradients after a step, in [0, 1).
        weight_decay: Multiple of the parameters to add to the gradient before anything else.
        dual_weight_decay: Multiple of ``Y`` to step against, beside the gradient: the gradient of
            ``dual_weight_decay ||W||_p^p / p``. It is neither normalized nor remembered.

    Raises:
        InvalidInputError: If an argument is out of its range, or ``eps`` is given where nothing
            is divided.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.mirror_descent(0.1, p=1.5), steps=1000)
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([1., 1.])
    """
    if not (normalize or is_zero(eps)):
        raise InvalidInputError("eps", "nothing is divided", "Leave it out, or set normalize=True")
    of_entries = (Lp, learning_rate, p, normalize, per_factor, eps, momentum, dual_weight_decay)
    return DualDescent(*of_entries).optimizer(weight_decay)


@register_optimizer(
    "Schatten mirror descent",
    "smd",
    hyperparameters=("learning_rate", "momentum", "dual_weight_decay", "weight_decay"),
    **_CHECKS,
)
def schatten_mirror_descent(
    learning_rate: Numbers,
    p: Exponents = 1.5,
    normalize: bool = True,
    *,
    per_factor: bool = True,
    momentum: Numbers = 0.0,
    weight_decay: Numbers = 0.0,
    dual_weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Mirror descent with the potential ``sum s_i^p / p`` of the singular values of ``W``.

    The step is that of ``mirror_descent`` with ``W = U s^(1 / (p - 1)) V^T`` for ``Y = U s V^T``,
    the dual norm being that of the singular values. Singular values of ``Y`` that rounding alone
    could have made count as zero.

    Args:
        learning_rate: The length of a step in ``Y``, positive; or a schedule of it.
        p: The exponent, more than 1; or a function from the path of an array among the parameters
            to its exponent.
        normalize: Whether the gradient is divided by its dual norm.
        per_factor: Whether every array is divided by the dual norm of its own gradient;
            otherwise all by the one norm of all together.
        momentum: What remains of the memory of gradients after a step, in [0, 1).
        weight_decay: Multiple of the parameters to add to the gradient before anything else.
        dual_weight_decay: Multiple of ``Y`` to step against, beside the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.
    """
    of_values = (
        Schatten,
        learning_rate,
        p,
        normalize,
        per_factor,
        0.0,
        momentum,
        dual_weight_decay,
    )
    return DualDescent(*of_values).optimizer(weight_decay)


class MirrorDescentState(NamedTuple):
    """The state of mirror descent.

    Attributes:
        dual: The mirror image ``Y`` of the parameters, in single precision at least.
        moved: Marks what has ever taken a step: entries, or whole matrices where singular values
            are mapped. The rest keeps its first value, whose image may not be a float.
        momentum: The memory ``M`` of gradients, in the precision of ``Y``; None without momentum.
    """

    dual: PyTree[Float[Array, "..."]]
    moved: PyTree
    momentum: PyTree | None = None


class DualDescent(NamedTuple):
    """The functions that make mirror descent an optimizer.

    Attributes:
        family: The geometries of mirror maps of entries, or of singular values.
        learning_rate: The length of a step.
        p: The exponent, or a function from the path of an array to its exponent.
        normalize: Whether gradients are divided by their dual norms.
        per_factor: Whether each array is divided by the norm of its own.
        eps: What is added to the dual norm that divides.
        momentum: What remains of the memory of gradients after a step.
        dual_weight_decay: Multiple of ``Y`` that is added to the memory.
    """

    family: type[Lp] | type[Schatten]
    learning_rate: Number
    p: Exponents
    normalize: bool
    per_factor: bool
    eps: Number
    momentum: Number
    dual_weight_decay: Number

    def optimizer(self, weight_decay: Number) -> Optimizer:
        """The optimizer that these functions make."""
        numbers = [(own, getattr(self, own)) for own in ("eps", "momentum", "dual_weight_decay")]
        given = {own: number for own, number in numbers if not is_zero(number)}
        normalized: GradientScale = "per_array" if self.per_factor else "global"
        plain = normalized if self.normalize else "absolute"
        geometry = None if callable(self.p) else self.family(self.p)
        return Optimizer(
            self.init,
            self.update,
            geometry=geometry,
            gradient_scale="log_per_array" if "eps" in given else plain,
            settings={
                "learning_rate": self.learning_rate,
                "p": name_of(self.p) if callable(self.p) else self.p,
                "normalize": self.normalize,
                "per_factor": self.per_factor,
                **given,
            },
            retract=self.retract,
            log_time_step=None if given.keys() - {"eps"} else self.log_time_step,
            weight_decay=weight_decay,
            steps_by_array=self.normalize and self.per_factor,
            of_singular_values=geometry in SINGULAR_POWERS,
            takes="real",
        )

    def init(self, params: PyTree) -> MirrorDescentState:
        """The mirror image of the parameters; nothing has moved.

        Warns where the floating point of the parameters cannot follow such steps.
        """
        shape = () if self.family is Schatten else None
        kinds = self.geometries(params)
        dual = jax.tree.map(_image, kinds, params)
        warn_of_lost_precision(kinds, params, dual, *self._step_lengths())
        return MirrorDescentState(
            dual,
            jax.tree.map(lambda leaf: jnp.zeros_like(leaf, bool, shape=shape), params),
            None if is_zero(self.momentum) else jax.tree.map(jnp.zeros_like, dual),
        )

    def update(
        self,
        updates: PyTree,
        state: MirrorDescentState,
        params: PyTree | None = None,
        **further: Any,
    ) -> tuple[PyTree, MirrorDescentState]:
        """Updates that lead to the parameters of the next mirror image, and the next state."""
        if params is None:
            raise InvalidInputError(
                "params", "mirror descent needs them", "Call update(gradient, state, params)"
            )
        kinds = self.geometries(updates)
        rise = self._slopes(updates, state.dual, kinds)
        memory = None
        if state.momentum is not None:
            memory = jax.tree.map(lambda G, M: G + self.momentum * M, rise, state.momentum)
            rise = memory
        if not is_zero(self.dual_weight_decay):
            rise = jax.tree.map(lambda M, Y: M + self.dual_weight_decay * Y, rise, state.dual)
        steps = jax.tree.map(lambda leaf: -self._rate(leaf.dtype) * leaf, rise)
        dual = jax.tree.map(jnp.add, state.dual, steps)
        moved = jax.tree.map(_has_moved, state.moved, steps)
        differences = jax.tree.map(_difference, kinds, dual, moved, steps, params)
        return differences, MirrorDescentState(dual, moved, memory)

    def retract(self, parameters: PyTree, memory: MirrorDescentState) -> PyTree:
        """The parameters that belong to the mirror image."""
        kinds = self.geometries(parameters)
        return jax.tree.map(_weights, kinds, memory.dual, memory.moved, parameters)

    def log_time_step(self, gradient: PyTree[Scaled], **further: Array) -> Float[Array, ""]:
        """The logarithm of the time that a step takes without normalization, of plain descent."""
        if not self.normalize:
            return jnp.log(self.learning_rate)
        if self.per_factor and len(jax.tree.leaves(gradient)) > 1:
            return jnp.asarray(jnp.nan)
        size = log_dual_norm(gradient, self.geometries(gradient))
        return time_of_unit_step(self.learning_rate, size, self.eps)

    def geometries(self, tree: PyTree) -> PyTree:
        """The geometry of every array."""

        def of_path(path: Any, leaf: Any) -> Lp | Schatten:
            if not callable(self.p):
                return self.family(self.p)
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            return self.family(check_mirror_exponent(self.p(name), f"p({name!r})"))

        return jax.tree_util.tree_map_with_path(of_path, tree)

    def _step_lengths(self) -> tuple[float, float]:
        """A lower bound of the dual norm of the first step of an array, an upper one of any."""
        rate, momentum = self.learning_rate, self.momentum
        if not (isinstance(rate, float) and isinstance(momentum, float) and self.normalize):
            return 0.0, math.inf
        shortest = 0.0 if not is_zero(self.eps) or not self.per_factor else rate
        longest = rate / (1 - momentum)
        return shortest, longest if is_zero(self.dual_weight_decay) else math.inf

    def _slopes(self, updates: PyTree, dual: PyTree, kinds: PyTree) -> PyTree:
        """Gradients in the precision of the dual variables, normalized if they are to be."""
        if not is_zero(self.eps):
            scaled = jax.tree.map(
                lambda leaf, Y: Scaled(leaf.mantissa.astype(Y.dtype), leaf.log_scale),
                as_scaled(updates),
                dual,
            )
            return unit_with_eps(scaled, kinds, self.per_factor, jnp.log(self.eps))
        wide = jax.tree.map(lambda leaf, Y: leaf.astype(Y.dtype), updates, dual)
        return unit_in_dual_norm(wide, kinds, self.per_factor) if self.normalize else wide

    def _rate(self, dtype: Any) -> Any:
        """The learning rate; a plain number leaves the precision to the array."""
        if isinstance(self.learning_rate, float):
            return self.learning_rate
        return jnp.asarray(self.learning_rate, dtype)


def _image(geometry: Lp | Schatten, leaf: Array | np.ndarray) -> Float[Array, "..."]:
    """The mirror image of an array, in single precision at least."""
    master = jnp.asarray(leaf, jnp.promote_types(jnp.result_type(leaf), jnp.float32))
    return on_matrices(geometry.mirror_map, master)


def _has_moved(before: Array, step: Array) -> Array:
    return before | (step != 0 if before.ndim else (step != 0).any())


def _difference(
    geometry: Lp | Schatten,
    Y: Float[Array, "..."],
    moved: Array,
    step: Float[Array, "..."],
    leaf: Float[Array, "..."],
) -> Float[Array, "..."]:
    """The update of an array of parameters, in the precision of ``Y``.

    It leads to the weights as their own precision holds them: the sum of half-precision weights
    and a single-precision difference to another half-precision number is exact.
    """
    if geometry.p == 2 and Y.dtype == leaf.dtype:
        return step
    return _weights(geometry, Y, moved, leaf).astype(Y.dtype) - leaf.astype(Y.dtype)


def _weights(
    geometry: Lp | Schatten, Y: Float[Array, "..."], moved: Array, start: Float[Array, "..."]
) -> Float[Array, "..."]:
    """The parameters that belong to a mirror image, in the precision of those it started from."""
    weights = on_matrices(geometry.inverse_mirror_map, Y)
    return jnp.where(moved, weights, start.astype(Y.dtype)).astype(start.dtype)


def unit_in_dual_norm(gradient: PyTree, geometries: PyTree, per_factor: bool) -> PyTree:
    """The gradient divided by its dual norm; zero stays zero.

    Args:
        gradient: Arrays.
        geometries: An l_p or Schatten geometry for each.
        per_factor: Whether each array is divided by the norm of its own; otherwise they have one
            geometry in common, and are divided by the norm of all together.
    """
    if per_factor:
        return jax.tree.map(
            lambda geometry, leaf: unit(leaf, _power_sum(geometry), geometry.q),
            geometries,
            gradient,
        )
    if not jax.tree.leaves(gradient):
        return gradient
    geometry = _only(geometries)
    return unit(gradient, _power_sum(geometry), geometry.q)


def unit_with_eps(
    gradient: PyTree[Scaled],
    geometries: PyTree,
    per_factor: bool,
    log_eps: Number,
) -> PyTree:
    """``G / (||G|| + eps)`` in the dual norm, of a gradient of any magnitude.

    Args:
        gradient: Arrays with their scales.
        geometries: An l_p or Schatten geometry for each.
        per_factor: As for ``unit_in_dual_norm``.
        log_eps: The logarithm of eps.
    """
    if per_factor:
        return jax.tree.map(
            lambda geometry, leaf: unit_with_eps(leaf, geometry, False, log_eps),
            geometries,
            gradient,
        )
    share = jax.nn.sigmoid(log_dual_norm(gradient, geometries) - log_eps)  # ||G|| / (||G|| + eps)
    whole = unit_in_dual_norm(direction(gradient), geometries, False)
    return jax.tree.map(lambda leaf: leaf * share, whole)


def log_dual_norm(gradient: PyTree[Scaled], geometries: PyTree) -> Float[Array, ""]:
    """The logarithm of the dual norm of all arrays together, minus infinity for zero.

    Raises:
        InvalidInputError: If their geometries differ.
    """
    geometry = _only(geometries)
    return log_size(gradient, _power_sum(geometry), geometry.q)


def _power_sum(geometry: Lp | Schatten) -> Callable[[Array], Array]:
    """The q-th power of the dual norm."""

    def apply(matrix: Array) -> Array:
        if geometry.q == 2:
            return square_sum(matrix)
        if isinstance(geometry, Schatten):
            return sum_of_powers(matrix, geometry.q)
        return positive_power(abs(matrix), geometry.q).sum((-2, -1))

    return apply


def _only(geometries: PyTree) -> Any:
    """The one geometry of all arrays."""
    found = set(jax.tree.leaves(geometries))
    if len(found) > 1:
        raise InvalidInputError(
            "per_factor",
            "arrays with different p have no norm in common",
            "Set per_factor=True, or give all the same p",
        )
    return found.pop()


def warn_of_lost_precision(
    geometries: PyTree,
    params: PyTree,
    dual: PyTree,
    shortest: float,
    longest: float,
) -> None:
    """Gives one warning if steps of this length cannot be followed; nothing else.

    Args:
        geometries: The geometry of every array.
        params: Arrays of parameters.
        dual: Their mirror images. While JAX traces them, no step counts as too short.
        shortest: Lower bound of the dual norm of the first step of an array, zero if unknown.
        longest: Upper bound of that of any step, infinity if unknown.
    """
    named, _ = jax.tree_util.tree_flatten_with_path(params)
    arrays = zip(named, jax.tree.leaves(geometries), jax.tree.leaves(dual), strict=True)
    found = [
        (jax.tree_util.keystr(path, simple=True, separator="."), reason)
        for (path, leaf), geometry, Y in arrays
        if (reason := _problem(geometry, jnp.result_type(leaf), Y, shortest, longest))
    ]
    if not found:
        return
    name, reason = found[0]
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    which = f"{name or 'the parameters'}{others}"
    warn_caller(f"Mirror descent of {which}: {reason}", PrecisionWarning)


def _problem(
    geometry: Lp | Schatten, dtype: Any, Y: Float[Array, "..."], shortest: float, longest: float
) -> str | None:
    if not Y.size:
        return None
    info = jnp.finfo(dtype)
    limits = mirror_limits(
        geometry.p,
        smallest=float(info.smallest_subnormal),
        largest=float(info.max),
        epsilon=float(jnp.finfo(Y.dtype).eps),
    )
    # Of an array of dual norm one, some entry or singular value is this large.
    share = Y.size ** (-1 / geometry.q)
    size = 0.0 if isinstance(Y, Tracer) else float(np.abs(np.asarray(Y)).min())
    reach = limits.largest - limits.smallest
    return limits.problem(shortest * share, 0.0) or limits.problem(min(longest, reach), size)
