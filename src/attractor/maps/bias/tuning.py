"""Every optimizer at several step sizes and decays, on the same problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from attractor.maps.bias.best_setting import setting_text
from attractor.support.checks import check_function, check_items, check_number
from attractor.training import Optimizer, power_decay
from attractor.training.own.method import Method

DECAYS = (0.0, 0.5)
"""Powers of the step that step sizes fall with."""
MULTIPLES = {"quick": (0.1, 0.3, 1.0, 3.0), "paper": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)}
"""Mean step sizes that are tried, over that which a row of the matrix has beforehand."""
MEAN_STEPS = {
    "quick": (0.003, 0.03, 0.3, 3.0),
    "paper": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
}
"""Those of an optimizer of one's own, of whose scale nothing is known beforehand."""


def settings_of_all(
    methods: Sequence[Method],
    mean_steps: Callable[[Method], Sequence[float]],
    decays: Sequence[float],
    steps: int,
) -> tuple[Method, ...]:
    """Every method at every setting, a row for each.

    Args:
        methods: The methods.
        mean_steps: Means of step sizes over the run, of a method that has any.
        decays: Powers of the step that they fall with.
        steps: Number of steps, of methods that do not bring their own.

    Raises:
        InvalidInputError: If an argument cannot be used.
    """
    check_function("mean_steps", mean_steps, "Give a function of a row that returns step sizes")
    decays = [
        check_number("decays", decay, least=0.0, example=0.5)
        for decay in check_items("decays", decays, int | float, 1)
    ]
    return tuple(
        one
        for method in methods
        for one in settings_tried(method, mean_steps, decays, method.steps or steps)
    )


def settings_tried(
    method: Method,
    mean_steps: Callable[[Method], Sequence[float]],
    decays: Sequence[float],
    steps: int,
) -> list[Method]:
    """A method as it is, and with other step sizes, each in a row of its own.

    Args:
        method: The method.
        mean_steps: Means of step sizes over the run, of a method that has any.
        decays: Powers of the step that they fall with.
        steps: The number of steps.
    """
    if method.with_step_size is None or method.step_size is None:
        return [replace(method, setting_of=method.name)]
    known = _setting(method, method.step_size, 0.0)
    found = {} if known is None else {(method.step_size, 0.0): known}
    # A schedule is a function of the step of JAX; PyTorch has none.
    possible = decays if isinstance(method.optimizer, Optimizer) else (0.0,)
    for decay in possible:
        mean = float((np.arange(1.0, steps + 1) ** -decay).mean())
        for mean_step in mean_steps(method):
            # Three digits, so that the setting named is the one that ran.
            size = float(f"{mean_step / mean:.3g}")
            if (size, decay) not in found:
                setting = _setting(method, size, decay)
                if setting is not None:
                    found[size, decay] = setting
    return [found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))]


def _setting(method: Method, size: float, decay: float) -> Method | None:
    assert method.with_step_size is not None
    made = method.with_step_size(power_decay(size, decay) if decay else size)
    if made is None:
        return None
    return replace(
        made,
        name=f"{method.name}, step {setting_text(size, decay)}",
        step_size=size,
        decay=decay,
        setting_of=method.name,
    )
