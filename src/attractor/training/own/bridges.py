"""Other frameworks whose optimizers are trained with, found by entry points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry
from attractor.support.plugins import load_plugin

GROUP = "attractor.frameworks"
"""The entry points of frameworks: a module each, as ``attractor.torch`` is one."""


class ForeignOptimizer(Protocol):
    """An optimizer of another framework."""

    @property
    def name(self) -> str:
        """Its name in tables and figures."""
        ...

    @property
    def reads(self) -> str:
        """The form in which it receives gradients, in words."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """Its hyperparameters."""
        ...

    @property
    def geometry(self) -> Geometry | None:
        """The norm that it descends; None where that is not known."""
        ...

    def step(
        self,
        arrays: Sequence[Float[np.ndarray, "..."]],
        gradients: Sequence[Float[np.ndarray, "..."]],
    ) -> list[Float[np.ndarray, "..."]]:
        """The arrays after the first step of an optimizer of its own."""
        ...


def bridge(framework: str) -> Any:
    """The module that trains with the optimizers of a framework, such as ``attractor.torch``.

    Raises:
        ImportError: If the framework is not installed.
    """
    return load_plugin(GROUP, framework)
