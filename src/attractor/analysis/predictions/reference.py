"""The margin problem that each recorded matrix is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis.predictions.label_direction import label_direction
from attractor.analysis.predictions.prediction import GIVEN, Prediction, predicted_problem
from attractor.analysis.predictions.trained import Trained, with_instances
from attractor.geometry import Geometry
from attractor.margin import MarginProblem, Solution
from attractor.margin.problem import places_of
from attractor.margin.selection import Selection
from attractor.margin.selections.local_optimality import score_advantage, worst_advantage
from attractor.support.errors import InvalidInputError, Status
from attractor.tokens import Tokens

_REACHED = {
    "reached at end": "the selection each trial reached",
    "reached at step": "the selection each trial held at the recorded step itself",
}
_AS_GIVEN = "The solution was given, and its problem is about the tokens of this run."
_ROUNDINGS = 8
"""Roundings, relative to what a difference of keys is taken of, that rows may be off by."""
_CHECKED = 1000
"""Instances whose rows are checked at once."""


@dataclass(frozen=True)
class Reference(Prediction):
    """Solutions, predicted or given, and which of them belongs to which trial and step.

    ``solution`` may also be one given for all references.

    Attributes:
        number: The reference of every trial and step.
        row: The place of every reference among the instances of ``solution``.
        selection: The selected tokens of every reference.
        instance: The instance that every reference belongs to.
        description: What the trials are compared with, in words.
        predicted: The selection predicted for every instance, where one was given.
    """

    number: Int[np.ndarray, "instance seed step"]
    row: Int[np.ndarray, "reference"]
    selection: Selection
    instance: Int[np.ndarray, "reference"]
    description: str
    predicted: Selection | None = None

    def locally_optimal(
        self, scores: Float[np.ndarray, "instance sequence query token"]
    ) -> Bool[np.ndarray, "reference"]:
        """Whether every support token scores strictly below the selected token of its row.

        Infeasible references are not locally optimal. Source: *Transformers as Support Vector
        Machines*, definition of locally optimal tokens.
        """
        support = self.solution.support_tokens
        support = support.reshape(-1, *support.shape[-3:])[self.row]
        advantage = score_advantage(scores[self.instance], self.selection.mask)
        return (worst_advantage(advantage, support) > 0) & self.feasible

    @property
    def feasible(self) -> Bool[np.ndarray, "reference"]:
        """Whether a matrix was found for the constraints of every reference."""
        return np.isfinite(self.solution.W).all((-1, -2)).reshape(-1)[self.row]

    @property
    def infeasible(self) -> Bool[np.ndarray, "reference"]:
        """Whether it is proved that none satisfies them."""
        return np.atleast_1d(self.solution.status == Status.INFEASIBLE)[self.row]

    @property
    def value(self) -> Float[np.ndarray, "reference"]:
        """The norm of the solution of every reference; infinite where there is none."""
        return np.atleast_1d(self.solution.value)[self.row]

    @property
    def gap(self) -> Float[np.ndarray, "reference"]:
        """The certified gap of every reference."""
        return np.atleast_1d(self.solution.gap)[self.row]


def solve_for(
    tokens: Tokens,
    reached: Selection,
    selection: str | Selection,
    trained: Trained,
    geometry: Geometry,
) -> Reference:
    """Solves the problem predicted, once for every distinct pair of instance and selection.

    Args:
        tokens: Data sets, with an axis of instances.
        reached: Tokens attended to, ``(instance, seed, step, sequence, query, token)``.
        selection: ``"reached at end"``, ``"reached at step"``, or the user's.
        trained: What was trained.
        geometry: The norm to solve in.

    Raises:
        InvalidInputError: If the selection is none of these, or does not fit the tokens.
    """
    masks, predicted = reached.mask, None
    if isinstance(selection, Selection):
        predicted = _one_for_each(selection, tokens)
        masks = np.broadcast_to(predicted.mask[:, None, None], masks.shape)
        description = "the selection given"
    elif isinstance(selection, str) and selection in _REACHED:
        if selection == "reached at end":
            masks = np.broadcast_to(masks[:, :, -1:], masks.shape)
        description = _REACHED[selection]
    else:
        known = " or ".join(repr(name) for name in _REACHED)
        raise InvalidInputError("selection", f"got {selection!r}", f"Give {known}, or a Selection")
    chosen, instance, number = _distinct(np.indices(masks.shape[:3])[0], masks)
    own = _repeated(tokens, instance)
    found = predicted_problem(own, chosen, trained[instance], geometry)
    return Reference(
        **vars(found),
        number=number,
        row=np.arange(len(instance)),
        selection=chosen,
        instance=instance,
        description=f"the solution for {description}",
        predicted=predicted,
    )


def distinct_problems(
    tokens: Tokens,
    instances: Int[np.ndarray, "*runs"],
    masks: Bool[np.ndarray, "*runs sequence query token"],
) -> tuple[MarginProblem, Int[np.ndarray, "problem"], Int[np.ndarray, "*runs"]]:
    """One margin problem for every distinct pair of instance and selection; ties are kept.

    Args:
        tokens: Data sets, with an axis of instances.
        instances: The instance of every run.
        masks: The tokens it selects.

    Returns:
        The problems, with an axis of their own; the instance of each; and which of them belongs
        to which run.
    """
    chosen, instance, number = _distinct(instances, masks)
    problem = MarginProblem.from_selection(_repeated(tokens, instance), chosen, ties="equal")
    return problem, instance, number


def _distinct(
    instances: Int[np.ndarray, "*runs"], masks: Bool[np.ndarray, "*runs sequence query token"]
) -> tuple[Selection, Int[np.ndarray, "problem"], Int[np.ndarray, "*runs"]]:
    """Distinct pairs of instance and selection, and which of them belongs to which run."""
    flat = instances.ravel()
    rows = masks.reshape(len(flat), *masks.shape[-3:])
    labels = np.concatenate([flat[:, None], rows.reshape(len(rows), -1)], axis=1)
    _, first, number = np.unique(labels, axis=0, return_index=True, return_inverse=True)
    chosen = rows[first]
    selection = Selection(chosen, chosen.sum(-1) > 1)
    return selection, flat[first], number.reshape(instances.shape)


def _repeated(tokens: Tokens, instance: Int[np.ndarray, "problem"]) -> Tokens:
    """The data set of each problem, numbered anew, as one may belong to several."""
    return Tokens(
        tokens.keys[instance],
        tokens.queries[instance],
        None if tokens.labels is None else tokens.labels[instance],
        tokens.mask[instance],
        None if tokens.values is tokens.keys else tokens.values[instance],
        weights=None if tokens.weights is None else tokens.weights[instance],
    )


def use_given(
    tokens: Tokens, solution: Solution, trained: Trained, shape: tuple[int, ...]
) -> Reference:
    """Compares every instance with the solution the user gave, one for all or one for each.

    Raises:
        InvalidInputError: If the solution does not fit the tokens, or is one of other data.
    """
    size = (tokens.key_dimension, tokens.query_dimension)
    instances = tokens.instances or 1
    lead = solution.W.shape[:-2]
    if solution.W.shape[-2:] != size or lead not in ((), (1,), (instances,)):
        raise InvalidInputError(
            "solution",
            f"its matrix has the shape {solution.W.shape}",
            f"Give one of shape {size}, or {(instances, *size)}",
        )
    chosen = solution.problem.selection
    if chosen is None:
        raise InvalidInputError(
            "solution",
            "its problem does not say which tokens it selects",
            "Build the problem with MarginProblem.from_selection",
        )
    own = np.arange(instances)
    row = own % (lead[0] if lead else 1)
    shared = chosen.mask.reshape(-1, *tokens.mask.shape[1:])
    predicted = _one_for_each(Selection(shared, shared.sum(-1) > 1), tokens)
    check_about(solution.problem, tokens, trained)
    label = None
    if trained.head_trained and not trained.no_statement:
        label = label_direction(tokens, predicted, solution.geometry)
    return Reference(
        solution=solution,
        number=np.broadcast_to(own[:, None, None], shape),
        row=row,
        selection=predicted,
        instance=own,
        description="the solution given",
        kind=[GIVEN] * instances,
        why=[_AS_GIVEN] * instances,
        label=label,
        critical_ratio=np.zeros(instances),
        predicted=predicted,
    )


def _one_for_each(selection: Selection, tokens: Tokens) -> Selection:
    """A selection for every instance, from one for all or one for each."""
    rows = tokens.mask.shape
    if selection.mask.shape not in (rows, rows[1:], (1, *rows[1:])):
        raise InvalidInputError(
            "selection",
            f"its mask has the shape {selection.mask.shape}",
            f"Give {rows[1:]}, or {rows} for one an instance",
        )
    return Selection(
        np.broadcast_to(selection.mask, rows), np.broadcast_to(selection.tied, rows[:-1])
    )


def check_about(problem: MarginProblem, tokens: Tokens, trained: Trained) -> None:
    """Checks that the rows of problems are those of data sets.

    Each row names a sequence, a query and a token: it must be the difference of keys between the
    selected token and that one, and the query. Tokens that the selected one is to be ahead of may
    be missing only where their scores are equal, as between them there is no force.

    Args:
        problem: One problem for all data sets, or one for each, with its selection.
        tokens: The data sets, or a single one.
        trained: What was trained on them.

    Raises:
        InvalidInputError: If the rows do not name tokens, so that nothing can be compared with
            them; one is not of these tokens; or one is missing.
    """
    assert problem.selection is not None
    if problem.sequence is None or problem.query is None or problem.token is None:
        raise InvalidInputError(
            "solution",
            "the rows of its problem do not say which tokens they are about",
            "Build the problem with MarginProblem.from_selection, or give it sequence, query and "
            "token",
        )
    problem, tokens = problem.batched(), with_instances(tokens)
    count = tokens.mask.shape[0]
    for start in range(0, count, _CHECKED):
        own = np.arange(start, min(start + _CHECKED, count))
        _check_rows(problem[own % len(problem)], tokens, trained, own)


def _check_rows(
    problem: MarginProblem, tokens: Tokens, trained: Trained, own: Int[np.ndarray, "problem"]
) -> None:
    """Checks the rows of one problem for each of some instances."""
    assert problem.sequence is not None and problem.query is not None and problem.token is not None
    assert problem.selection is not None
    shape = tokens.mask.shape[1:]
    chosen = problem.selection.mask.reshape(len(own), *shape)
    number, *place = places_of(problem, problem.present)
    inside = [(0 <= n) & (n < size) for n, size in zip(place, shape, strict=True)]
    if not np.all(inside):
        raise _other_data("its rows name tokens that these do not have")
    sequence, query, token = place
    instance = own[number]
    ahead = chosen.argmax(-1)[number, sequence, query]
    keys, queries = tokens.keys, tokens.queries
    for rows, minuend, subtrahend in (
        (problem.left, keys[instance, sequence, ahead], keys[instance, sequence, token]),
        (problem.right, queries[instance, sequence, query], 0.0),
    ):
        wrong = _differ(rows[problem.present], minuend, subtrahend)
        if wrong.any():
            raise _other_data(_at(place, int(wrong.argmax()), "are other vectors"))
    masked = ~tokens.mask[instance, sequence, query, token]
    if masked.any():
        raise _other_data(_at(place, int(masked.argmax()), "are about a token that is masked"))
    named = chosen & (np.cumsum(chosen, -1) == 1)
    named[number, sequence, query, token] = True
    missing = tokens.mask[own] & ~named
    if trained.scores is not None:
        kept = Selection(chosen, problem.selection.tied.reshape(chosen.shape[:-1]))
        missing &= ~trained[own].of_equal_score(kept)
    if missing.any():
        _, n, k, t = np.argwhere(missing)[0]
        raise _other_data(f"it asks nothing about token {t} of sequence {n}, query {k}")


def _differ(
    rows: Float[np.ndarray, "m c"],
    minuend: Float[np.ndarray, "m c"],
    subtrahend: Float[np.ndarray, "m c"] | float,
) -> Bool[np.ndarray, "m"]:
    """Rows that are not the difference, up to its rounding."""
    size = np.abs(minuend) + np.abs(subtrahend)
    allowed = _ROUNDINGS * np.finfo(np.float64).eps * size.max(-1, keepdims=True, initial=0.0)
    return (np.abs(rows - (minuend - subtrahend)) > allowed).any(-1)


def _at(place: Sequence[Int[np.ndarray, "m"]], row: int, what: str) -> str:
    n, k, t = (int(numbers[row]) for numbers in place)
    return f"its rows {what} at sequence {n}, query {k}, token {t}"


def _other_data(problem: str) -> InvalidInputError:
    return InvalidInputError(
        "solution",
        f"it is one of other data than those of this run: {problem}",
        "Build its problem from trajectory.tokens",
    )
