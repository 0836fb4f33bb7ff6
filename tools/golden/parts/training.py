"""Trajectories: every optimizer and its settings, parameterizations, losses, flows, paths."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from tools.golden.drawn import head_on_tokens, selected, unit

Results = Iterator[tuple[str, Callable[[], Any]]]
STEPS = 200
OPTIMIZERS = (
    *("gradient_descent", "normalized_gradient_descent", "sign_descent", "spectral_descent"),
    *("greedy_coordinate_descent", "composed_spectral_descent", "mirror_descent"),
    *("schatten_mirror_descent", "momentum", "normalized_momentum", "sign_momentum", "adam"),
    *("lion", "muon", "polyak_step"),
)
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "each factor normalized": ("normalized_gradient_descent", {"per_factor": True}),
    "newton-schulz": ("spectral_descent", {"method": "newton-schulz"}),
    "mirror, p = 3": ("mirror_descent", {"p": 3.0}),
    "mirror, plain": ("mirror_descent", {"p": 1.75, "normalize": False}),
    "mirror, momentum and decay": ("mirror_descent", {"momentum": 0.9, "dual_weight_decay": 0.01}),
    "Schatten, p = 3": ("schatten_mirror_descent", {"p": 3.0}),
    "Nesterov": ("momentum", {"nesterov": True}),
    "Adam, eps and decay": ("adam", {"eps": 1e-8, "weight_decay": 0.01}),
    "Muon, exact": ("muon", {"method": "exact"}),
    "decay": ("gradient_descent", {"weight_decay": 0.01}),
    **{
        f"steepest, {name}": ("steepest_descent", {"geometry": name})
        for name in ("l_1", "l_1.5", "l_3", "nuclear", "schatten_3")
    },
}
PARAMETERIZATIONS = ("KQ", "2 x W")
LOSSES = ("exponential", "squared", "linear")


def trained(name: str, settings: dict[str, Any], **named: Any) -> Any:
    """The data of a run of an optimizer on drawn data, two seeds."""
    import attractor as at

    tokens, head = head_on_tokens()
    if name == "composed_spectral_descent":
        named = {"parameterization": "KQ"} | named
    rate = {} if name == "polyak_step" else {"learning_rate": 0.1}
    optimizer = getattr(at, name)(**rate, **settings)
    return at.train(tokens, head, optimizer, steps=STEPS, seeds=2, **named).data


def optimizers() -> Results:
    """Every optimizer by default, and in other settings."""
    for name in OPTIMIZERS:
        yield name, functools.partial(trained, name, {})
    for title, (name, settings) in SETTINGS.items():
        yield title, functools.partial(trained, name, settings)


def runs() -> Results:
    """Other parameterizations, losses, batches, schedules, types and starts."""
    import attractor as at

    for one in PARAMETERIZATIONS:
        for name in ("normalized_gradient_descent", "muon"):
            yield f"{one}, {name}", functools.partial(trained, name, {}, parameterization=one)
    descent = functools.partial(trained, "gradient_descent", {})
    for loss in LOSSES:
        yield f"loss {loss}", functools.partial(descent, loss=loss)
    yield "batches", functools.partial(descent, batch_size=2)
    yield "plain kernel", functools.partial(descent, kernel="plain")
    yield "float32", functools.partial(descent, dtype="float32")
    tokens, head = head_on_tokens()
    schedule = functools.partial(at.power_decay, 0.5, 0.5)
    yield (
        "schedule",
        lambda: (
            at.train(tokens, head, at.normalized_gradient_descent(schedule()), steps=STEPS).data
        ),
    )
    prompt = at.Tokens.prompt_vector(keys=unit(4, 4, 5, 6), labels=[1, -1, 1, -1])
    yield (
        "prompt",
        lambda: (
            at.train(
                prompt, head, at.normalized_gradient_descent(0.1), steps=STEPS, parameterization="p"
            ).data
        ),
    )
    yield (
        "several rates",
        lambda: at.train(tokens, head, at.mirror_descent([0.05, 0.1], p=1.5), steps=STEPS).data,
    )
    batch = head_on_tokens(3)
    yield "instances", lambda: at.train(*batch, at.gradient_descent(0.1), steps=STEPS).data


def flows() -> Results:
    """Gradient flow and regularization paths."""
    import attractor as at

    tokens, head, _, solution = selected()
    yield "flow", lambda: at.gradient_flow(tokens, head, log_time=4.0).data
    yield (
        "flow, KQ",
        lambda: at.gradient_flow(tokens, head, time=20.0, parameterization="KQ", seeds=1).data,
    )
    for name in ("frobenius", "l_1.5", "nuclear"):
        path = functools.partial(
            at.regularization_path, tokens, head, radii=[0.5, 2.0, 8.0], starts=2
        )
        geometry = at.geometry.get_geometry(name)
        yield f"path, {name}", lambda path=path, geometry=geometry: path(geometry).data
    local = functools.partial(
        at.training.local_path, tokens, head, solution, 0.5, radii=[1.0, 4.0], starts=2
    )
    yield "local-path", lambda: local().data


ADAPTERS = {"optimizer": optimizers, "run": runs, "flow": flows}
