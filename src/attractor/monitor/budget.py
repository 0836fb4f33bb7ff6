"""How much of a loop's time watching it may take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from numbers import Real

from attractor.errors import InvalidInputError


class Budget:
    """A share of the time since the first look at the clock, and what of it has been used.

    Attributes:
        share: The share, or None where there is no limit.
        spent: Seconds used.
    """

    def __init__(self, share: float | None, clock: Callable[[], float]) -> None:
        """Stores the share; time runs from the first call of ``begin``.

        Raises:
            InvalidInputError: Unless the share is None or a positive number.
        """
        if share is not None and (
            isinstance(share, bool) or not isinstance(share, Real) or not 0 < float(share)
        ):
            raise InvalidInputError(
                "budget",
                f"it is {share!r}",
                "Give a share of the loop's time such as 0.05, or None for no limit",
            )
        self.share = share
        self.spent = 0.0
        self._clock = clock
        self._start: float | None = None

    def begin(self) -> None:
        """Starts the clock, once."""
        if self._start is None:
            self._start = self._clock()

    @property
    def elapsed(self) -> float:
        """Seconds since ``begin``."""
        return 0.0 if self._start is None else self._clock() - self._start

    def allows(self, seconds: float) -> bool:
        """Whether so many seconds more would leave the share kept."""
        return self.share is None or self.spent + seconds <= self.share * self.elapsed

    @contextlib.contextmanager
    def charged(self) -> Iterator[Stopwatch]:
        """Counts the time of the block, whether or not it ends well."""
        stopwatch, start = Stopwatch(), self._clock()
        try:
            yield stopwatch
        finally:
            stopwatch.seconds = self._clock() - start
            self.spent += stopwatch.seconds


class Stopwatch:
    """Seconds that a block took, once it has ended."""

    seconds: float = 0.0
