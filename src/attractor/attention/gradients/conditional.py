"""A conditional that stays one under ``vmap``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, Bool, PyTree


def cond_for_any(
    flag: Bool[Array, ""],
    rare: Callable[[PyTree], PyTree],
    usual: Callable[[PyTree], PyTree],
    operand: PyTree,
) -> PyTree:
    """Computes ``rare(operand)`` if the flag is set in any instance of a batch.

    ``jax.lax.cond`` computes both branches under ``vmap``. Here one decision is taken for all, so
    that ``rare`` has to give what ``usual`` gives where the flag is not set.
    """
    return jax.lax.cond(_any(flag), rare, usual, operand)


@jax.custom_batching.custom_vmap
def _any(flag: Bool[Array, ""]) -> Bool[Array, ""]:
    return flag


@_any.def_vmap
def _any_of_batch(size: int, batched: list[bool], flag: Any) -> tuple[Any, bool]:
    return flag.any(), False
