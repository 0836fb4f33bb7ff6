"""One head over the course of training: its selections, and the solutions for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from attractor.analysis.measures import measure_direction, required_margins
from attractor.analysis.unselected import log_mean, log_unselected
from attractor.geometry import Geometry
from attractor.geometry.loading import raised_by_user
from attractor.geometry.vectors import ordinary_factor
from attractor.heads.monitor.head import WatchedHead, as_tokens, constraints_of
from attractor.heads.monitor.record import RecordStatus
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.nearest import nearest_constraints
from attractor.margin.selection import Selection, attended_tokens
from attractor.support.errors import AttractorError, InvalidInputError
from attractor.support.randomness import seeded
from attractor.tokens import Tokens

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


_NEAREST = 8
"""Constraints of a query to start from, where no multipliers are known."""


@dataclass(frozen=True)
class Observation:
    """A head as it is at one step.

    Attributes:
        tokens: Its inputs.
        W: Its matrix.
        selection: The tokens with the highest scores.
        selected: Their positions, -1 where several tie and where the row is padding.
        selected_probability: Their softmax probability, NaN where the row is padding.
        numbers: Numbers of the record that need no solution.
    """

    tokens: Tokens
    W: Float[np.ndarray, "d e"]
    selection: Selection
    selected: Int[np.ndarray, "sequence query"]
    selected_probability: Float[np.ndarray, "sequence query"]
    numbers: dict[str, float]


class Watch:
    """The state of one head between records.

    Attributes:
        head: The head.
        reference: The solution it was last compared with.
        seconds_to_observe: Time that reading it last took, calls left out that heads share.
        seconds_to_solve: Time that the last solution took, or None before the first.
        compared: The step at which it was last compared with a solution.
    """

    def __init__(self, head: WatchedHead, geometry: Geometry, tolerance: float, most: int) -> None:
        """Starts without a solution."""
        self.head = head
        self.reference = Reference(geometry, tolerance)
        self.seconds_to_observe = 0.0
        self.seconds_to_solve: float | None = None
        self.compared = -1
        self._geometry, self._most = geometry, most
        self._selection: Selection | None = None
        self._compared: Observation | None = None
        self._solving = geometry, tolerance

    def observe(self, state: Any, shared: SharedCalls) -> Observation | None:
        """Reads the head; None where it is not finite.

        Args:
            state: The user's training state.
            shared: Calls of functions that other heads may have been given, too.

        Raises:
            InvalidInputError: If a function of the user's fails, or something does not fit.
        """
        read = self._read(state, shared)
        if read is None:
            return None
        tokens, W = read
        selection = attended_tokens(tokens, W)
        logs = log_unselected(tokens, selection.mask, W)
        there = np.True_ if tokens.weights is None else tokens.weights > 0  # the rest is padding
        numbers = self._numbers(W) | {
            "log_unselected_probability": float(log_mean(logs[there].ravel())),
            "ties": float(selection.ties),
            "constraints": float(constraints_of(tokens)),
        }
        if self._selection is not None and self._selection.mask.shape == selection.mask.shape:
            changed = (self._selection.mask != selection.mask).any(-1)
            numbers["selection_changes"] = float(changed.sum())
        self._selection = selection
        positions = np.where(there, selection.index.reshape(logs.shape), -1)
        probability = np.where(there, -np.expm1(np.minimum(logs, 0)), np.nan)
        return Observation(tokens, W, selection, positions, probability, numbers)

    def _numbers(self, W: Float[np.ndarray, "d e"]) -> dict[str, float]:
        """Norms and stable rank of a matrix; those beyond floating point are infinite."""
        singular = np.linalg.svd(W, compute_uv=False)
        largest, factor = float(singular[0]), float(ordinary_factor(singular[0]))
        square = float(((singular * factor) ** 2).sum())
        with np.errstate(over="ignore"):
            return {
                "norm": float(self._geometry.norm(W)),
                "frobenius_norm": float(np.sqrt(square) / factor),
                "nuclear_norm": float(singular.sum()),
                "stable_rank": square / (largest * factor) ** 2 if largest > 0 else 0.0,
            }

    def compare(self, seen: Observation) -> tuple[RecordStatus, str, dict[str, float]]:
        """Compares an observation with its certified solution.

        Returns:
            The outcome, the start of the solution, and the numbers.
        """
        if not seen.selection.mask.sum() < seen.tokens.mask.sum():
            return RecordStatus.UNDECIDED, "", {}
        solution = self.reference.find(seen.tokens, seen.selection, seen.W)
        self._compared = seen
        status = RecordStatus(str(solution.status))
        numbers = {"gap": float(solution.gap), "solution_norm": float(solution.value)}
        if status is not RecordStatus.INFEASIBLE and required_margins(solution.problem).any():
            measures = measure_direction(seen.W[None], solution)
            numbers["margin_ratio"] = float(measures.margin_ratio[0])
            numbers["correlation"] = float(measures.correlation[0])
        return status, self.reference.start, numbers

    def random_ratios(
        self, draws: int, random: np.random.Generator
    ) -> Float[np.ndarray, "draw"] | None:
        """Margin ratios of products of Gaussian factors, each of what it selects itself.

        Args:
            draws: How many.
            random: Where they come from.

        Returns:
            The ratios; None where the head was never compared with a solution.
        """
        if self._compared is None:
            return None
        tokens, rank = self._compared.tokens, int(np.linalg.matrix_rank(self._compared.W))
        d, e = self._compared.W.shape
        found = np.empty(draws)
        for draw in range(draws):
            W = random.normal(size=(d, rank)) @ random.normal(size=(rank, e))
            solution = Reference(*self._solving).find(tokens, attended_tokens(tokens, W), W)
            found[draw] = measure_direction(W[None], solution).margin_ratio[0]
        return found

    def check(self, state: Any, shared: SharedCalls) -> None:
        """Reads the head, and leaves no trace.

        Raises:
            InvalidInputError: If it cannot be read, or there are too many constraints.
        """
        read = self._read(state, shared)
        if read is not None:
            self.check_size(constraints_of(read[0]))

    def check_size(self, constraints: int) -> None:
        """Checks the number of constraints.

        Raises:
            InvalidInputError: If there are too many.
        """
        if constraints > self._most:
            raise InvalidInputError(
                "tokens",
                f"the probe batch of head {self.head.name!r} makes {constraints:,} constraints, "
                f"and max_constraints is {self._most:,}",
                "Give fewer sequences, or fewer queries of each (rows=), or "
                f"max_constraints={constraints}",
            )

    def _read(
        self, state: Any, shared: SharedCalls
    ) -> tuple[Tokens, Float[np.ndarray, "d e"]] | None:
        """Tokens and matrix; None where they are not finite."""
        head = self.head
        if head.reading is not None:
            reading = self._asking("reading", head.reading)
            state = shared.value(head.reading, state, reading)
            if state is None:
                return None
        tokens = head.tokens
        if callable(tokens):
            asked = self._asking("tokens", tokens)
            tokens = shared.value(tokens, state, lambda given: as_tokens(head.name, asked(given)))
        if tokens is None:
            return None
        W = self._asking("matrix", lambda given: head.read_matrix(given, tokens))(state)
        return (tokens, W) if np.isfinite(W).all() else None

    def _asking(self, what: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function of the user's, which draws the same at every call, and whose errors say so."""

        def ask(state: Any) -> Any:
            try:
                with seeded(purpose=f"{what} of heads"):
                    return function(state)
            except AttractorError:
                raise
            except Exception as error:
                raise raised_by_user(what, f"that of head {self.head.name!r}", error) from error

        return ask


