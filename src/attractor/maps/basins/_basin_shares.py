"""``basin_shares``: how often random starts reach each selection."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from attractor.analysis.wilson import wilson_interval
from attractor.attention import Head, Loss, Parameterization
from attractor.geometry import Geometry
from attractor.maps.basins.problem import BasinProblem, Starts, check_problem, check_starts
from attractor.maps.basins.reached import NOT_SETTLED, check_horizon, study, token_data
from attractor.maps.basins.tables import (
    LISTED,
    BasinStudy,
    Line,
    by_count,
    percent,
    selection_table,
)
from attractor.results import save_data
from attractor.support.checks import (
    check_count,
    check_function,
    check_number,
    check_path,
    check_share,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_integers
from attractor.support.randomness import check_seed, generator, seeded
from attractor.support.storage import write_file
from attractor.tokens import Tokens
from attractor.training import Optimizer
from attractor.training.programs.trials import initial_parameters

Sampler = Callable[[np.random.Generator, int], Any]
"""Draws starts: from a generator and their number, the initial parameters with a leading axis."""


@dataclass(frozen=True, eq=False, repr=False)
class BasinShares(BasinStudy):
    """The numbers of random starts that settled on each selection.

    Attributes:
        data: Labeled arrays. Over outcome, which are the selections and then "not settled":
            ``count``, ``share``, and the ends ``low`` and ``high`` of its Wilson interval, each
            outcome by itself. Over selection: ``token``, ``solution``, ``solution_norm``,
            ``locally_optimal``, ``globally_optimal``. Over start: ``basin``, ``attended``,
            ``smallest_weight``, ``log_opposing_pull``, ``margin_ratio``, ``correlation``,
            ``steps``, ``status``, and the matrices ``initial`` and ``final``.
    """

    kind: ClassVar[str] = "attractor basin shares"
    drawn_by: ClassVar[str] = "basin_shares_figure"

    def share(self, selection: Any) -> tuple[float, float, float]:
        """Share, lower and upper end of the interval of a selection.

        Args:
            selection: The token of every row, as numbers or as a name such as "0,2,1"; or
                "not settled". One that no start reached has the share zero.
        """
        if isinstance(selection, str):
            name = selection
        else:
            name = ",".join(map(str, as_integers("selection", selection, ("...",)).ravel()))
        if name in self.data["outcome"].values:
            one = self.data.sel(outcome=name)
            return float(one["share"]), float(one["low"]), float(one["high"])
        starts, confidence = self.data.sizes["start"], self.data.attrs["confidence"]
        return (0.0, *wilson_interval(np.zeros(1, dtype=int), starts, confidence)[0].tolist())

    def summary(self) -> dict[str, Any]:
        """The shares as plain numbers, for JSON; most frequent selections first."""
        count = self.data["count"].values
        order = [*by_count(count[:-1]), len(count) - 1]
        return {
            **{str(name): value for name, value in self.data.attrs.items()},
            "starts": self.data.sizes["start"],
            "outcomes": [self._outcome(place) for place in order],
        }

    def table(self) -> Table:
        """The selections with their shares, most frequent first."""
        data = self.data
        count = data["count"].values
        order = by_count(count[:-1])
        lines = [Line(str(data["outcome"].values[i]), self._cells(i), i) for i in order[:LISTED]]
        rest = order[LISTED:]
        if rest:
            total = sum(count[place] for place in rest)
            share = percent(total / data.sizes["start"])
            lines.append(Line(f"... and {len(rest)} more", [str(total), share, ""]))
        if count[-1]:
            lines.append(Line(NOT_SETTLED, self._cells(len(count) - 1)))
        title = f"Where {data.sizes['start']:,} starts end"
        columns = ["starts", "share", f"{100 * data.attrs['confidence']:g} % interval"]
        return selection_table(title, columns, lines, data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file by its ending: ``.nc`` everything, ``.json`` the summary.

        Raises:
            InvalidInputError: If the ending is neither.
        """
        path = check_path("path", path)
        ending = Path(path).suffix
        if ending == ".nc":
            save_data(self.data, path, self.kind)
            return
        if ending != ".json":
            raise InvalidInputError(
                "path", f"{os.fspath(path)} ends in {ending!r}", "Give .nc or .json"
            )
        write_file(path, json.dumps(self.summary(), indent=2) + "\n")

    def _cells(self, place: int) -> list[str]:
        one = self.data.isel(outcome=place)
        low, high = (100 * float(one[name]) for name in ("low", "high"))
        return [str(int(one["count"])), percent(float(one["share"])), f"{low:.1f} to {high:.1f} %"]

    def _outcome(self, place: int) -> dict[str, Any]:
        one = self.data.isel(outcome=place)
        found: dict[str, Any] = {
            "tokens": None,
            "count": int(one["count"]),
            "share": float(one["share"]),
            "low": float(one["low"]),
            "high": float(one["high"]),
        }
        if place == self.data.sizes["selection"]:
            return found
        chosen = self.data.isel(selection=place)
        found |= {"tokens": chosen["token"].values.tolist(), "norm": float(chosen["solution_norm"])}
        flags = [name for name in ("locally_optimal", "globally_optimal") if name in chosen]
        return found | {name: bool(chosen[name]) for name in flags}


