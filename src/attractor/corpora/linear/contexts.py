"""``EmbeddedContexts``: fixed vectors, each with the distribution of the tokens that follow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for
from attractor.support.precision import LARGEST, as_float64, as_integers
from attractor.tokens.validation import check_instance_numbers

_SUM_TOLERANCE = 1e-6
"""Tolerance of the sum of the probabilities of a context: float32 data pass."""
_ROUNDING = 1e-12
"""The same once they are divided by their sum."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class EmbeddedContexts:
    """Distinct contexts ``h_j`` in R^d, their frequencies, and the tokens that follow them.

    A linear decoder ``W`` of shape ``(V, d)`` predicts the next token of context j by
    ``softmax(W h_j)``, and is trained by the cross-entropy

        CE(W) = - sum_j pi_j sum_z p_jz log softmax_z(W h_j).

    A leading axis, where there is one, counts instances: data sets of the same shape.

    Attributes:
        embeddings: The ``h_j``, ``(*instances, m, d)``.
        probabilities: The ``p_j``, ``(*instances, m, V)``; every row sums to one.
        frequencies: The ``pi_j``, ``(*instances, m)``, positive, of sum one.
        instance_numbers: The number of each instance; it names the instance's randomness and
            stays with it when instances are chosen.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), training objective.
    """

    embeddings: Float[np.ndarray, "*instances m d"]
    probabilities: Float[np.ndarray, "*instances m V"]
    frequencies: Float[np.ndarray, "*instances m"]
    instance_numbers: Int[np.ndarray, "instances"]

    def __init__(
        self,
        embeddings: Any,
        probabilities: Any,
        frequencies: Any = None,
        *,
        instance_numbers: Any = None,
    ) -> None:
        """Checks and stores contexts.

        Args:
            embeddings: ``(m, d)``, or ``(instances, m, d)``.
            probabilities: ``(m, V)``, or ``(instances, m, V)``, each row of sum one to 1e-6; it
                is divided by its sum. The support of a context is its positive entries.
            frequencies: ``(m,)``, or ``(instances, m)``; counts will do, as they are divided by
                their sum. Default: all the same.
            instance_numbers: ``(instances,)`` distinct integers; default: 0, 1, 2, ...

        Raises:
            InvalidInputError: If shapes do not fit, an entry is not a finite number, a row is no
                distribution, or a frequency is not positive.
        """
        embeddings = as_float64("embeddings", embeddings)
        if embeddings.ndim not in (2, 3) or 0 in embeddings.shape:
            raise InvalidInputError(
                "embeddings",
                f"the shape is {embeddings.shape}",
                "Give (contexts, d), or (instances, contexts, d), and at least one of each",
            )
        rows = embeddings.shape[:-1]
        probabilities = _distributions(
            as_float64("probabilities", probabilities, largest=LARGEST), rows
        )
        frequencies = _shares(frequencies, rows)
        lead = rows[:-1]
        numbers = check_instance_numbers(instance_numbers, lead[0] if lead else 1)
        arrays = (embeddings, probabilities, frequencies, numbers)
        for field, array in zip(fields(self), arrays, strict=True):
            array.setflags(write=False)
            object.__setattr__(self, field.name, array)

    @classmethod
    def one_hot(
        cls, embeddings: Any, labels: Any, classes: int, frequencies: Any = None
    ) -> EmbeddedContexts:
        """Contexts each of which is always followed by one token: multiclass classification.

        Args:
            embeddings: ``(m, d)``, or ``(instances, m, d)``.
            labels: The token that follows, ``(m,)`` or ``(instances, m)``: integers from 0.
            classes: Number V of tokens.
            frequencies: As above.

        Raises:
            InvalidInputError: If a label is not an integer from 0 to ``classes - 1``, or as above.
        """
        embeddings = as_float64("embeddings", embeddings)
        classes = check_count("classes", classes, 2)
        labels = as_integers("labels", labels, embeddings.shape[:-1], most=classes - 1)
        require_memory_for(
            "classes",
            classes,
            f"probabilities for each of {labels.size:,} contexts",
            each=32.0 * max(labels.size, 1),
            otherwise="Give fewer contexts",
        )
        hot = (labels[..., None] == np.arange(classes)).astype(np.float64)
        return cls(embeddings, hot, frequencies)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> EmbeddedContexts:
        """Contexts of stored arrays, bit for bit: nothing is divided again.

        Raises:
            InvalidInputError: If an array is none of contexts.
            ValueError: If rows of probabilities, or frequencies, do not add up to one.
        """
        checked = cls(**arrays)
        restored = object.__new__(cls)
        for field in fields(cls):
            array = np.array(arrays[field.name], dtype=getattr(checked, field.name).dtype)
            sums = array.sum(-1)
            if field.name in ("probabilities", "frequencies") and (abs(sums - 1) > _ROUNDING).any():
                raise ValueError(f"{field.name} do not add up to 1")
            array.setflags(write=False)
            object.__setattr__(restored, field.name, array)
        return restored

    @property
    def support(self) -> Bool[np.ndarray, "*instances m V"]:
        """The tokens that ever follow each context."""
        return self.probabilities > 0

    @property
    def entropy(self) -> Float[np.ndarray, "*instances"]:
        """``H = - sum_j pi_j sum_z p_jz log p_jz``: the infimum the loss cannot go below."""
        logs = np.log(np.where(self.support, self.probabilities, 1.0))
        entropy = -(self.frequencies * (self.probabilities * logs).sum(-1)).sum(-1)
        return np.asarray(entropy + 0.0)  # no negative zero

    @property
    def instances(self) -> int | None:
        """Number of instances, or None without an axis of instances."""
        return self.embeddings.shape[0] if self.embeddings.ndim == 3 else None

    @property
    def count(self) -> int:
        """Number m of contexts."""
        return self.embeddings.shape[-2]

    @property
    def dimension(self) -> int:
        """Dimension d of the embeddings."""
        return self.embeddings.shape[-1]

    @property
    def classes(self) -> int:
        """Number V of tokens."""
        return self.probabilities.shape[-1]

    def batched(self) -> EmbeddedContexts:
        """The same contexts with an axis of instances, of length one if there was none."""
        return self if self.instances is not None else self._view(np.s_[None], np.s_[:])

    def __len__(self) -> int:
        """Number of instances."""
        if self.instances is None:
            raise TypeError("contexts without an axis of instances have no length")
        return self.instances

    def __getitem__(self, index: Any) -> EmbeddedContexts:
        """Chooses instances, which keep their numbers; an integer takes the axis away."""
        if self.instances is None:
            raise InvalidInputError(
                "index", "these contexts have no axis of instances", "Use them as they are"
            )
        if isinstance(index, int | np.integer):
            return self._view(index, [index])
        return self._view(index, index)

    def __iter__(self) -> Iterator[EmbeddedContexts]:
        """The instances in turn."""
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        sizes = self.support.sum(-1)
        lead = "" if self.instances is None else f"{self.instances} instances, "
        entropy = np.mean(self.entropy)
        return (
            f"EmbeddedContexts({lead}{self.count} contexts in R^{self.dimension}, "
            f"{self.classes} tokens, of which {sizes.min()} to {sizes.max()} follow a context, "
            f"entropy {entropy:.4g})"
        )

    def _view(self, index: Any, numbers: Any) -> EmbeddedContexts:
        chosen = object.__new__(EmbeddedContexts)  # checked already, and views will do
        for name in ("embeddings", "probabilities", "frequencies"):
            object.__setattr__(chosen, name, getattr(self, name)[index])
        object.__setattr__(chosen, "instance_numbers", self.instance_numbers[numbers])
        return chosen


