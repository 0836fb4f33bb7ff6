"""The objective that the loop trains, and the condition to stop at."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.support.precision import double_precision
from attractor.support.randomness import traced

_WITHOUT_A_WORD_OF_NAN = (
    TrialStatus.TRAINED,
    TrialStatus.STATIONARY,
    TrialStatus.BELOW_ROUNDING,
)
Condition = Callable[[dict[str, Array]], Array]


@runtime_checkable
class Recorder(Protocol):
    """Measures a part of what is recorded. It is hashable, and equal ones share compiled code.

    Runs of several objectives, by different optimizers perhaps, may have one in common.
    """

    def seen(self, state: PyTree, data: PyTree) -> tuple[PyTree, ...]:
        """What it measures, out of the state and the data of one trial, or of many."""
        ...

    @property
    def record(self) -> Callable[..., dict[str, Array]]:
        """Measures one trial, given what is seen of it."""
        ...


class Objective(abc.ABC):
    """An objective of the loop. It is hashable, and equal objectives share one compiled step.

    Attributes:
        largest_block: The most trials that one compiled step moves together; as many as suit the
            device, if ``None``.
        copies: About how many copies of the state of a trial a step holds.
        defining: Names of records, of those that there are, without which there is nothing to
            descend: a trial in which one is NaN has diverged, whatever its parameters.
    """

    largest_block: ClassVar[int | None] = None
    copies: ClassVar[int] = 4
    defining: ClassVar[tuple[str, ...]] = ("loss", "log_gradient_norm")

    @abc.abstractmethod
    def step(self, state: PyTree, data: PyTree) -> tuple[PyTree, Array]:
        """Takes one step of one trial; returns its new state and its ``TrialStatus``."""

    @abc.abstractmethod
    def record(self, state: PyTree, data: PyTree) -> dict[str, Array]:
        """Measures one trial in its current state."""

    @property
    def side_by_side(self) -> bool:
        """Whether most of a step is work on numbers of all trials side by side."""
        return False

    @property
    def recorders(self) -> tuple[Recorder, ...]:
        """What measures a trial, each some of the names of ``record``; by default itself, all."""
        return (self,)

    def seen(self, state: PyTree, data: PyTree) -> tuple[PyTree, PyTree]:
        """What ``record`` measures: everything."""
        return state, data

    @property
    def heeds_records(self) -> bool:
        """Whether training goes on from another state after a record."""
        return type(self).recorded is not Objective.recorded

    def recorded(self, state: PyTree, measured: dict[str, Array]) -> PyTree:
        """Hook called after each record; returns the state to continue from, unchanged by default.

        It must be idempotent: called twice with one record, it gives the same state.
        """
        return state


def status_of(
    objective: Objective, measured: dict[str, Array], status: Int[Any, "trial"]
) -> Int[np.ndarray, "trial"]:
    """Statuses of trials after a record: those with NaN in it have diverged.

    Args:
        objective: What is trained.
        measured: What was recorded, with a leading axis of trials.
        status: The statuses so far. Those of trials that met a condition of the user's stay.
    """
    found = np.asarray(status)
    undefined = np.zeros(found.shape, dtype=bool)
    for name in objective.defining:
        if name in measured:
            undefined |= np.isnan(np.asarray(measured[name]))
    ended = undefined & np.isin(found, _WITHOUT_A_WORD_OF_NAN)
    return np.where(ended, np.int32(TrialStatus.DIVERGED), found)


@traced
def check_condition(
    objective: Objective, condition: Condition, state: PyTree, data: PyTree
) -> None:
    """Checks that a condition turns what is recorded of a trial into true or false.

    Args:
        objective: What is recorded.
        condition: The user's function, which JAX traces.
        state: The state of one trial.
        data: Its data.

    Raises:
        InvalidInputError: If it does not.
    """
    if not callable(condition):
        raise InvalidInputError(
            "stop",
            f"{condition!r} is not a function",
            'Give one of what is recorded, such as lambda record: record["loss"] < 1e-3',
        )
    with double_precision():
        measured = jax.eval_shape(objective.record, state, data)
        try:
            answer = jax.eval_shape(lambda record: jnp.asarray(condition(record)), measured)
        except KeyError as error:
            raise InvalidInputError(
                "stop", f"it reads {error}, which is not recorded", f"Read one of {list(measured)}"
            ) from error
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
            raise InvalidInputError(
                "stop",
                "it branches on values, or hands them to NumPy, but JAX traces it",
                "Write it with comparisons, & and |, and functions of jax.numpy",
            ) from error
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                "stop", f"it fails: {error}", "Return one true or false for one trial"
            ) from error
    if answer.shape != () or answer.dtype != np.bool_:
        raise InvalidInputError(
            "stop",
            f"it returns an array of shape {answer.shape} and type {answer.dtype}",
            "Return one true or false for one trial",
        )