def basin_shares(
    tokens: Tokens,
    head: Head,
    optimizer: Optimizer,
    *,
    starts: int = 1000,
    scale: float | None = None,
    sampler: Sampler | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    steps: int = 1000,
    most_steps: int | None = None,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
    geometry: Geometry | str | None = None,
    progress: bool = False,
) -> BasinShares:
    """Trains from random starts and counts the selections they settle on.

    ``basin_map`` says when a start counts as settled. The interval of each share is
    Wilson's: it holds the shares q for which the count k of n is within z standard deviations of
    its mean, ``|k/n - q| <= z sqrt(q (1 - q) / n)``.

    Args:
        tokens: A single data set, with labels.
        head: The fixed head.
        optimizer: The step.
        starts: Number of starts.
        scale: Standard deviation of normally distributed entries of the initial parameters.
            Default: the starts of ``train(seeds=starts, seed=seed)``, uniform on [-1/sqrt(d),
            1/sqrt(d)].
        sampler: A function from a NumPy generator and a number to that many initial parameters,
            in place of ``scale``; for several arrays it returns a mapping by name.
        seed: Names what is random.
        confidence: Probability for the interval to hold the true share.
        steps: Steps that every start takes.
        most_steps: Steps that none exceeds; default: 16 times ``steps``.
        loss: The loss.
        parameterization: What is trained.
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
    count = check_count("starts", starts)
    problem.check_memory("starts", count, lambda most: f"Give at most {most:,}")
    confidence = check_share("confidence", confidence, 0.95)
    begin = _drawn(problem, count, scale, sampler, check_seed("seed", seed))
    along = {"start": count}
    runs, data = study(problem, begin, along, steps=steps, most_steps=most_steps, progress=progress)
    outcomes = [*data["selection"].values.tolist(), NOT_SETTLED]
    counts = np.bincount(data["basin"].values % len(outcomes), minlength=len(outcomes))
    low, high = wilson_interval(counts, count, confidence).T
    data = data.assign_coords(outcome=outcomes).assign(
        count=("outcome", counts),
        share=("outcome", counts / count),
        low=("outcome", low),
        high=("outcome", high),
        initial=(("start", "row", "column"), problem.matrices(begin)),
        final=(("start", "row", "column"), runs.W),
        **token_data(problem),
    )
    drawn = "given sampler" if sampler else "uniform" if scale is None else f"normal, {scale:g}"
    about = {"distribution": drawn, "seed": seed, "confidence": confidence, "interval": "Wilson"}
    return BasinShares(data.assign_attrs(about))


def _drawn(
    problem: BasinProblem, count: int, scale: Any, sampler: Sampler | None, seed: int
) -> Starts:
    """Random initial parameters."""
    if sampler is not None:
        check_function("sampler", sampler, "Give a function of a generator and a number")
        if scale is not None:
            raise InvalidInputError("scale", "a sampler was given as well", "Give one of the two")
        sampler = seeded(seed, purpose="a sampler of starts")(sampler)
        return check_starts(
            sampler(generator(seed, purpose="starts of basins"), count), problem.shapes, count
        )
    if scale is None:
        check_seed("seed", seed + count - 1)
        number = int(problem.tokens.instance_numbers[0])
        drawn = initial_parameters(
            problem.layer, seed + np.arange(count), np.full(count, number), *problem.size
        )
        return {name: np.asarray(array) for name, array in problem.layer.to_arrays(drawn).items()}
    scale = check_number("scale", scale, above=0, most=LARGEST, example=1.0)
    random = generator(seed, purpose="starts of basins")
    return {
        name: scale * random.standard_normal((count, *shape))
        for name, shape in problem.shapes.items()
    }
