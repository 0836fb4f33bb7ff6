"""Tasks of in-context regression: their files, and the claims' data in them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attractor.files.contents import ArrayFile, DataSet, Layout, check_known
from attractor.prompts import regression
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

if TYPE_CHECKING:
    from attractor.files.contents import Trial
    from attractor.prompts.regression.task import RegressionTask

REGRESSION_LAYOUT = {
    "covariance": ("(d, d)", "of the inputs x of a prompt, positive definite"),
    "query_covariance": ("(d, d)", "optional: of the query's input; default: covariance"),
    "weight_variance": ("()", "optional: of each weight w; default: 1"),
    "label_noise": ("()", "optional: variance of the noise in labels of the prompt; default: 0"),
    "query_noise": ("()", "optional: the same of the query's label; default: 0"),
    "length": ("() or (k,)", "optional, whole numbers: tokens of a prompt; default: 64, 256, 1024"),
    "initial_scale": ("()", "optional: ||A|| at the start; default: half the paper's bound"),
    "initial_value": ("()", "optional: b at the start; default: initial_scale, which is balanced"),
    "time": ("()", "optional: how long gradient flow runs; default: until it converges"),
}
"""The entries of a regression task file: the shape of each, and its meaning.

The task is in-context linear regression: tokens ``(x, y)`` with ``y = w^T x`` and perhaps noise,
the query ``(x_q, 0)``, and ``w^T x_q`` to be predicted.
"""

_LENGTHS = (64, 256, 1024)
_LONGEST = 10**12
_COVARIANCES = ("covariance", "query_covariance")
_VARIANCES = ("weight_variance", "label_noise", "query_noise")
_DIGITS = (0, 1, 2)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RegressionCase(ArrayFile, DataSet):
    """A task with prompts and a start of training; what a regression task file holds.

    Attributes:
        task: The law of prompts and queries.
        lengths: Numbers of tokens of a prompt, increasing.
        initial_scale: ``||A||_F`` at the start, a multiple of the identity.
        initial_value: ``b`` at the start; the scale if None, which is balanced.
        time: How long gradient flow runs; infinity for until it converges.
        about: What the data are, in words.
    """

    words: ClassVar[str] = "regression task file"
    held: ClassVar[str] = "a task of in-context regression"
    layout: ClassVar[Layout] = REGRESSION_LAYOUT
    marks: ClassVar[tuple[str, ...]] = ("covariance", "weight_variance")
    task: RegressionTask
    lengths: tuple[int, ...] = _LENGTHS
    initial_scale: float = 0.2
    initial_value: float | None = None
    time: float = math.inf
    about: str = "regression task"

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], name: str
    ) -> RegressionCase:
        """Puts together what lies in a regression task file; see ``ArrayFile``."""
        check_known(arrays, REGRESSION_LAYOUT, name, "for a regression task")
        if "covariance" not in arrays:
            raise InvalidInputError(
                "covariance",
                f"{name} has no such array",
                "Add covariance (d, d), that of the inputs",
            )
        given = {each: _number(each, arrays[each]) for each in _VARIANCES if each in arrays}
        queries = arrays.get("query_covariance", arrays["covariance"])
        task = regression.RegressionTask(arrays["covariance"], queries, **given)
        scale = regression.initial_scale_bounds(task.covariance).large_prompt / 2
        if "initial_scale" in arrays:
            scale = _positive("initial_scale", arrays["initial_scale"])
        value = scale
        if "initial_value" in arrays:
            value = _positive("initial_value", arrays["initial_value"])
        time = _positive("time", arrays["time"], infinite=True) if "time" in arrays else math.inf
        lengths = _lengths(arrays["length"]) if "length" in arrays else _LENGTHS
        return cls(task, lengths, scale, value, time, about=name)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The arrays of a regression task file."""
        numbers = {name: getattr(self.task, name) for name in (*_COVARIANCES, *_VARIANCES)}
        return {
            **numbers,
            "length": self.lengths,
            "initial_scale": self.initial_scale,
            "initial_value": self.value,
            "time": self.time,
        }, {}

    @property
    def value(self) -> float:
        """``b`` at the start."""
        return self.initial_scale if self.initial_value is None else self.initial_value

    @property
    def start(self) -> regression.Blocks:
        """The head at the start."""
        d = self.task.dimension
        zeros = np.zeros(d)
        return regression.Blocks(
            self.initial_scale * np.eye(d) / math.sqrt(d), zeros, zeros, np.array(self.value)
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the case holds, by name, for hashing."""
        task = self.task
        numbers = (task.weight_variance, task.label_noise, task.query_noise)
        return {
            "covariance": task.covariance,
            "query_covariance": task.query_covariance,
            "numbers": np.array([*numbers, self.initial_scale, self.value, self.time]),
            "lengths": np.array(self.lengths),
        }

    @property
    def size(self) -> int:
        """Inputs, and tokens of all prompts."""
        return self.task.dimension * sum(self.lengths)

    @property
    def size_in_words(self) -> str:
        """Inputs, tokens and the start."""
        lengths = ", ".join(f"{length:,}" for length in self.lengths)
        return (
            f"{self.task.dimension} inputs, prompts of {lengths} tokens, "
            f"start ||A|| = {self.initial_scale:.3g}, b = {self.value:.3g}"
        )

    def smaller(self, trial: Trial) -> RegressionCase:
        """The case less what a counterexample does not need.

        Inputs go first, then prompts, then noise and other laws of queries, and in the end digits.
        """
        case = self
        for place in reversed(range(case.task.dimension)):
            if case.task.dimension > 1:
                case = trial.smaller_of(case, _without_input(case, place))
        for place in reversed(range(len(case.lengths))):
            if len(case.lengths) > 1:
                kept = case.lengths[:place] + case.lengths[place + 1 :]
                case = trial.smaller_of(case, case.replace(lengths=kept))
        plain = {"query_covariance": None, "label_noise": 0.0, "query_noise": 0.0}
        for name, value in (*plain.items(), ("weight_variance", 1.0)):
            case = trial.smaller_of(case, _with_task(case, {name: value}))
        for digits in _DIGITS:
            rounded = trial.smaller_of(case, _rounded(case, digits))
            if rounded is not case:
                return rounded
        return case


def save_regression(path: str | os.PathLike[str], loaded: RegressionCase) -> None:
    """Writes a regression task, so that ``load`` gives the same.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        loaded: The task, lengths of prompts, and where and how long training goes.

    Raises:
        InvalidInputError: If the name ends in anything else, or a number cannot be used; nothing is
            written then.
    """
    check_kinds(loaded=(loaded, RegressionCase))
    loaded.save(path)


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


def _without_input(case: RegressionCase, place: int) -> RegressionCase | None:
    kept = np.ix_(*[np.delete(np.arange(case.task.dimension), place)] * 2)
    return _with_task(case, {name: getattr(case.task, name)[kept] for name in _COVARIANCES})


def _with_task(case: RegressionCase, change: dict[str, Any]) -> RegressionCase | None:
    """The case with its task changed, where that is still one."""
    try:
        return case.replace(task=dataclasses.replace(case.task, **change))
    except InvalidInputError:
        return None


def _rounded(case: RegressionCase, digits: int) -> RegressionCase | None:
    rounded = {name: np.round(getattr(case.task, name), digits) for name in _COVARIANCES}
    return _with_task(case, rounded)
