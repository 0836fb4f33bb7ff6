"""The rows of the bias matrix: optimizers, and step sizes fixed beforehand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from attractor.geometry import Frobenius, Geometry, Lp, Nuclear, Spectral
from attractor.support.checks import (
    check_choice,
    check_steps,
)
from attractor.training import (
    Optimizer,
    adam,
    gradient_descent,
    greedy_coordinate_descent,
    lion,
    mirror_descent,
    momentum,
    muon,
    normalized_gradient_descent,
    normalized_momentum,
    polyak_step,
    schatten_mirror_descent,
    sign_descent,
    sign_momentum,
    spectral_descent,
)

if TYPE_CHECKING:
    from attractor.training.optimizers.schedules import Schedule

from attractor.training.own.method import Method

NORMS: tuple[Geometry, ...] = (
    Frobenius(), Nuclear(), Spectral(), Lp(float("inf")), Lp(1), Lp(1.75), Lp(3),
)  # fmt: skip
"""The norms that every direction is measured in."""

_GREEDY_STEPS = 10 / 3
"""Greedy coordinate descent moves one entry a step, and takes this many times the steps."""


def standard_methods(size: str = "paper", steps: int = 6000) -> tuple[Method, ...]:
    """The methods of the matrix, each with its step size.

    No step size was chosen by looking at a margin ratio. Those of the methods with a known norm
    are given in advance; each other one has that of its nearest relative.

    Args:
        size: ``"paper"`` for all of them, ``"quick"`` for one a norm.
        steps: How many steps most of them take; greedy coordinate descent takes 10/3 of that.

    Raises:
        InvalidInputError: If the size is not known.
    """
    steps = check_steps("steps", steps)
    per_factor = functools.partial(normalized_gradient_descent, per_factor=True)
    greedy_steps = round(_GREEDY_STEPS * steps)
    one_a_norm = (
        _standard("normalized GD", normalized_gradient_descent, 0.3),
        _standard("(K, Q) normalized GD", per_factor, 0.1, "KQ"),
        _standard("spectral descent", spectral_descent, 0.3),
        _standard("sign descent", sign_descent, 0.1),
        _standard("greedy coordinate", greedy_coordinate_descent, 0.3, steps=greedy_steps),
        _standard("mirror descent, p = 1.75", functools.partial(mirror_descent, p=1.75), 0.1),
        _standard("mirror descent, p = 3", functools.partial(mirror_descent, p=3), 100),
    )
    check_choice("size", size, ("quick", "paper"))
    if size == "quick":
        return one_a_norm
    schatten = functools.partial(schatten_mirror_descent, p=1.5)
    decayed = functools.partial(per_factor, weight_decay=2.2e-16)
    newton_schulz = functools.partial(spectral_descent, method="newton-schulz")
    return (
        *one_a_norm,
        _standard("mirror descent, p = 2", functools.partial(mirror_descent, p=2), 0.3),
        _standard("Schatten mirror descent, p = 1.5", schatten, 0.1),
        _standard("(K, Q) with weight decay", decayed, 0.1, "KQ"),
        _standard("spectral, Newton-Schulz", newton_schulz, 0.3),
        _standard("Muon", muon, 0.3),
        _standard("Muon, exact", functools.partial(muon, method="exact"), 0.3),
        _standard("gradient descent", gradient_descent, 0.3),
        _standard("momentum", momentum, 0.3),
        _standard("normalized momentum", normalized_momentum, 0.3),
        Method("Polyak step", polyak_step()),
        _standard("sign momentum", sign_momentum, 0.1),
        _standard("Lion", lion, 0.1),
        _standard("Adam, eps = 0", adam, 0.1),
        _standard("Adam, eps = 1e-8", functools.partial(adam, eps=1e-8), 0.1),
    )


def _standard(
    name: str,
    make: Callable[[float | Schedule], Optimizer],
    step_size: float,
    parameterization: str = "W",
    *,
    steps: int | None = None,
) -> Method:
    """A row whose step size can be another one."""

    def another(other: float | Schedule) -> Method:
        return replace(row, optimizer=make(other))

    row = Method(
        name,
        make(step_size),
        parameterization,
        steps,
        step_size=step_size,
        with_step_size=another,
    )
    return row
