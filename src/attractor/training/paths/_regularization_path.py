"""``regularization_path``: where the loss is least over balls of growing radius."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from attractor.attention import Head, LinearHead, Loss, Parameterization
from attractor.attention.excess import check_decreasing, check_excess, check_log_loss
from attractor.attention.heads import is_linear
from attractor.attention.mixing import measure_mixing
from attractor.attention.multi_head import one_attention_head
from attractor.geometry import Frobenius, Geometry, get_geometry
from attractor.margin.selection import Selection, optimal_tokens
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_choice, check_count, shown
from attractor.support.errors import InvalidInputError, TiedTokensWarning
from attractor.tokens import Tokens
from attractor.training import validation
from attractor.training.inputs import Inputs, check_inputs
from attractor.training.paths.checks import (
    check_geometry,
    check_head_radius,
    check_radii,
    check_selected,
    check_tolerance,
)
from attractor.training.paths.trial import PathTrials, follow_all, one_instance
from attractor.training.trajectory import Trajectory

_DESCRIPTIONS = {
    "log_excess": "logarithm of the loss above the best that attention can reach",
    "log_loss": "logarithm of the loss",
    "optimality": "relative Frank-Wolfe gap; zero at stationary points",
}


def regularization_path(
    tokens: Tokens,
    head: Head,
    geometry: Geometry | str = Frobenius(),  # noqa: B008 - immutable
    *,
    radii: Any = None,
    seeds: int = 1,
    seed: int = 0,
    starts: int = 3,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
    selected: Selection | None = None,
    initial: Any = None,
    head_radius: Callable[[Any], Any] | Any = None,
    tolerance: float = 1e-8,
    weights: str = "all",
    progress: bool = False,
) -> Trajectory:
    """Minimizes the loss over balls of growing radius, in any geometry.

        W(R) = argmin L(W)       subject to  ||W|| <= R,
        (K, Q)(R) = argmin L(K Q^T)  subject to  ||K||_F^2 + ||Q||_F^2 <= 2 R,
        (v, W)(R) = argmin L(v, W)   subject to  ||v|| <= r(R),  ||W|| <= R.

    Its direction tends to the solution of the margin problem of the optimal tokens, in the norm
    of the ball; for (K, Q) that is the nuclear norm, with the rank that their width allows. What
    is minimized is ``log(L - L_best)``, which is exact at any radius (``log_excess_loss``); with
    a head that is trained, ``log L``.

    The problem is not convex. Minima are followed from radius to radius beside those that the
    margin solution and random directions lead to, and the lowest is kept: at finite radius it may
    select other tokens, and jump. A ball of one or two coordinates, such as that of a prompt
    vector in the plane, is searched on a grid. Each is found by Newton's method to rounding,
    and is certified to be stationary by ``optimality``, its Frank-Wolfe gap

        ( max_{||D|| <= R} <grad, W - D> ) / max(1, R ||grad||_dual)

    for the gradient of the logarithm: where the loss is convex on the ball, a bound on what is
    left to gain. That no lower minimum exists elsewhere, nothing certifies.

    Args:
        tokens: Data sets with labels.
        head: A linear head: fixed, or where the search for one starts. Or a fixed head that is not
            linear, to which mixtures of the best tokens are equal, and all others worse; that is
            sampled, and what was found is in the message where it is not so.
        geometry: The norm, of W and of a head that is trained. For ``"KQ"`` it is that of the
            factors, and only Frobenius will do.
        radii: Increasing radii; default: 17, evenly spread over the logarithm from 1 to 10^4.
        seeds: Number of searches per instance, each with random starts of its own.
        seed: The first seed.
        starts: Random starts at every radius, as long as scores are of ordinary size.
        loss: ``"logistic"``, ``"exponential"`` or ``"linear"``.
        parameterization: As in ``train``: ``"W"``, ``"KQ"``, ``"p"``, or these with the head.
        selected: Tokens to be kept instead of the optimal ones: the local path, of minima of the
            loss that lead to the margin solution of these tokens, followed down from the largest
            radius. Where there is none any more, ``optimality`` is large. ``local_path`` minimizes
            the loss in a cone instead.
        initial: Attention parameters whose direction to start from besides, as arrays of
            ``train``. It takes no scale, as every start is brought to the radius.
        head_radius: For a head that is trained: r as a function of R, or its values; default R.
            Beyond about 10^13 margins ``y v^T x`` are rounding, and ``optimality`` is large.
        tolerance: Optimality up to which a point counts as stationary; a trial that exceeds it
            at some radius has the status ``UNCONVERGED``.
        weights: ``"all"`` keeps the matrices of every radius, ``"last"`` those of the last one.
        progress: Whether to show a progress bar.

    Returns:
        A trajectory along ``radius``, with ``log_excess``, ``optimality`` and, for a head that is
        trained, ``log_loss`` besides what training records. ``steps_taken`` counts Newton steps.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been computed then.

    Source: *Transformers as Support Vector Machines* (arXiv 2308.16898), regularization paths;
    *Optimizing Attention with Mirror Descent* (arXiv 2410.14581), l_p-AttRP; *Max-Margin Token
    Selection in Attention Mechanism* (arXiv 2306.13596), joint path and local path.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> path = at.regularization_path(tokens, head, radii=[10.0, 100.0])
        >>> at.verify(path).data.margin_ratio[:, 0].values.round(2)
        array([[0.57, 0.96],
               [0.61, 0.95]])
    """
    layer = one_attention_head(parameterization, "a regularization path")
    inputs = check_inputs(tokens, head, loss, layer, initial, seeds, seed)
    if inputs.scale is not None:
        raise InvalidInputError(
            "initial",
            f"{shown(initial)} is a scale, and every start is brought to the radius of the ball",
            "Give arrays, for their direction, or leave it out; starts=... are random ones",
        )
    tokens, head, loss = inputs.tokens, inputs.head, inputs.loss
    if layer.trains_head or selected is not None:
        check_excess(loss, head)
    else:
        check_decreasing(loss)
    validation.refuse_weights(tokens, "a regularization path")
    if layer.trains_head:
        check_log_loss(loss)
        _check_trained_head(head, selected)
    geometry = get_geometry(geometry)
    ball = check_geometry(geometry, layer)
    radii = check_radii(radii)
    head_radii = check_head_radius(head_radius, radii, layer.trains_head)
    starts = check_count("starts", starts, least=0)
    chosen = check_selected(selected, tokens)
    tolerance = check_tolerance(tolerance)
    check_choice("weights", weights, ("all", "last"))
    inputs.check_memory(len(radii), copies=2)  # path by path, and of all paths together
    if not is_linear(head):
        _check_mixing(inputs)

    with single_blas_thread():
        trials = PathTrials(inputs, ball, radii, head_radii, chosen, starts, tolerance)
        records = follow_all(trials, inputs.count, "regularization path", progress)
    series, last_only = records.series, frozenset()
    if weights == "last":
        last_only = frozenset({"W", "head_weight", *layer.shapes(1, 1)}) & set(series)
        series |= {name: series[name][:, -1] for name in last_only}
    return inputs.trajectory(
        records,
        radii,
        axis="radius",
        last_only=last_only,
        descriptions=_DESCRIPTIONS,
        optimizer="regularization path",
        geometry=ball,
        settings={
            "starts": starts,
            "selected": "optimal tokens" if selected is None else "given",
            "head_radius": None if head_radii is None else head_radii.tolist(),
            "tolerance": tolerance,
            "weights": weights,
        },
    )


def _check_mixing(inputs: Inputs) -> None:
    """Checks that no mixture of tokens pleases a head more than the best tokens of a row."""
    for instance in range(inputs.tokens.instances or 1):
        tokens, head = one_instance(inputs, instance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TiedTokensWarning)
            best = optimal_tokens(tokens, head).mask
        found = measure_mixing(tokens, head, best)
        if not found.holds:
            where = "" if inputs.tokens.instances is None else f" in instance {instance}"
            raise InvalidInputError(
                "head",
                f"the best loss of the head {inputs.head.name!r} is not that of its best tokens"
                f"{where}: attention that leaves them costs {found.least:.3g} times as much as "
                f"leaves, or more, and mixtures of them differ by {found.uneven:.3g} of a score",
                "Give a head for which the first number is positive and the second is zero, such "
                "as LinearHead(v)",
            )


def _check_trained_head(head: Head, selected: Selection | None) -> None:
    if not isinstance(head, LinearHead):
        raise InvalidInputError(
            "head", f"the head {head.name!r} cannot be trained along a path", "Give LinearHead(v)"
        )
    if selected is not None:
        raise InvalidInputError(
            "selected", "which tokens are best changes with the head", "Leave it out, or fix v"
        )