class Reference:
    """The last solution for one head, with its tokens and its selection.

    Attributes:
        solution: The solution, or None before the first one.
        start: Its start: ``"cold"``, ``"warm"`` from the solution before, or ``"reused"``.
    """

    def __init__(self, geometry: Geometry, tolerance: float) -> None:
        """Stores the norm and the relative duality gap to reach."""
        self.solution: Solution | None = None
        self.start = ""
        self._geometry, self._tolerance = geometry, tolerance
        self._tokens: Tokens | None = None
        self._selection: Selection | None = None

    def is_of(self, tokens: Tokens, selection: Selection) -> bool:
        """Whether the current solution is that of these tokens and this selection."""
        return (
            self._tokens is not None
            and selection == self._selection
            and _same(tokens, self._tokens)
        )

    def find(self, tokens: Tokens, selection: Selection, W: Float[np.ndarray, "d e"]) -> Solution:
        """The solution for a selection: the current one, or a new one that starts from it.

        Constraints with a multiplier before come first; under queries that select other tokens
        than before, and under all at first, those of smallest margin do.

        Args:
            tokens: The probe batch.
            selection: The tokens to keep; ties are kept equal.
            W: The matrix that selects them.
        """
        if self.solution is not None and self.is_of(tokens, selection):
            self.start = "reused"
            return self.solution
        problem = _problem(tokens, selection)
        kept = self._multipliers(selection)
        self.start = "cold" if np.isnan(kept).all() else "warm"
        start = _with_nearest(problem, kept, W)
        self.solution = solve(problem, self._geometry, tolerance=self._tolerance, start=start)
        self._tokens, self._selection = tokens, selection
        return self.solution

    def _multipliers(self, selection: Selection) -> Float[np.ndarray, "sequence query token"]:
        """Multipliers of the current solution, NaN for queries that select other tokens now."""
        unknown = np.full(selection.mask.shape, np.nan)
        if self.solution is None or self._selection is None:
            return unknown
        if selection.mask.shape != self._selection.mask.shape:
            return unknown
        problem = self.solution.problem
        multipliers = np.zeros(selection.mask.shape)
        multipliers[problem.sequence, problem.query, problem.token] = self.solution.multipliers
        multipliers[(selection.mask != self._selection.mask).any(-1)] = np.nan
        return multipliers


def _same(a: Tokens, b: Tokens) -> bool:
    """Whether two probe batches are the same."""
    if a is b:
        return True
    arrays = ("keys", "queries", "mask")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays)


def _problem(tokens: Tokens, selection: Selection) -> MarginProblem:
    """The margin problem, less equalities ``0 = 0``: copies of the selected token."""
    problem = MarginProblem.from_selection(tokens, selection, ties="equal")
    trivial = problem.equality & ~(problem.left.any(-1) & problem.right.any(-1))
    if not trivial.any():
        return problem
    names = ("left", "right", "bounds", "equality", "sequence", "query", "token")
    kept = {name: getattr(problem, name)[~trivial] for name in names}
    return MarginProblem(**kept, selection=selection)


def _with_nearest(
    problem: MarginProblem,
    kept: Float[np.ndarray, "sequence query token"],
    W: Float[np.ndarray, "d e"],
) -> Float[np.ndarray, "m"]:
    """Multipliers of the new problem, those unknown guessed from the margins of W."""
    start = kept[problem.sequence, problem.query, problem.token]
    unknown = np.isnan(start)  # of a query all are, or none
    if not unknown.any():
        return start
    size = np.nanmax(kept, initial=0.0) or 1.0
    return np.where(unknown, size * nearest_constraints(problem, W, _NEAREST), start)
