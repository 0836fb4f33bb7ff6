"""Which sequences a step sees."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from attractor.support.checks import check_choice, check_count
from attractor.support.errors import InvalidInputError

ORDERS = ("random", "shuffled", "cyclic")
"""In which order sequences come."""


def check_batches(batch_size: Any, batch_order: Any, sequences: int) -> tuple[int | None, str]:
    """Checks that mini-batches can be taken, and in which order.

    Args:
        batch_size: Sequences in a step; None for all.
        batch_order: One of ``ORDERS``.
        sequences: How many there are.

    Raises:
        InvalidInputError: If there are fewer sequences, an order is named where there are no
            batches, or one that goes through all of them with a size that does not divide them.
    """
    order = check_choice("batch_order", batch_order, ORDERS)
    if batch_size is None:
        if order != ORDERS[0]:
            raise InvalidInputError(
                "batch_order", f"{order!r}, but every step sees all sequences", "Give a batch_size"
            )
        return None, order
    size = check_count("batch_size", batch_size)
    if size > sequences:
        raise InvalidInputError(
            "batch_size",
            f"{size} sequences cannot be drawn from {sequences}",
            f"Give at most {sequences}",
        )
    if order != ORDERS[0] and sequences % size:
        divisors = [str(one) for one in range(1, sequences + 1) if sequences % one == 0]
        raise InvalidInputError(
            "batch_size",
            f"{sequences} sequences do not make up batches of {size}, as {order!r} needs",
            f"Give one of {', '.join(divisors)}",
        )
    return size, order


def batch_at(
    step: Int[Array, ""], key: UInt32[Array, "2"], sequences: int, size: int, order: str
) -> Int[Array, "size"]:
    """The numbers of the sequences that a step sees, from the step and the key of a trial alone.

    Args:
        step: The number of steps before.
        key: Raw data of a key.
        sequences: How many there are.
        size: How many of them a step sees.
        order: ``"random"``: drawn without replacement, anew at every step. ``"shuffled"``: all
            of them one after the other, in a random order that is another one in every epoch.
            ``"cyclic"``: the same, in the order they have.
    """
    epoch, batch = jnp.divmod(step, sequences // size)
    cyclic = batch * size + jnp.arange(size)
    if order == "cyclic":
        return cyclic
    own = jax.random.fold_in(jax.random.wrap_key_data(key), step if order == "random" else epoch)
    if order == "random":
        return jax.random.choice(own, sequences, (size,), replace=False)
    return jax.random.permutation(own, sequences)[cyclic]
