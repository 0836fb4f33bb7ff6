"""``basin_map``: which selection each point of a plane of starts reaches."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from rich.table import Table

from attractor.attention import Head, Loss, Parameterization
from attractor.geometry import Geometry
from attractor.maps.basins.problem import BasinProblem, check_problem
from attractor.maps.basins.reached import NOT_SETTLED, check_horizon, study, token_data
from attractor.maps.basins.tables import BasinStudy, Line, by_count, percent, selection_table
from attractor.results import save_data
from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64
from attractor.tokens import Tokens
from attractor.training import Optimizer


@dataclass(frozen=True, eq=False, repr=False)
class BasinMap(BasinStudy):
    """The selection that training from each point of a plane of starts settles on.

    Attributes:
        data: Labeled arrays. Over (second, first), the coordinates of the start in the plane:
            ``basin``, the position of the selection it settled on, -1 for none; ``attended``, the
            token each row attends to at the end; ``smallest_weight``, the smallest over rows of
            the highest attention weight; ``margin_ratio`` and ``correlation`` with the solution
            for these tokens; ``log_opposing_pull``; ``steps`` it was followed for; ``status``.
            Over selection: ``token``, ``solution``, ``solution_norm``, ``locally_optimal``,
            ``globally_optimal``. The start at (a, b) is ``center + a direction[0] + b
            direction[1]``. ``keys``, where what is trained is a prompt.
    """

    kind: ClassVar[str] = "attractor basin map"
    drawn_by: ClassVar[str] = "basin_map_figure"

    def table(self) -> Table:
        """The part of the plane that each selection takes."""
        basin = self.data["basin"].values
        count = np.array([(basin == place).sum() for place in range(self.data.sizes["selection"])])
        names = self.data["selection"].values
        lines = [Line(str(names[i]), [percent(count[i] / basin.size)], i) for i in by_count(count)]
        left = float((basin < 0).mean())
        lines += [Line(NOT_SETTLED, [percent(left)])] if left else []
        title = f"Where {basin.size:,} starts in a plane end"
        return selection_table(title, ["of the plane"], lines, self.data)

    def summary(self) -> dict[str, Any]:
        """The parts of the plane as plain numbers, for JSON."""
        basin = self.data["basin"].values
        parts = [
            {
                "tokens": self.data["token"].values[place].tolist(),
                "part": float((basin == place).mean()),
            }
            for place in range(self.data.sizes["selection"])
        ]
        return {
            **{str(name): value for name, value in self.data.attrs.items()},
            "starts": basin.size,
            "selections": parts,
            "not_settled": float((basin < 0).mean()),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a NetCDF file, which appears whole or not at all.

        Raises:
            InvalidInputError: If the name does not end in ``.nc``.
        """
        save_data(self.data, path, self.kind)


def basin_map(
    tokens: Tokens,
    head: Head,
    optimizer: Optimizer,
    *,
    plane: Any = None,
    center: Any = None,
    extent: float | Sequence[float] = 3.0,
    resolution: int | tuple[int, int] = 60,
    steps: int = 1000,
    most_steps: int | None = None,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
    geometry: Geometry | str | None = None,
    progress: bool = False,
) -> BasinMap:
    """Trains from every cell of a plane of parameters and sees which selection it ends on.

    The start at ``(a, b)`` is ``center + a u + b v``. A start has settled when in every row one
    token has more than 99 % of the attention and the tokens that would lower the loss further
    pull less than 1 % of what the weakest support token of that selection's margin problem holds.
    Others are followed twice as long, and so on; those that have not settled after ``most_steps``
    are a class of their own.

    Locally optimal directions attract what starts near them (*Max-Margin Token Selection in
    Attention Mechanism*, arXiv 2306.13596, and *Transformers as Support Vector Machines*, arXiv
    2308.16898, local convergence of gradient descent); how far "near" reaches is what this shows.

    Args:
        tokens: A single data set, with labels.
        head: The fixed head.
        optimizer: The step.
        plane: The two directions (u, v): matrices ``(d, e)``, or vectors ``(d,)`` of a prompt.
            May be left out where what is trained has two entries: they are the plane then.
        center: The origin of the plane; default: zero.
        extent: Half the width of the plane, or ``(first low, first high, second low, second
            high)``, in units of u and v.
        resolution: Number of cells along both axes, or along each; starts are their centers.
        steps: Steps that every start takes.
        most_steps: Steps that none exceeds; default: 16 times ``steps``.
        loss: The loss.
        parameterization: What is trained. Keys and queries start from balanced factors.
        geometry: The norm to solve margin problems in; default: the one the optimizer descends
            in, or Frobenius where none is known.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been trained then.
    """
    problem = check_problem(
        tokens, head, optimizer, loss=loss, parameterization=parameterization, geometry=geometry
    )
    steps, most_steps = check_horizon(steps, most_steps)
    directions = _directions(plane, problem)
    origin = np.zeros(problem.size) if center is None else problem.as_matrix("center", center)
    first, second = _grid(extent, resolution, problem)
    places = np.stack(np.meshgrid(first, second), axis=-1)
    W = origin + np.einsum("yxi,ice->yxce", places, directions).reshape(-1, *problem.size)
    cells = {"second": len(second), "first": len(first)}
    starts = problem.starts_at(W)
    _, data = study(problem, starts, cells, steps=steps, most_steps=most_steps, progress=progress)
    data = data.assign_coords(first=first, second=second).assign(
        direction=(("axis", "row", "column"), directions),
        center=(("row", "column"), origin),
        **token_data(problem),
    )
    return BasinMap(data)


def _directions(plane: Any, problem: BasinProblem) -> Float[np.ndarray, "2 d e"]:
    """The two directions of the plane."""
    size = problem.size
    if plane is None:
        if np.prod(size) != 2:
            raise InvalidInputError(
                "plane",
                f"what is trained has {np.prod(size)} entries, so a plane has to be chosen",
                f"Give two directions (u, v), each of shape {size}",
            )
        return np.eye(2).reshape(2, *size)
    try:
        u, v = plane
    except (TypeError, ValueError):
        raise InvalidInputError(
            "plane", "it is not a pair", f"Give two directions (u, v), each of shape {size}"
        ) from None
    found = np.stack([problem.as_matrix("plane", one) for one in (u, v)])
    if np.linalg.matrix_rank(found.reshape(2, -1)) < 2:
        raise InvalidInputError(
            "plane", "one direction is a multiple of the other", "Give two that span a plane"
        )
    return found


def _grid(extent: Any, resolution: Any, problem: BasinProblem) -> list[Float[np.ndarray, "cell"]]:
    """Centers of the cells along both axes."""
    edges = as_float64("extent", extent, largest=LARGEST)
    if edges.shape == ():
        edges = np.array([-edges, edges, -edges, edges])
    if edges.shape != (4,) or edges[0] >= edges[1] or edges[2] >= edges[3]:
        raise InvalidInputError(
            "extent",
            f"{extent!r} bounds no rectangle",
            "Give a positive number, or (first low, first high, second low, second high)",
        )
    counts = resolution if isinstance(resolution, Sequence) else (resolution, resolution)
    if len(counts) != 2:
        raise InvalidInputError("resolution", f"{resolution!r} is no pair", "Give (60, 40), say")
    cells = [check_count("resolution", count) for count in counts]
    problem.check_memory(
        "resolution",
        math.prod(cells),
        lambda most: f"Give at most {math.isqrt(most):,} cells along each",
    )
    return [
        low + (high - low) * (np.arange(count) + 0.5) / count
        for (low, high), count in zip(edges.reshape(2, 2), cells, strict=True)
    ]
