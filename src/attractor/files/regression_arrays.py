"""What the arrays of a regression task file mean together."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from attractor.errors import InvalidInputError
from attractor.files.regression_layout import DEFAULT_LENGTHS, REGRESSION_LAYOUT
from attractor.files.regression_loaded import LoadedRegression
from attractor.precision import as_float64

_VARIANCES = ("weight_variance", "label_noise", "query_noise")
_LONGEST = 10**12


def interpret_regression(arrays: Mapping[str, np.ndarray], file: str) -> LoadedRegression:
    """Puts together what lies in a regression task file.

    Args:
        arrays: The arrays by name.
        file: Name of the file, for errors.

    Raises:
        InvalidInputError: If an array is missing, unknown, at odds with another, or cannot be
            used.
    """
    from attractor.prompt.regression._trained_limit import initial_scale_bounds
    from attractor.prompt.regression.task import RegressionTask

    unknown = next((name for name in sorted(arrays) if name not in REGRESSION_LAYOUT), None)
    if unknown is not None:
        raise InvalidInputError(
            unknown,
            f"{file} has an array of this name, which means nothing for a regression task",
            f"Rename or remove it; known are {', '.join(REGRESSION_LAYOUT)}",
        )
    if "covariance" not in arrays:
        raise InvalidInputError(
            "covariance", f"{file} has no such array", "Add covariance (d, d), that of the inputs"
        )
    given = {name: _number(name, arrays[name]) for name in _VARIANCES if name in arrays}
    queries = arrays.get("query_covariance", arrays["covariance"])
    task = RegressionTask(arrays["covariance"], queries, **given)
    scale = initial_scale_bounds(task.covariance).large_prompt / 2
    if "initial_scale" in arrays:
        scale = _positive("initial_scale", arrays["initial_scale"])
    value = scale
    if "initial_value" in arrays:
        value = _positive("initial_value", arrays["initial_value"])
    time = _positive("time", arrays["time"], infinite=True) if "time" in arrays else math.inf
    lengths = _lengths(arrays["length"]) if "length" in arrays else DEFAULT_LENGTHS
    return LoadedRegression(task, lengths, scale, value, time)


def _number(name: str, array: np.ndarray) -> float:
    if array.shape != () or array.dtype.kind not in "fiu":
        raise InvalidInputError(
            name, f"its shape is {array.shape} and its type {array.dtype}", "Save one number"
        )
    return float(array)


def _positive(name: str, array: np.ndarray, *, infinite: bool = False) -> float:
    number = _number(name, array)
    if not 0 < number or (math.isinf(number) and not infinite):
        raise InvalidInputError(name, f"it is {number!r}", "Give a positive number")
    return number


def _lengths(array: np.ndarray) -> tuple[int, ...]:
    lengths = np.atleast_1d(as_float64("length", array))
    whole = lengths.ndim == 1 and lengths.size > 0 and (lengths == np.round(lengths)).all()
    if not whole or lengths.min() < 1 or lengths.max() > _LONGEST:
        raise InvalidInputError(
            "length", f"it is {array.tolist()}", f"Give whole numbers from 1 to {_LONGEST:g}"
        )
    return tuple(sorted({int(length) for length in lengths}))