def _distributions(
    probabilities: Float[np.ndarray, "..."], rows: tuple[int, ...]
) -> Float[np.ndarray, "*rows V"]:
    """Rows divided by their sums."""
    if probabilities.shape[:-1] != rows or probabilities.shape[-1] < 2:
        raise InvalidInputError(
            "probabilities",
            f"the shape is {probabilities.shape}, but there are {rows} embeddings",
            f"Give {(*rows, 'V')}: one distribution over at least two tokens for each context",
        )
    sums = probabilities.sum(-1, keepdims=True)
    wrong = (probabilities < 0).any(-1) | (np.abs(sums[..., 0] - 1) > _SUM_TOLERANCE)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InvalidInputError(
            "probabilities",
            f"the row of context {place} has sum {sums[place][0]:.9g} and least entry "
            f"{probabilities[place].min():.3g}",
            "Give rows without negative entries whose sum is 1",
        )
    return probabilities / sums


def _shares(frequencies: Any, rows: tuple[int, ...]) -> Float[np.ndarray, "*rows"]:
    """Frequencies divided by their sum."""
    if frequencies is None:
        return np.full(rows, 1 / rows[-1])
    frequencies = as_float64("frequencies", frequencies, largest=LARGEST)
    if frequencies.shape not in (rows, rows[-1:]):
        raise InvalidInputError(
            "frequencies", f"the shape is {frequencies.shape}", f"Give {rows}: one a context"
        )
    if (frequencies <= 0).any():
        place = tuple(int(i) for i in np.argwhere(frequencies <= 0)[0])
        raise InvalidInputError(
            "frequencies",
            f"that of context {place} is {frequencies[place]:g}",
            "Give positive ones, and leave out contexts that do not occur",
        )
    frequencies = np.broadcast_to(frequencies, rows)
    return frequencies / frequencies.sum(-1, keepdims=True)
