"""Tokens of more than two numbers: the plane they are seen in, what Python finds for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.attention import get_parameterization
from attractor.explorer.answers import (
    geometry_of,
    head_of,
    layer_of,
    optimizer_of,
    paths_of,
    selection_of,
    solved,
    status_of,
    tokens_of,
)
from attractor.explorer.state import MOST_SOLUTIONS, State
from attractor.geometry import Geometry, get_geometry
from attractor.margin import MarginProblem, Solution, locally_optimal_selections, solve
from attractor.margin.selection import Selection, attended_tokens
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64
from attractor.tokens import Tokens

KINDS = ("solutions", "principal")
_FEW = 256
"""Selections that are all tested for local optimality, in every norm."""
_MOST_IN_A_NORM = 12
_OF_PROMPTS = ("frobenius", "l_1", "l_inf")
_OF_MATRICES = (*_OF_PROMPTS, "nuclear", "spectral")
_FLAT = 1e-9
"""Length of what is left of a direction, relative to it, that spans nothing."""


def projected(state: State, projection: Any) -> dict[str, Any]:
    """What a state holds besides for tokens that are not in the plane.

    Args:
        state: The state without a projection.
        projection: "solutions", "principal", or two solutions.
    """
    chosen = _chosen(projection, state)
    paths = paths_of(state)
    solutions = list(_solutions(state))
    plane = _plane(state, projection, chosen, solutions)
    reached = list(_reached(state, paths))
    found = [_given(*one) for one in [*solutions[: MOST_SOLUTIONS - len(reached)], *reached]]
    distinct = {(one["norm"], *one["selection"]): one for one in found}
    return {
        "solutions": list(distinct.values()),
        "paths": paths,
        "projection": plane,
    }


def _reached(state: State, paths: list[dict[str, list[Any]]]) -> Iterator[Any]:
    """The solutions of the selections that trainings end on, each in the norm that it descends."""
    tokens = tokens_of(state)
    shape = tokens.key_dimension, tokens.query_dimension
    for training, path in zip(state["trainings"], paths, strict=True):
        layer = get_parameterization(training.get("parameterization", state["parameterization"]))
        geometry = optimizer_of(training).effective_geometry(layer)
        end = np.array(path["points"][-len(path["points"]) // len(path["steps"]) :])
        W = end.reshape(shape) if layer.name != "KQ" else _product(end, *shape)
        if geometry is not None and np.isfinite(W).all():
            index = attended_tokens(tokens, W).mask.argmax(-1)[:, 0].tolist()
            kept = Selection.from_index(tokens, index)
            yield solved(state, kept, geometry), index


def _product(factors: Float[np.ndarray, "entries"], d: int, e: int) -> Float[np.ndarray, "d e"]:
    """``K Q^T``, of K and Q by rows."""
    return factors[: d * d].reshape(d, d) @ factors[d * d :].reshape(e, d).T


def _solutions(state: State) -> Iterator[tuple[Solution, list[int]]]:
    """Solutions of every locally optimal selection where these are few, else of the best, by norm.

    The norm of the first training comes first, and the best selection first within a norm.
    """
    tokens, head = tokens_of(state), head_of(state)
    best = selection_of(state)
    assert best is not None  # the head is fixed
    few = math.prod(tokens.mask.sum(-1).ravel().tolist()) <= _FEW
    for geometry in _norms(state):
        first = best.mask.argmax(-1)[:, 0].tolist()
        yield solved(state, best, geometry), first
        if not few:
            continue
        census = locally_optimal_selections(tokens, head, geometry)
        order = np.argsort(np.where(census.locally_optimal, census.norms, np.inf))
        count = min(int(census.locally_optimal.sum()), _MOST_IN_A_NORM)
        for place in order[:count]:
            mask = census.selections.mask[place]
            index = mask.argmax(-1)[:, 0].tolist()
            if index != first:
                one = Selection(mask, census.selections.tied[place])
                yield solve(MarginProblem.from_selection(tokens, one), geometry), index


def _norms(state: State) -> list[Geometry]:
    """The norms that trainings descend, then those that a reader may want to see beside them."""
    layer = layer_of(state)
    descended = [geometry_of(state)]
    descended += [optimizer_of(t).effective_geometry(layer) for t in state["trainings"]]
    usual = _OF_PROMPTS if state["parameterization"] == "p" else _OF_MATRICES
    every = [*descended, *map(get_geometry, usual)]
    return list({geometry.name: geometry for geometry in every if geometry is not None}.values())


def _given(solution: Solution, selection: list[int]) -> dict[str, Any]:
    """A solution as a state holds it."""
    found: dict[str, Any] = {
        "norm": solution.geometry.name,
        "selection": selection,
        "status": status_of(solution),
    }
    if np.isfinite(solution.value):
        found |= {"w": np.ravel(solution.W).tolist(), "value": float(solution.value),
                  "lower": float(solution.dual_value)}  # fmt: skip
    return found


def _chosen(projection: Any, state: State) -> list[Float[np.ndarray, "d e"]] | None:
    """Matrices of the two solutions that a user chose; None where a kind is named."""
    if isinstance(projection, str) and projection in KINDS:
        return None
    two = projection if isinstance(projection, list | tuple) and len(projection) == 2 else None
    if two is None:
        raise InvalidInputError(
            "projection",
            f"{projection!r} is neither 'solutions' nor 'principal'"[:120],
            "Give one of them, or two solutions",
        )
    tokens = tokens_of(state)
    shape = tokens.key_dimension, tokens.query_dimension
    found = []
    for one in two:
        W = as_float64("projection", one.W if isinstance(one, Solution) else one)
        if W.size != math.prod(shape):
            raise InvalidInputError(
                "projection", f"a solution has the shape {W.shape}", f"Give matrices {shape}"
            )
        found.append(W.reshape(shape))
    return found


def _plane(
    state: State,
    projection: Any,
    chosen: list[Float[np.ndarray, "d e"]] | None,
    solutions: list[tuple[Solution, list[int]]],
) -> dict[str, Any]:
    tokens = tokens_of(state)
    points = tokens.keys[tokens.mask[:, 0]]
    mean = points.mean(0)
    kind, origin, words = "principal", mean, "the two principal directions of the tokens"
    axes = _principal(points - mean)
    if projection != "principal":
        pair, said = (chosen, "the two solutions given") if chosen else _pair(solutions, tokens)
        directions = [_directions(W, tokens) for W in pair]
        if any(one.any() for one in directions):
            kind, origin = "solutions", np.zeros_like(mean)
            axes, flat = _span(directions, points - mean)
            prompt = tokens.query_dimension == 1
            words = f"the plane of {said}" if prompt else f"the plane nearest to W z of {said}"
            if flat:
                words += (
                    ", which span a line, and the direction in which tokens vary most beside it"
                )
        else:
            words += ", as there is no solution to span a plane"
    seen = ((points - mean) @ axes.T) ** 2
    total = ((points - mean) ** 2).sum()
    hidden = max(0.0, 1 - seen.sum() / total) if total else 0.0
    return {"kind": kind, "origin": origin.tolist(), "axes": axes.tolist(), "hidden": hidden,
            "words": words}  # fmt: skip


def _pair(
    solutions: list[tuple[Solution, list[int]]], tokens: Tokens
) -> tuple[list[Float[np.ndarray, "d e"]], str]:
    """The first solution and the first other one that spans a plane with it, and their words."""
    found = [(s, selection) for s, selection in solutions if np.isfinite(s.value) and s.W.any()]
    if not found:
        return [], ""
    (first, kept), *others = found
    name = first.geometry.name
    for other, selection in others:
        directions = [_directions(W, tokens) for W in (first.W, other.W)]
        if not _is_line(directions):
            said = f"the solutions that keep {_words(kept)}, in {name}"
            if selection != kept:
                said += f", and {_words(selection)}"
            if other.geometry.name != name:
                said += f" and in {other.geometry.name}"
            return [first.W, other.W], said
    return [first.W], f"the solution that keeps {_words(kept)}, in {name}"


def _words(selection: list[int]) -> str:
    return "tokens " + ", ".join(map(str, selection))


def _directions(W: Float[np.ndarray, "d e"], tokens: Tokens) -> Float[np.ndarray, "d n"]:
    """The vectors ``W z_i``, which score tokens, at a length that counts none more than others."""
    found = W @ tokens.queries[:, 0].T
    return found / max(np.linalg.norm(found), np.finfo(float).tiny)


def _is_line(directions: list[Float[np.ndarray, "d n"]]) -> bool:
    values = np.linalg.svd(np.concatenate(directions, -1), compute_uv=False)
    return len(values) < 2 or bool(values[1] <= _FLAT * values[0])


def _span(
    directions: list[Float[np.ndarray, "d n"]], centered: Float[np.ndarray, "m d"]
) -> tuple[Float[np.ndarray, "2 d"], bool]:
    """The plane nearest to directions, the first of them to the right; whether they made a line."""
    flat = _is_line(directions)
    left = np.linalg.svd(np.concatenate(directions, -1), full_matrices=False)[0]
    if flat:
        u = left[:, 0]
        rest = centered - np.outer(centered @ u, u)
        v = next(row for row in _candidates(rest) if np.linalg.norm(row - (row @ u) * u) > 0.5)
        left = np.stack([u, v], -1)
    plane = np.linalg.qr(left[:, :2])[0]
    first = next(column for column in directions[0].T if column.any())
    right = plane.T @ first
    right = right / np.linalg.norm(right) if right.any() else np.array([1.0, 0.0])
    axes = np.stack([plane @ right, plane @ np.array([-right[1], right[0]])])
    return _upward(axes, directions[-1].mean(-1)), flat


def _candidates(rest: Float[np.ndarray, "m d"]) -> Iterator[Float[np.ndarray, "d"]]:
    """Directions by how much points vary in them, then the coordinate axes."""
    return itertools.chain(np.linalg.svd(rest)[2], np.eye(rest.shape[1]))


def _principal(centered: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "2 d"]:
    axes = np.linalg.svd(centered)[2][:2]
    signs = np.sign(np.take_along_axis(axes, np.abs(axes).argmax(-1, keepdims=True), -1))
    return axes * np.where(signs == 0, 1, signs)


def _upward(axes: Float[np.ndarray, "2 d"], other: Float[np.ndarray, "d"]) -> np.ndarray:
    """The axes with the second one turned to the side of another direction."""
    return axes * np.array([[1.0], [-1.0 if axes[1] @ other < 0 else 1.0]])
