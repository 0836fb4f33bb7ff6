"""Which margin problem each recorded matrix is held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.errors import InvalidInputError
from attractor.geometry import Geometry
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.local_optimality import score_advantage, worst_advantage
from attractor.selection import Selection
from attractor.tokens import Tokens

_REACHED = {
    "reached at end": "the selection each trial reached",
    "reached at step": "the selection each trial held at the recorded step itself",
}


@dataclass(frozen=True)
class Reference:
    """Solutions, and which of them belongs to which trial and step.

    Attributes:
        solution: What the verdict reports: the solution given, or one with an axis of references.
        solutions: The single solutions, one a reference.
        number: Position among them for every trial and step.
        selection: The selected tokens of every reference.
        instance: Which instance every reference belongs to.
        description: What the trials are held against, in words.
        predicted: The selection predicted for every instance, where one was given.
    """

    solution: Solution
    solutions: list[Solution]
    number: Int[np.ndarray, "instance seed step"]
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
        support = np.stack([solution.support_tokens for solution in self.solutions])
        advantage = score_advantage(scores[self.instance], self.selection.mask)
        return (worst_advantage(advantage, support) > 0) & self.feasible

    @property
    def feasible(self) -> Bool[np.ndarray, "reference"]:
        """Whether a matrix satisfies the constraints of every reference."""
        return np.array([np.isfinite(solution.W).all() for solution in self.solutions])


def solve_for(
    tokens: Tokens, reached: Selection, selection: str | Selection, geometry: Geometry
) -> Reference:
    """Solves once for every distinct pair of instance and selection.

    Args:
        tokens: Data sets, with an axis of instances.
        reached: Tokens attended to, ``(instance, seed, step, sequence, query, token)``.
        selection: ``"reached at end"``, ``"reached at step"``, or the user's.
        geometry: The norm to solve in.

    Raises:
        InvalidInputError: If the selection is none of these, or does not fit the tokens.
    """
    masks, predicted = reached.mask, None
    if isinstance(selection, Selection):
        predicted = _one_for_each(selection, tokens)
        masks = np.broadcast_to(predicted.mask[:, None, None], masks.shape)
        description = "the selection given"
    elif selection in _REACHED:
        if selection == "reached at end":
            masks = np.broadcast_to(masks[:, :, -1:], masks.shape)
        description = _REACHED[selection]
    else:
        known = " or ".join(repr(name) for name in _REACHED)
        raise InvalidInputError("selection", f"got {selection!r}", f"Give {known}, or a Selection")
    instances = np.indices(masks.shape[:3])[0]
    problem, instance, number = distinct_problems(tokens, instances, masks)
    assert problem.selection is not None
    solution = solve(problem, geometry)
    return Reference(
        solution=solution,
        solutions=[solution[position] for position in range(len(instance))],
        number=number,
        selection=problem.selection,
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
    flat = instances.ravel()
    rows = masks.reshape(len(flat), *masks.shape[-3:])
    labels = np.concatenate([flat[:, None], rows.reshape(len(rows), -1)], axis=1)
    _, first, number = np.unique(labels, axis=0, return_index=True, return_inverse=True)
    instance, chosen = flat[first], rows[first]
    gathered = Tokens(tokens.keys[instance], tokens.queries[instance], mask=tokens.mask[instance])
    selection = Selection(chosen, chosen.sum(-1) > 1)
    problem = MarginProblem.from_selection(gathered, selection, ties="equal")
    return problem, instance, number.reshape(instances.shape)


def use_given(tokens: Tokens, solution: Solution, shape: tuple[int, ...]) -> Reference:
    """Holds every instance against the solution the user gave, one for all or one for each.

    Raises:
        InvalidInputError: If the solution does not fit the tokens.
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
    solutions = [solution] * instances if lead == () else [solution[i % lead[0]] for i in own]
    shared = chosen.mask.reshape(-1, *tokens.mask.shape[1:])
    predicted = _one_for_each(Selection(shared, shared.sum(-1) > 1), tokens)
    return Reference(
        solution=solution,
        solutions=solutions,
        number=np.broadcast_to(own[:, None, None], shape),
        selection=predicted,
        instance=own,
        description="the solution given",
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
