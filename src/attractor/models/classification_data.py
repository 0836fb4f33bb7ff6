"""Labeled examples to train and evaluate a classifier on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from attractor.support.checks import check_kind, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory
from attractor.support.precision import as_plain, finite_where


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs with their classes.

    Attributes:
        inputs: Numbers of tokens ``(example, token)``, or pixels
            ``(example, row, column, channel)``.
        labels: The classes, from 0.
        mask: Where inputs are real tokens, not padding; None for all.

    Raises:
        InvalidInputError: If the arrays do not belong together.
    """

    inputs: np.ndarray
    labels: Int[np.ndarray, "example"]
    mask: Bool[np.ndarray, "example token"] | None = None

    def __post_init__(self) -> None:
        """Checks the arrays and makes them read-only."""
        inputs, labels = _plain("inputs", self.inputs), _plain("labels", self.labels, kinds="fiub")
        if inputs.ndim < 2 or not inputs.size:
            raise InvalidInputError(
                "inputs", f"their shape is {inputs.shape}", "Give one row for each example"
            )
        if labels.shape != inputs.shape[:1]:
            raise InvalidInputError(
                "labels", f"their shape is {labels.shape}", f"Give {len(inputs)}, one an example"
            )
        whole = labels.dtype.kind in "iub" or (labels == np.floor(labels)).all()
        if not whole or labels.min() < 0 or labels.max() >= 2**31:
            raise InvalidInputError(
                "labels", "some are no numbers of classes", "Give integers from 0"
            )
        self._put("labels", labels.astype(np.int32))
        if self.mask is None:
            self._put("inputs", _finite(inputs, True))
            return
        mask = as_plain("mask", self.mask)
        if mask.dtype != bool or mask.shape != inputs.shape[:2]:
            raise InvalidInputError(
                "mask",
                f"it is an array of {mask.dtype} of shape {mask.shape}",
                f"Give booleans of shape {inputs.shape[:2]}, true at real tokens",
            )
        self._put("inputs", _finite(inputs, mask.reshape(*mask.shape, *(1,) * (inputs.ndim - 2))))
        self._put("mask", mask)

    @classmethod
    def of_lengths(
        cls,
        inputs: Int[np.ndarray, "example token"],
        labels: Int[np.ndarray, "example"],
        lengths: Int[np.ndarray, "example"],
    ) -> Examples:
        """Texts of which the first so many tokens are real.

        Args:
            inputs: Numbers of tokens.
            labels: The classes, from 0.
            lengths: Number of real tokens of each text.

        Raises:
            InvalidInputError: If the arrays do not belong together.
        """
        counts, shape = as_plain("lengths", lengths), as_plain("inputs", inputs).shape
        tokens = shape[1] if len(shape) == 2 else 0
        if counts.dtype.kind not in "iu" or counts.shape != shape[:1]:
            raise InvalidInputError(
                "lengths", f"they are {counts.dtype} of shape {counts.shape}", "Give one a text"
            )
        if counts.size and (counts.min() < 0 or counts.max() > tokens):
            raise InvalidInputError(
                "lengths", f"they go to {counts.max()}", f"Give numbers from 0 to {tokens}"
            )
        return cls(inputs, labels, np.arange(tokens) < counts[:, None])

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.inputs.shape[1:]))
        masked = "" if self.mask is None else ", masked"
        return f"Examples({len(self)} of {shape}{masked})"

    def _put(self, name: str, array: np.ndarray) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False)
class ClassificationData:
    """Training, validation and test examples.

    Attributes:
        train: The examples trained on.
        validation: Those by which the best epoch is chosen, and training ended early.
        test: Those that nothing is chosen by.
        settings: The origin of the data, for the record.

    Raises:
        InvalidInputError: If the splits are of different kinds.
    """

    train: Examples
    validation: Examples | None = None
    test: Examples | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks that the splits belong together."""
        check_kinds(settings=(self.settings, Mapping))
        for name, examples in (("train", self.train), *self.held_out):
            check_kind(name, examples, Examples, "Give Examples(...)")
            same_shape = examples.inputs.shape[1:] == self.train.inputs.shape[1:]
            if not same_shape or (examples.mask is None) != (self.train.mask is None):
                raise InvalidInputError(
                    name, f"{examples} is unlike {self.train}", "Give splits of one data set"
                )

    @property
    def held_out(self) -> tuple[tuple[str, Examples], ...]:
        """Validation and test examples with their names, where they are given."""
        named = (("validation", self.validation), ("test", self.test))
        return tuple((name, examples) for name, examples in named if examples is not None)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Every array by its name."""
        return {
            f"{name}.{part}": array
            for name, examples in (("train", self.train), *self.held_out)
            for part in ("inputs", "labels", "mask")
            if (array := getattr(examples, part)) is not None
        }


def _finite(inputs: np.ndarray, used: Any) -> np.ndarray:
    return finite_where("inputs", inputs, used) if inputs.dtype.kind == "f" else inputs


def _plain(argument: str, value: Any, kinds: str = "fiu") -> np.ndarray:
    seen = as_plain(argument, value)
    if seen.dtype.kind == "O":
        raise InvalidInputError(
            argument, "they form no rectangular array", "Pad rows to one length"
        )
    if seen.dtype.kind not in kinds or seen.dtype == np.float16:
        raise InvalidInputError(
            argument, f"they are {seen.dtype}", "Give integers, float32 or float64"
        )
    require_memory(
        argument,
        f"a copy of {seen.size:,} numbers",
        needed=float(seen.size) * seen.itemsize,
        remedy=lambda available: f"Give at most {int(available / seen.itemsize):,}",
    )
    return np.array(seen)
