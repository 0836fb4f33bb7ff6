"""Token files: token sequences, one data set or several, and what is to be done with them."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from attractor.attention import get_parameterization
from attractor.attention.readout import LinearReadout
from attractor.files.contents import ArrayFile, Layout, check_known
from attractor.files.scores import scores_of, tokens_from_scores
from attractor.files.selections import read_selection, selection_array
from attractor.margin.selection import Selection
from attractor.support.checks import check_count, check_kinds, check_text, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_plain
from attractor.tokens import Tokens
from attractor.training.initial import check_initial

if TYPE_CHECKING:
    from attractor.attention import LinearHead, Parameterization
    from attractor.files.case import Case

LAYOUT = {
    "keys": ("(n, T, d)", "the tokens of n sequences, T each, d numbers per token"),
    "queries": ("(n, e)", "the query of each sequence; not needed where a prompt is trained"),
    "labels": ("(n,)", "-1 or +1 for each sequence; not needed without a head"),
    "head": ("(d,)", "optional: the fixed linear head v that reads what attention returns"),
    "scores": ("(n, T)", "in place of labels and head: the score of every token"),
    "values": ("(n, T, v)", "optional: what attention averages, where it is not the keys"),
    "mask": ("(n, T)", "optional, bool: False where a token is padding"),
    "rows": ("(n,)", "optional, bool: False where a query is padding"),
    "parameterization": ("text", "optional: what is trained: W, KQ, p, or (v, W) and so on"),
    "initial": ("(d, e)", "optional: where W starts, or (d,) where p does; default: random"),
    "initial_K": ("(d, d)", "optional, with initial_Q: where K and Q start"),
    "initial_Q": ("(e, d)", "optional, with initial_K"),
    "initial_head": ("(v,)", "in place of head: where the head starts if it is trained too"),
    "selection": ("(n,)", "optional, integers: which tokens to keep; else the best ones"),
    "optimizer": ("text", "optional: how to train, such as ngd:learning_rate=0.1"),
    "steps": ("()", "optional, an integer: how long to train"),
    "instance_numbers": ("(instances,)", "optional: the numbers of several data sets"),
}
"""The entries of a token file: the shape of each, and its meaning.

