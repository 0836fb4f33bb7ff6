"""Functions of the training state that heads share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def attempted(
    function: Callable[..., _Result], *arguments: Any
) -> tuple[_Result, None] | tuple[None, Exception]:
    """What a function returns, or the exception that it raises."""
    try:
        return function(*arguments), None
    except Exception as error:  # of a user's code, which can raise anything
        return None, error


class SharedCalls:
    """Functions that heads share, each called once a record, and the time they take.

    Attributes:
        seconds: Time that the calls since ``forget`` took.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Starts without a call."""
        self.seconds = 0.0
        self._clock = clock
        self._last: dict[int, float] = {}
        self._found: dict[tuple[int, int], tuple[Any, Exception | None]] = {}

    def value(self, function: Callable[[Any], Any], given: Any, asked: Callable[[Any], Any]) -> Any:
        """What a function returns; called once between two calls of ``forget``.

        What it raises, it raises for every head, without being called again.

        Args:
            function: The function, known by its identity.
            given: Its argument, known by its identity.
            asked: Calls it, and returns what is made of what it returns.
        """
        key = id(function), id(given)
        if key not in self._found:
            start = self._clock()
            self._found[key] = attempted(asked, given)
            self._last[id(function)] = seconds = self._clock() - start
            self.seconds += seconds
        value, error = self._found[key]
        if error is not None:
            raise error
        return value

    def seconds_to_call(self, functions: Iterable[Callable[[Any], Any]]) -> float:
        """The time that functions last took, those left out that are called already."""
        called = {function for function, _ in self._found}
        return sum(self._last.get(id(one), 0.0) for one in functions if id(one) not in called)

    def forget(self) -> None:
        """Lets every function be called again; how long they took stays known."""
        self._found.clear()
        self.seconds = 0.0
