"""What the arrays and texts of a token file mean together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attractor.attention import LinearHead, Parameterization, get_parameterization
from attractor.checks import check_count
from attractor.errors import InvalidInputError
from attractor.files.layout import LAYOUT, STARTS, start_names, trains_prompt
from attractor.files.loaded import LoadedTokens
from attractor.files.scores import tokens_from_scores
from attractor.files.selections import read_selection
from attractor.precision import as_float64
from attractor.tokens import Tokens


def interpret(
    arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], file: str
) -> LoadedTokens:
    """Puts together what lies in a token file.

    Args:
        arrays: The arrays by name.
        texts: The texts by name.
        file: Name of the file, for errors.

    Raises:
        InvalidInputError: If an array is missing, unknown, at odds with another, or cannot be
            used; or a text names nothing that is known.
    """
    layer = get_parameterization(texts.get("parameterization", "W"))
    _check_names(arrays, layer, file)
    if "optimizer" in texts:
        from attractor.training.optimizers import named_optimizer

        named_optimizer(texts["optimizer"])
    tokens = rows = _tokens(arrays)
    from_scores = "scores" in arrays
    if from_scores:
        tokens = tokens_from_scores(rows, arrays["scores"])
    return LoadedTokens(
        tokens=tokens,
        head=LinearHead([1.0]) if from_scores else _head(arrays, tokens),
        parameterization=layer.name,
        initial=_initial(arrays, layer, tokens),
        selection=read_selection(arrays.get("selection"), rows, tokens),
        optimizer=texts.get("optimizer"),
        steps=_steps(arrays),
        from_scores=from_scores,
    )


def _check_names(arrays: Mapping[str, np.ndarray], layer: Parameterization, file: str) -> None:
    required = ["keys"]
    required += [] if trains_prompt(layer) else ["queries"]
    required += [] if "scores" in arrays else ["labels"]
    missing = next((name for name in required if name not in arrays), None)
    if missing is not None:
        shape, meaning = LAYOUT[missing]
        raise InvalidInputError(
            missing,
            f"{file} has no such array; it has {', '.join(sorted(arrays)) or 'none'}",
            f"Add {missing} {shape}: {meaning}",
        )
    unknown = next((name for name in sorted(arrays) if name not in LAYOUT), None)
    if unknown is not None:
        raise InvalidInputError(
            unknown,
            f"{file} has an array of this name, which means nothing here",
            f"Rename or remove it; known are {', '.join(LAYOUT)}",
        )
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
    keys = as_float64("keys", arrays["keys"])
    mask = arrays.get("mask")
    if mask is not None and mask.dtype != np.bool_:
        raise InvalidInputError(
            "mask", f"its data type is {mask.dtype.name}", "Save it as bool, False for padding"
        )
    return Tokens(
        keys,
        arrays["queries"] if "queries" in arrays else np.ones((*keys.shape[:-2], 1)),
        arrays.get("labels"),
        mask,
        arrays.get("values"),
        instance_numbers=arrays.get("instance_numbers"),
    )


def _head(arrays: Mapping[str, np.ndarray], tokens: Tokens) -> LinearHead | None:
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
    return LinearHead(v)


def _initial(
    arrays: Mapping[str, np.ndarray], layer: Parameterization, tokens: Tokens
) -> np.ndarray | dict[str, np.ndarray] | None:
    given = {name for name in STARTS if name in arrays}
    if not given:
        return None
    names = start_names(tuple(layer.shapes(1, 1)))
    wrong = sorted(given ^ set(names.values()))
    if wrong:
        raise InvalidInputError(
            wrong[0],
            f"the file has {' and '.join(sorted(given))}, but {layer.name!r} is trained",
            f"Give exactly {' and '.join(names.values())}, or set parameterization",
        )
    from attractor.training.initial import check_initial

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
