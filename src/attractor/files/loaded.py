"""What a token file holds, ready for use."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from attractor.attention import LinearHead, get_parameterization
from attractor.selection import Selection
from attractor.tokens import Tokens


@dataclasses.dataclass(frozen=True)
class LoadedTokens:
    """What a token file holds.

    Attributes:
        tokens: The sequences.
        head: The head, fixed or where its training starts; None where the file has none.
        parameterization: What is trained, by the name that ``train`` knows.
        initial: Where training starts, as ``train`` takes it; None for random weights.
        selection: The tokens that the file names, or None.
        optimizer: How to train, as on the command line, or None.
        steps: How long to train, or None.
        from_scores: Whether the file has token scores in place of labels and head. Then labels
            are +1, values the scores and the head the number one, so that the prediction is the
            average score; losses that do not decrease with it make no sense.
    """

    tokens: Tokens
    head: LinearHead | None
    parameterization: str = "W"
    initial: Any = None
    selection: Selection | None = None
    optimizer: str | None = None
    steps: int | None = None
    from_scores: bool = False

    def __getitem__(self, instance: int) -> LoadedTokens:
        """One of several data sets, with what belongs to it."""
        head = self.head
        if head is not None and head.instances is not None:
            head = LinearHead(head.weight[instance])
        return dataclasses.replace(
            self,
            tokens=self.tokens[instance],
            head=head,
            initial=self._start_of(instance),
            selection=None if self.selection is None else self.selection[instance],
        )

    def _start_of(self, instance: int) -> Any:
        if self.initial is None:
            return None
        layer = get_parameterization(self.parameterization)
        tokens = layer.prepare(self.tokens)
        shapes = layer.shapes(tokens.key_dimension, tokens.query_dimension)
        if not isinstance(self.initial, Mapping):
            (shape,) = shapes.values()
            return _of_instance(self.initial, len(shape), instance)
        return {
            name: _of_instance(array, len(shapes[name]), instance)
            for name, array in self.initial.items()
        }


def _of_instance(array: np.ndarray, axes: int, instance: int) -> np.ndarray:
    """The array of an instance, from one for all or one for each."""
    return array if array.ndim == axes else array[instance]
