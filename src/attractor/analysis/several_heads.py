"""Runs of several attention heads, compared with one margin problem as if of one head."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, cast, get_args

import numpy as np
import xarray as xr

from attractor.attention import Head, LinearHead, PredictionHeads, get_parameterization
from attractor.attention.multi_head import MultiHead
from attractor.attention.parameterization import attention_layer
from attractor.geometry import Geometry
from attractor.margin import Solution
from attractor.margin.selection import Selection
from attractor.support.checks import check_choice
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens
from attractor.tokens.arrangement import Arrangement, arranged, arranged_tokens, in_block_of_head
from attractor.training import Trajectory
from attractor.training.stored.trajectory_check import ATTENTION_HEAD

if TYPE_CHECKING:
    from attractor.analysis.verdict import Verdict

_MATRIX = ("row", "column")
_BY_HEAD = ("margin_ratio", "correlation", "norm")
"""What is recorded of each head by itself."""
_ARRANGED = " The {heads} attention heads are one matrix, {arrangement}."


def as_one_head(
    trajectory: Trajectory,
    geometry: Geometry | None,
    arrangement: str | None,
    solution: Solution | None = None,
) -> Trajectory:
    """The run of the one matrix that holds those of all heads.

    Args:
        trajectory: The run.
        geometry: The norm to compare in; None with a solution.
        arrangement: How the heads are arranged; None for as they were trained.
        solution: A solution given, whose matrix says so, too.

    Raises:
        InvalidInputError: If the solution is that of no such matrix.
    """
    heads, tokens = trajectory.attention_heads, trajectory.tokens
    assert heads is not None
    if arrangement is None:
        if solution is not None:
            arrangement = _that_fits(solution, heads, tokens)
        else:
            assert geometry is not None
            arrangement = _arrangement(trajectory, geometry)
    chosen = cast("Arrangement", check_choice("arrangement", arrangement, get_args(Arrangement)))
    together = arranged_tokens(tokens, heads, chosen)
    head, values = _head(trajectory.head, heads, tokens)
    if values is not None:
        together = _with_values(together, values)
    data = trajectory.data
    of_heads = [name for name in data.data_vars if ATTENTION_HEAD in data[name].dims]
    lead = [axis for axis in data["W"].dims if axis not in (ATTENTION_HEAD, *_MATRIX)]
    W = data["W"].transpose(*lead, ATTENTION_HEAD, *_MATRIX).to_numpy()
    one = data.drop_vars(of_heads)
    one["W"] = ((*lead, *_MATRIX), arranged(W, chosen))
    settings = trajectory.settings | {"arrangement": arrangement}
    return dataclasses.replace(trajectory, data=one, tokens=together, head=head, settings=settings)


def by_head(
    trajectory: Trajectory, found: Verdict, selection: str | Selection
) -> list[str | Selection]:
    """What each head by itself is compared for: its part of the selection of all.

    Args:
        trajectory: The run.
        found: The verdict of all heads together.
        selection: The selection of all heads as one, or which that is.
    """
    heads, tokens = trajectory.attention_heads, trajectory.tokens
    assert heads is not None
    if isinstance(selection, str) and "given" in found.reference:
        given = found.solution.problem.selection
        assert given is not None
        selection = given
    if isinstance(selection, str):
        return [selection] * heads
    parts = np.split(selection.mask, heads, axis=-3)
    instances = 1 if tokens.instances is None else tokens.instances
    shape = (instances, *tokens.mask.shape[-3:])
    masks = [np.broadcast_to(part, shape) for part in parts]
    return [Selection(mask, mask.sum(-1) > 1) for mask in masks]


def with_heads(
    found: Verdict, trajectory: Trajectory, together: Trajectory, alone: list[Verdict]
) -> Verdict:
    """The verdict of all heads together, with the measures of each by itself.

    Args:
        found: The verdict of all heads as one.
        trajectory: The run.
        together: The run of all heads as one.
        alone: The verdict of each head.
    """
    heads, rows = len(alone), trajectory.tokens.mask.shape[-3]
    variables = {}
    for name, array in found.data.data_vars.items():
        dims, values = array.dims, array.to_numpy()
        if "sequence" in dims:
            place = dims.index("sequence")
            values = values.reshape(*values.shape[:place], heads, rows, *values.shape[place + 1 :])
            dims = (*dims[:place], ATTENTION_HEAD, *dims[place:])
        variables[name] = (dims, values, array.attrs)
    for name in (*_BY_HEAD, "feasible"):
        parts = [one.data[name] for one in alone]
        dims = (*parts[0].dims, ATTENTION_HEAD)
        variables[f"{name}_by_head"] = (dims, np.stack([p.to_numpy() for p in parts], axis=-1))
    data = xr.Dataset(variables, found.data.coords, found.data.attrs)
    why = found.why + _ARRANGED.format(heads=heads, **together.settings)
    return dataclasses.replace(found, data=data, trajectory=trajectory, why=why)


def _arrangement(trajectory: Trajectory, geometry: Geometry) -> Arrangement:
    """How heads were arranged in training, or what another norm has for one of all heads."""
    if geometry.name == trajectory.geometry and "arrangement" in trajectory.settings:
        return trajectory.settings["arrangement"]
    layer = attention_layer(get_parameterization(trajectory.settings["parameterization"]))
    assert isinstance(layer, MultiHead)
    joined = trajectory.optimizer_name.startswith("joined ")
    return layer.arrangement(geometry, joined=joined)


def _that_fits(solution: Solution, heads: int, tokens: Tokens) -> Arrangement:
    """How heads are arranged in the matrix of a solution."""
    d, e = tokens.key_dimension, tokens.query_dimension
    known: dict[tuple[int, int], Arrangement] = {
        (heads * d, heads * e): "block diagonal",
        (d, heads * e): "side by side",
        (heads * d, e): "stacked",
    }
    shape = solution.problem.shape
    if shape not in known:
        raise InvalidInputError(
            "solution",
            f"its matrix has the shape {shape}",
            f"Give one of {' or '.join(map(str, known))}, of MarginProblem.from_heads",
        )
    return known[shape]


def _head(head: Head | None, heads: int, tokens: Tokens) -> tuple[Head | None, np.ndarray | None]:
    """The prediction heads as one, and what it reads of each token if not its value.

    Other heads than linear ones cannot be put together.
    """
    if not isinstance(head, PredictionHeads):
        return head, None
    weights = [one.weight for one in head.each if isinstance(one, LinearHead)]
    if len(weights) < heads:
        return None, None
    first = 0 if tokens.instances is None else 1
    values = in_block_of_head(tokens.values, heads, first)
    return LinearHead(np.concatenate(weights, axis=-1)), values


def _with_values(tokens: Tokens, values: np.ndarray) -> Tokens:
    return Tokens(
        tokens.keys,
        tokens.queries,
        tokens.labels,
        tokens.mask,
        values,
        weights=tokens.weights,
        instance_numbers=tokens.instance_numbers,
    )
