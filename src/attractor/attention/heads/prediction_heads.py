"""A prediction head for each of several attention heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Float

from attractor.attention.heads.head import Head
from attractor.support.errors import InvalidInputError


class PredictionHeads(Head):
    """A prediction head for each of several attention heads, whose predictions are added.

        f = sum_h h_h(o_h),    o_h the output of attention head h

    Of vectors that are no outputs of attention it says what each of its heads does, along a
    leading axis: token scores of ``optimal_tokens`` are those of every attention head.

    Attributes:
        each: The heads, one for each attention head.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> heads = at.PredictionHeads([at.LinearHead([1, 0]), at.LinearHead([0, 1])])
        >>> heads(np.array([3.0, 5.0]))
        array([3., 5.])
    """

    kind: ClassVar[str] = "prediction_heads"
    each: tuple[Head, ...]

    def __init__(self, each: Sequence[Any]) -> None:
        """Checks and stores the heads.

        Args:
            each: One for each attention head: heads for vectors of one dimension, all of one
                prediction or of as many logits.

        Raises:
            InvalidInputError: If there is none, one is no head, or they do not fit each other.
        """
        heads = tuple(each) if isinstance(each, list | tuple) else ()
        if not heads or not all(isinstance(one, Head) for one in heads):
            wrong = next((one for one in heads if not isinstance(one, Head)), each)
            raise InvalidInputError(
                "each",
                f"{type(wrong).__name__} is not a list of heads" if not heads else
                f"{type(wrong).__name__} is not a head",
                "Give one for each attention head, as in [LinearHead(v), LinearHead(w)]",
            )  # fmt: skip
        for what, values in (
            ("vectors of dimension", [one.input_dimension for one in heads]),
            ("logits", [one.classes for one in heads]),
            ("instances", [one.instances for one in heads if one.instances is not None]),
        ):
            if len(set(values)) > 1:
                raise InvalidInputError(
                    "each",
                    f"the heads have {what} {' and '.join(map(str, dict.fromkeys(values)))}",
                    "Give heads that read the same vectors and whose predictions can be added",
                )
        counts = [one.instances for one in heads if one.instances is not None]
        if counts:
            numbers = np.zeros(counts[0], dtype=int)
            heads = tuple(
                one.for_instances(numbers) if one.instances is None else one for one in heads
            )
        self.each = heads

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Its own name, with those of its heads."""
        return f"{self.kind}({', '.join(one.name for one in self.each)})"

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the heads."""
        return self.each[0].instances

    @property
    def input_dimension(self) -> int:
        """Dimension v of the output of each attention head."""
        return self.each[0].input_dimension

    @property
    def classes(self) -> int | None:
        """Number of logits that each gives."""
        return self.each[0].classes

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """What each head says about the outputs, along a leading axis."""
        found = [one.predict(outputs) for one in self.each]
        return found[0].__array_namespace__().stack(found)

    def __call__(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "attention_head *batch ..."]:
        """What each head says about the outputs, along a leading axis.

        Raises:
            InvalidInputError: If the outputs have another dimension or number of instances.
        """
        found = [one(outputs) for one in self.each]
        return found[0].__array_namespace__().stack(found)

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "attention_head *batch"]:
        """That of each head, along a leading axis."""
        found = [one.reach(outputs) for one in self.each]
        return found[0].__array_namespace__().stack(found)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of each head behind its number, such as ``0.weight``."""
        numbered = enumerate(self.each)
        return {f"{n}.{name}": array for n, one in numbered for name, array in one.arrays().items()}


def by_attention_head(head: Head | eqx.Module, heads: int) -> list[Any]:
    """The prediction head of each attention head: its own, or the one that they share."""
    return list(head.each) if isinstance(head, PredictionHeads) else [head] * heads


def names_of_each(name: str) -> list[str]:
    """The names of the heads in the name of prediction heads; none in other names."""
    start = f"{PredictionHeads.kind}("
    whole = name.startswith(start) and name.endswith(")")
    return name.removeprefix(start)[:-1].split(", ") if whole else []


def arrays_of_each(arrays: Mapping[str, Any], heads: int) -> list[dict[str, Any]]:
    """The arrays of each head, by the names without its number.

    Raises:
        TypeError: If one belongs to no head.
    """
    found: list[dict[str, Any]] = [{} for _ in range(heads)]
    for key, array in arrays.items():
        number, _, name = key.partition(".")
        if not number.isdecimal() or int(number) >= heads:
            raise TypeError(f"{key!r} belongs to none of {heads} heads")
        found[int(number)][name] = array
    return found
