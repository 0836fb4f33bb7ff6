"""Optimizers: optax transformations that also say which geometry they descend."""

from __future__ import annotations

from typing import Any, Literal, get_args

import optax
from jaxtyping import PyTree

from attractor.attention.scaled import Scaled, direction, magnitude
from attractor.errors import InvalidInputError
from attractor.geometry import Geometry

Reads = Literal["direction", "magnitude"]


class Optimizer(optax.GradientTransformationExtraArgs):
    """An optax transformation that declares the geometry it descends in its own parameters.

    It is a pair of pure functions like any other and works wherever optax's own do.

    Attributes:
        geometry: The norm whose steepest descent it is.
        reads: What of a gradient it uses: its ``"direction"`` alone, so that gradients too small
            for floating point lose nothing, or its true ``"magnitude"``.
        name: What tables and plots call it.
        settings: Its hyperparameters.
    """

    geometry: Geometry
    reads: Reads
    name: str
    settings: dict[str, Any]

    def __new__(
        cls,
        init: Any,
        update: Any,
        *,
        geometry: Geometry,
        reads: Reads,
        name: str,
        settings: dict[str, Any],
    ) -> Optimizer:
        """Joins the pair of functions with what they declare."""
        optimizer = super().__new__(cls, init, update)
        optimizer.geometry = geometry
        optimizer.reads = reads
        optimizer.name = name
        optimizer.settings = settings
        return optimizer

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}({settings})"

    def read(self, gradient: PyTree[Scaled]) -> PyTree:
        """Turns a scaled gradient into the plain arrays that ``update`` takes."""
        return direction(gradient) if self.reads == "direction" else magnitude(gradient)


def declare(
    transformation: optax.GradientTransformation,
    *,
    geometry: Geometry,
    reads: Reads = "magnitude",
    name: str = "declared by the user",
    settings: dict[str, Any] | None = None,
) -> Optimizer:
    """Declares which geometry an optax transformation descends.

    Also puts back what ``optax.chain`` loses of a declaration.

    Args:
        transformation: Any optax transformation, ``optax.sgd(0.1)`` for instance.
        geometry: The norm whose steepest descent it is.
        reads: ``"magnitude"`` gives it true gradients, which underflow to zero where floating
            point ends; ``"direction"`` gives them up to a positive factor and is right for
            transformations that normalize, and for those alone.
        name: What tables and plots call it.
        settings: Hyperparameters to keep with the results.

    Raises:
        InvalidInputError: If an argument is of the wrong kind.
    """
    if not isinstance(transformation, optax.GradientTransformation):
        raise InvalidInputError(
            "transformation",
            f"{type(transformation).__name__} is not an optax gradient transformation",
            "Give one, such as optax.sgd(0.1)",
        )
    if not isinstance(geometry, Geometry):
        raise InvalidInputError(
            "geometry", f"{geometry!r} is not a geometry", "Give one, such as Frobenius()"
        )
    if reads not in get_args(Reads):
        raise InvalidInputError(
            "reads", f"{reads!r} is not known", f"Give one of {get_args(Reads)}"
        )
    extended = optax.with_extra_args_support(transformation)
    return Optimizer(
        extended.init,
        extended.update,
        geometry=geometry,
        reads=reads,
        name=name,
        settings=settings or {},
    )