Every array but the last two may have one leading axis of instances: data sets treated side by
side. With several queries a sequence, ``queries``, ``labels``, ``mask``, ``rows`` and ``selection``
have an axis for them behind that of sequences; ``scores`` may have one. Where ``values`` are
given, the head has their dimension. A ``selection`` of truth values for every token may keep
several a row.
"""

_STARTS = ("initial", "initial_K", "initial_Q")
"""The arrays that say where attention starts."""


@dataclasses.dataclass(frozen=True)
class LoadedTokens(ArrayFile):
    """The contents of a token file: one data set, or several of one shape.

    Attributes:
        tokens: The sequences.
        head_weight: The vector v of the head, fixed or where its training starts, ``(v,)`` or
            ``(instances, v)``; None where the file has none.
        parameterization: What is trained, by the name that ``train`` knows.
        initial: Where training starts, as ``train`` takes it; None for random weights.
        selection: The tokens that the file names, or None.
        optimizer: How to train, as on the command line, or None.
        steps: How long to train, or None.
        from_scores: Whether the file has token scores in place of labels and head. Then labels
            are +1, values the scores and the head the number one, so that the prediction is the
            average score; losses that do not decrease with it make no sense.
        about: What the data are, in words.
    """

    words: ClassVar[str] = "token file"
    held: ClassVar[str] = "token sequences"
    reader: ClassVar[str] = "attractor check"
    missing: ClassVar[str] = (
        "Give a .npz or .safetensors file; `attractor example tokens PATH` writes one"
    )
    layout: ClassVar[Layout] = LAYOUT
    tokens: Tokens
    head_weight: Float[np.ndarray, "*instances v"] | None
    parameterization: str = "W"
    initial: Any = None
    selection: Selection | None = None
    optimizer: str | None = None
    steps: int | None = None
    from_scores: bool = False
    about: str = "data"

    @functools.cached_property
    def head(self) -> LinearHead | None:
        """The head that can be trained; None where the file has none."""
        from attractor.attention import LinearHead

        return None if self.head_weight is None else LinearHead(self.head_weight)

    @property
    def readout(self) -> LinearReadout | None:
        """The head as margin problems need it; None where the file has none."""
        return None if self.head_weight is None else LinearReadout(self.head_weight)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], name: str
    ) -> LoadedTokens:
        """Puts together what lies in a token file; see ``ArrayFile``."""
        layer = get_parameterization(texts.get("parameterization", "W"))
        _check_names(arrays, layer, name)
        if "optimizer" in texts:
            from attractor.training.optimizers import named_optimizer

            named_optimizer(texts["optimizer"])
        tokens = rows = _tokens(arrays)
        from_scores = "scores" in arrays
        if from_scores:
            tokens = tokens_from_scores(rows, arrays["scores"])
        return cls(
            tokens=tokens,
            head_weight=np.ones(1) if from_scores else _head_weight(arrays, tokens),
            parameterization=layer.name,
            initial=_initial(arrays, layer, tokens),
            selection=read_selection(arrays.get("selection"), rows, tokens),
            optimizer=texts.get("optimizer"),
            steps=_steps(arrays),
            from_scores=from_scores,
            about=name,
        )

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The arrays and texts of a token file.

        Tokens whose labels are +1 and whose values are numbers that the head takes as they are
        become ``scores``.

        Raises:
            InvalidInputError: If something cannot be kept in a token file.
        """
        layer = get_parameterization(self.parameterization)
        given = _token_arrays(self.tokens, layer)
        given |= _targets(self.tokens, self.head_weight, layer) | _start_arrays(self.initial, layer)
        if self.selection is not None:
            given["selection"] = selection_array(self.selection, self.tokens)
        if self.steps is not None:
            given["steps"] = _rectangular("steps", self.steps)
        texts = {"parameterization": layer.name} if layer.name != "W" else {}
        if self.optimizer is not None:
            texts["optimizer"] = check_text("optimizer", self.optimizer)
        return {name: _rectangular(name, array) for name, array in given.items()}, texts

    def data_sets(self) -> Sequence[Case]:
        """The data sets that claims are examined on, one for every instance.

        Raises:
            InvalidInputError: If the file says neither scores nor a head.
        """
        if self.head_weight is None:
            raise InvalidInputError(
                "head",
                f"{self.about} has no such array, and no scores",
                "Add head (d,), or scores (n, T) in place of labels and head",
            )
        if self.tokens.instances is None:
            return [self._case(self.about)]
        numbers = self.tokens.instance_numbers
        return [
            self[place]._case(f"{self.about}, instance {number}")
            for place, number in enumerate(numbers)
        ]

    def _case(self, about: str) -> Case:
        from attractor.files.case import Case

        training = self.initial, self.selection, self.optimizer, self.steps
        assert self.head is not None
        return Case(self.tokens, self.head, self.parameterization, *training, about)

    def __getitem__(self, instance: int) -> LoadedTokens:
        """One of several data sets, with what belongs to it."""
        weight = self.head_weight
        if weight is not None and weight.ndim > 1:
            weight = weight[instance]
        return dataclasses.replace(
            self,
            tokens=self.tokens[instance],
            head_weight=weight,
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


def save_tokens(
    path: str | os.PathLike[str],
    tokens: Tokens,
    head: LinearHead | None = None,
    *,
    parameterization: str = "W",
    initial: Any = None,
    selection: Selection | None = None,
    optimizer: str | None = None,
    steps: int | None = None,
) -> None:
    """Writes tokens, and what is to be done with them, so that ``load`` gives all of it back.

    Tokens whose labels are +1 and whose values are numbers that the head takes as they are become
    ``scores``.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        tokens: Tokens with labels.
        head: A linear head: fixed, or where its training starts.
        parameterization: What is trained, by a name that ``train`` knows.
        initial: Where training starts, as ``train`` takes it; for all instances or for each.
        selection: The tokens to keep instead of the best ones.
        optimizer: How to train, as on the command line; the name of a registered optimizer.
        steps: How long to train.

    Raises:
        InvalidInputError: If the name ends in anything else, or something cannot be kept in a
            token file; nothing is written then.
    """
    check_kinds(tokens=(tokens, Tokens), selection=(selection, Selection | None))
    weight = weight_of(head)
    held = LoadedTokens(tokens, weight, parameterization, initial, selection, optimizer, steps)
    held.save(path)


def _of_instance(array: np.ndarray, axes: int, instance: int) -> np.ndarray:
    """The array of an instance, from one for all or one for each."""
    return array if array.ndim == axes else array[instance]


def _start_names(layer: Parameterization) -> dict[str, str]:
    """The array in a file for each array that is trained: ``initial`` for a single one."""
    trained = tuple(layer.shapes(1, 1))
    if len(trained) == 1:
        return {trained[0]: "initial"}
    return {name: f"initial_{name}" for name in trained}


def _trains_prompt(layer: Parameterization) -> bool:
    """Whether a prompt is trained, so that queries mean nothing."""
    return set(layer.shapes(1, 1)) == {"p"}


def _check_names(arrays: Mapping[str, np.ndarray], layer: Parameterization, file: str) -> None:
    required = ["keys"]
    required += [] if _trains_prompt(layer) else ["queries"]
    if "scores" not in arrays and (layer.trains_head or "head" in arrays):
        required.append("labels")  # which nothing but a head is compared with
    missing = next((name for name in required if name not in arrays), None)
    if missing is not None:
        shape, meaning = LAYOUT[missing]
        raise InvalidInputError(
            missing,
            f"{file} has no such array; it has {', '.join(sorted(arrays)) or 'none'}",
            f"Add {missing} {shape}: {meaning}",
        )
    check_known(arrays, LAYOUT, file)
    if "scores" in arrays:
        _refuse_beside(
            "scores",
            arrays,
            ("labels", "head", "initial_head", "values"),
            "Keep scores alone, or labels and head without them",
        )
        if layer.trains_head:
            raise InvalidInputError(
                "scores",
                f"they are those of a fixed head, but {layer.name!r} trains the head",
                "Give labels, values and initial_head in their place",
            )
    if "initial_head" in arrays:
        _refuse_beside("initial_head", arrays, ("head",), "Keep the one that is meant")
        if not layer.trains_head:
            raise InvalidInputError(
                "initial_head",
                f"the head stays fixed where {layer.name!r} is trained",
                "Rename it to head, or set parameterization, such as 'v, W'",
            )


def _refuse_beside(
    name: str, arrays: Mapping[str, np.ndarray], others: tuple[str, ...], remedy: str
) -> None:
    beside = [other for other in others if other in arrays]
    if beside:
        raise InvalidInputError(
            name, f"it stands in the place of {beside[0]}, but both are there", remedy
        )


def _tokens(arrays: Mapping[str, np.ndarray]) -> Tokens:
    keys = as_float64("keys", arrays["keys"], finite=False)
    for name in ("mask", "rows"):
        if name in arrays and arrays[name].dtype != np.bool_:
            raise InvalidInputError(
                name,
                f"its data type is {arrays[name].dtype.name}",
                "Save it as bool, False for padding",
            )
    return Tokens(
        keys,
        arrays["queries"] if "queries" in arrays else np.ones((*keys.shape[:-2], 1)),
        arrays.get("labels"),
        arrays.get("mask"),
        arrays.get("values"),
        rows=arrays.get("rows"),
        instance_numbers=arrays.get("instance_numbers"),
    )


def weight_of(head: Any) -> Float[np.ndarray, "*instances v"] | None:
    """The vector of a linear head; None of none.

    Raises:
        InvalidInputError: If it is another head.
    """
    if head is None:
        return None
    if not isinstance(head, LinearReadout):
        raise InvalidInputError(
            "head", f"it is a {type(head).__name__}", "A token file holds linear heads alone"
        )
    return np.asarray(head.weight)


def _head_weight(
    arrays: Mapping[str, np.ndarray], tokens: Tokens
) -> Float[np.ndarray, "*instances v"] | None:
    name = "initial_head" if "initial_head" in arrays else "head"
    if name not in arrays:
        return None
    v = as_float64(name, arrays[name])
    d = tokens.value_dimension
    shapes = [(d,)] if tokens.instances is None else [(d,), (tokens.instances, d)]
    if v.shape not in shapes:
        what = "tokens" if "values" not in arrays else "values"
        raise InvalidInputError(
            name,
            f"its shape is {v.shape}, but the {what} have {d} numbers each",
            f"Its shape must be {' or '.join(str(shape) for shape in shapes)}",
        )
    return v


def _initial(
    arrays: Mapping[str, np.ndarray], layer: Parameterization, tokens: Tokens
) -> np.ndarray | dict[str, np.ndarray] | None:
    given = {name for name in _STARTS if name in arrays}
    if not given:
        return None
    names = _start_names(layer)
    wrong = sorted(given ^ set(names.values()))
    if wrong:
        raise InvalidInputError(
            wrong[0],
            f"the file has {' and '.join(sorted(given))}, but {layer.name!r} is trained",
            f"Give exactly {' and '.join(names.values())}, or set parameterization",
        )
    start = {trained: as_float64(name, arrays[name]) for trained, name in names.items()}
    check_initial(start, layer, layer.prepare(tokens), 1)
    return start if len(start) > 1 else next(iter(start.values()))


def _steps(arrays: Mapping[str, np.ndarray]) -> int | None:
    if "steps" not in arrays:
        return None
    steps = arrays["steps"]
    if steps.ndim or steps.dtype.kind not in "iu":
        raise InvalidInputError(
            "steps",
            f"it is an array of type {steps.dtype} and shape {steps.shape}",
            "Save one integer without axes",
        )
    return check_count("steps", int(steps))


def _token_arrays(tokens: Tokens, layer: Parameterization) -> dict[str, np.ndarray]:
    one_query = tokens.queries_per_sequence == 1
    queries, mask = (
        (tokens.queries[..., 0, :], tokens.mask[..., 0, :])
        if one_query
        else (tokens.queries, tokens.mask)
    )
    arrays = {"keys": tokens.keys}
    if not (_trains_prompt(layer) and queries.shape[-1] == 1 and (queries == 1).all()):
        arrays["queries"] = queries
    if not mask.all():
        arrays["mask"] = mask
    if tokens.weights is not None:
        rows = tokens.weights[..., 0] > 0 if one_query else tokens.weights > 0
        arrays["rows"] = rows
    if tokens.instances is not None:
        arrays["instance_numbers"] = tokens.instance_numbers
    return arrays


def _targets(
    tokens: Tokens, weight: Float[np.ndarray, "*instances v"] | None, layer: Parameterization
) -> dict[str, np.ndarray]:
    """The targets of training: scores, or labels with a head and values."""
    if tokens.weights is not None and not _mark_padding(tokens.weights):
        raise InvalidInputError("tokens", "their rows have weights", "A token file holds none")
    if tokens.labels is None:
        raise InvalidInputError("tokens", "they have no labels", "Give labels, -1 or +1")
    scores = None if layer.trains_head else scores_of(tokens, weight)
    if scores is not None:
        return {"scores": scores}
    one_query = tokens.queries_per_sequence == 1
    arrays = {"labels": tokens.labels[..., 0] if one_query else tokens.labels}
    if not np.array_equal(tokens.values, tokens.keys):
        arrays["values"] = tokens.values
    if weight is not None:
        arrays["initial_head" if layer.trains_head else "head"] = weight
    return arrays


def _mark_padding(weights: np.ndarray) -> bool:
    """Whether weights of rows say which are padding, and nothing else."""
    largest = weights.max((-1, -2), keepdims=True)
    return bool(((weights == 0) | (weights == largest)).all())


def _rectangular(argument: str, value: Any) -> np.ndarray:
    array = as_plain(argument, value)
    if array.dtype.kind == "O":
        raise InvalidInputError(argument, f"{shown(value)} is no array", "Give one of numbers")
    return array


def _start_arrays(initial: Any, layer: Parameterization) -> dict[str, np.ndarray]:
    if initial is None:
        return {}
    names = _start_names(layer)
    if not isinstance(initial, Mapping):
        if len(names) > 1:
            raise InvalidInputError(
                "initial", "it is one array, but several are trained", f"Give {sorted(names)}"
            )
        return {"initial": initial}
    if set(initial) != set(names):
        raise InvalidInputError(
            "initial", f"it has {sorted(initial)}", f"Give exactly {sorted(names)}"
        )
    return {names[name]: array for name, array in initial.items()}
