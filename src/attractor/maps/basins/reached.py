"""Runs of a study of basins, trained until it is decided where they settle, as labeled arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from attractor.attention.labels import is_margin_loss
from attractor.maps.basins.attractors import Attractor, Attractors, Judgement
from attractor.maps.basins.problem import BasinProblem, Starts
from attractor.margin.selection import optimal_tokens, token_scores
from attractor.margin.selections.local_optimality import score_advantage, worst_advantage
from attractor.support.checks import MOST_STEPS, check_steps
from attractor.support.errors import InvalidInputError, TiedTokensWarning, TrialStatus

if TYPE_CHECKING:
    import xarray as xr


DOUBLINGS = 4
"""Doublings of the number of steps, by default, for starts that have not settled."""


class Followed(NamedTuple):
    """The end of the run from every start.

    Attributes:
        W: The effective matrix at the end.
        judgement: The tokens attended to, and whether it has settled on them.
        steps: Steps it was followed for.
        status: How its training ended.
    """

    W: Float[np.ndarray, "start d e"]
    judgement: Judgement
    steps: Int[np.ndarray, "start"]
    status: Int[np.ndarray, "start"]


def check_horizon(steps: int, most_steps: int | None) -> tuple[int, int]:
    """Checks how long starts are to be followed.

    Raises:
        InvalidInputError: If either is no count, or ``most_steps`` is the smaller one.
    """
    steps = check_steps("steps", steps)
    if most_steps is None:
        return steps, min(steps * 2**DOUBLINGS, MOST_STEPS)
    most = check_steps("most_steps", most_steps)
    if most < steps:
        raise InvalidInputError(
            "most_steps", f"{most} is less than {steps} steps", f"Give {steps} or more"
        )
    return steps, most


def follow(
    problem: BasinProblem,
    attractors: Attractors,
    starts: Starts,
    *,
    steps: int,
    most_steps: int,
    progress: bool = False,
) -> Followed:
    """Trains all starts, and those that have not settled for twice as long, and so on.

    An optimizer without memory goes on from where it was, which gives the numbers of one long
    run; any other begins again. Trials that can move no further are not followed.

    Args:
        problem: What is trained.
        attractors: The attractors met so far; new ones are added.
        starts: Initial parameters.
        steps: Steps that every start takes.
        most_steps: Steps that none exceeds.
        progress: Whether to show progress bars.
    """
    pending = np.arange(len(next(iter(starts.values()))))
    begin, done, horizon = starts, 0, steps
    found: Followed | None = None
    while True:
        taken = horizon - done if problem.memoryless else horizon
        run = problem.train(begin, taken, progress=progress)
        W, status = np.array(run.W()[0]), np.array(run.data["status"].values[0])
        judged = attractors.judge(W)
        ended = Followed(W, judged, np.full(len(W), horizon), status)
        found = ended if found is None else _updated(found, pending, ended)
        again = ~judged.settled & (status == TrialStatus.TRAINED)
        pending = pending[again]
        if not pending.size or horizon == most_steps:
            return found
        begin = {name: array[pending] for name, array in starts.items()}
        if problem.memoryless:
            last = run.data.isel(instance=0, step=-1, missing_dims="ignore")
            begin = {name: last[name].values[again] for name in starts}
        done, horizon = horizon, min(2 * horizon, most_steps)


def _updated(found: Followed, places: Int[np.ndarray, "some"], new: Followed) -> Followed:
    """The same with some starts replaced."""

    def put(old: np.ndarray, values: np.ndarray) -> np.ndarray:
        old[places] = values
        return old

    judged = Judgement(*map(put, found.judgement, new.judgement))
    return Followed(
        put(found.W, new.W), judged, put(found.steps, new.steps), put(found.status, new.status)
    )


NOT_SETTLED = "not settled"
"""The name of starts that ended on no selection, or for which it is not decided."""

_DESCRIPTIONS = {
    "basin": "position of the selection the start settled on; -1 for none",
    "attended": "token with the highest attention weight at the end",
    "smallest_weight": "smallest over rows of the highest attention weight at the end",
    "log_opposing_pull": "logarithm of the pull of better tokens relative to that of the weakest "
    "support token",
    "margin_ratio": "normalized margin ratio for the selection at the end",
    "keys": "token",
    "optimal": "token of the highest score of its sequence",
    "correlation": "correlation with the margin solution of the selection at the end",
    "steps": "steps the start was followed for",
    "status": "how the training ended",
    "token": "selected token",
    "solution": "margin solution",
    "solution_norm": "norm of the margin solution",
    "locally_optimal": "every support token scores strictly lower than the selected one",
    "globally_optimal": "every row selects a token of its highest score",
}


def study(
    problem: BasinProblem,
    starts: Starts,
    along: Mapping[str, int],
    *,
    steps: int,
    most_steps: int,
    progress: bool,
) -> tuple[Followed, xr.Dataset]:
    """Trains from starts, and labels where they ended.

    Args:
        problem: What is trained.
        starts: Initial parameters.
        along: Dimensions that the starts are arranged along, with their sizes.
        steps: Steps that every start takes.
        most_steps: Steps that none exceeds.
        progress: Whether to show progress bars.

    Returns:
        The runs; and labeled arrays over the starts and over the selections they settled on.
    """
    attractors = Attractors(problem)
    runs = follow(
        problem, attractors, starts, steps=steps, most_steps=most_steps, progress=progress
    )
    basin, selections = _reached(problem, attractors.found, runs)
    data = _run_variables(runs, basin, along).merge(selections)
    return runs, data.assign_attrs(problem.settings, most_steps=most_steps)


def _reached(
    problem: BasinProblem, found: list[Attractor], runs: Followed
) -> tuple[Int[np.ndarray, "start"], xr.Dataset]:
    """Numbers the selections that at least one start settled on.

    The globally optimal one comes first, then those of smaller norm, which have the larger margin.

    Args:
        problem: The problem trained on.
        found: Every attractor met.
        runs: Where the starts ended.

    Returns:
        For every start the position of its selection, -1 where it has not settled; and over
        ``selection`` ``token``, ``solution``, ``solution_norm`` and, where tokens have scores,
        ``locally_optimal`` and ``globally_optimal``.
    """
    judged = runs.judgement
    kept = np.unique(judged.attractor[judged.settled])
    some = [found[number] for number in kept]
    flags = _flags(problem, some)
    solutions = [one.solution for one in some if one.solution is not None]
    norms = np.array([float(solution.value) for solution in solutions])
    best = flags.get("globally_optimal", np.zeros(len(some), dtype=bool))
    # Norms that are equal in theory differ by rounding, which is to have no say.
    ranks = [
        (not first, float(f"{norm:.9g}"), one.tokens.tolist())
        for first, norm, one in zip(best, norms, some, strict=True)
    ]
    order = np.array(sorted(range(len(some)), key=ranks.__getitem__), dtype=int)
    position = np.full(len(found) + 1, -1)
    position[kept[order]] = np.arange(len(order))
    tokens = np.array([one.tokens for one in some], dtype=int)
    tokens = tokens.reshape(-1, *problem.tokens.mask.shape[:-1])[order]
    W = np.array([solution.W for solution in solutions]).reshape(-1, *problem.size)[order]
    data = xr.Dataset(
        {
            "token": (("selection", "sequence", "query"), tokens),
            "solution": (("selection", "row", "column"), W),
            "solution_norm": ("selection", norms[order]),
            **{name: ("selection", flag[order]) for name, flag in flags.items()},
        },
        coords={"selection": np.array([selection_name(one) for one in tokens], dtype=str)},
    )
    basin = np.where(judged.settled, position[judged.attractor], -1)
    return basin, _described(data)


def _run_variables(
    runs: Followed, basin: Int[np.ndarray, "start"], along: Mapping[str, int]
) -> xr.Dataset:
    """The labeled arrays of every start, with the starts arranged along some dimensions."""
    judged = runs.judgement
    values: dict[str, Any] = {
        "basin": basin,
        "attended": judged.attended,
        "smallest_weight": judged.smallest_weight,
        "log_opposing_pull": judged.log_opposing_pull,
        "margin_ratio": judged.margin_ratio,
        "correlation": judged.correlation,
        "steps": runs.steps,
        "status": runs.status,
    }
    variables = {}
    for name, array in values.items():
        rows = ("sequence", "query") if name == "attended" else ()
        variables[name] = ((*along, *rows), array.reshape(*along.values(), *array.shape[1:]))
    return _described(xr.Dataset(variables))


def selection_name(tokens: Int[np.ndarray, "sequence query"]) -> str:
    """The selected tokens, sequence by sequence, as in "0,2,1"."""
    return ",".join(str(int(token)) for token in tokens.ravel())


def token_data(problem: BasinProblem) -> dict[str, Any]:
    """The tokens, where all rows have the number one as query: a prompt lives among them."""
    tokens = problem.tokens
    if tokens.queries.shape[-2:] != (1, 1) or (tokens.queries != 1).any():
        return {}
    along = ("sequence", "key_token")
    found = {"keys": ((*along, "row"), tokens.keys), "mask": (along, tokens.mask[:, 0])}
    if not _has_scores(problem):
        return found
    return found | {"optimal": (along, _best(problem)[:, 0])}


def _flags(problem: BasinProblem, some: list[Attractor]) -> dict[str, np.ndarray]:
    """Local and global optimality of selections, where tokens have scores."""
    tokens, head = problem.tokens, problem.head
    if not _has_scores(problem):
        return {}
    scores = token_scores(tokens, head)
    chosen = np.array([one.tokens for one in some], dtype=int)
    chosen = chosen.reshape(-1, *tokens.mask.shape[:-1])[..., None] == np.arange(tokens.length)
    support = [one.solution.support_tokens for one in some if one.solution is not None]
    support = np.array(support, dtype=bool).reshape(chosen.shape)
    worst = worst_advantage(score_advantage(scores, chosen), support)
    return {
        "locally_optimal": worst > 0,
        "globally_optimal": (chosen & _best(problem)).any(-1).all((-1, -2)),
    }


def _has_scores(problem: BasinProblem) -> bool:
    return problem.head.classes is None and is_margin_loss(problem.loss.name)


def _best(problem: BasinProblem) -> Bool[np.ndarray, "sequence query token"]:
    """The tokens of the highest score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TiedTokensWarning)
        return optimal_tokens(problem.tokens, problem.head).mask


def _described(data: xr.Dataset) -> xr.Dataset:
    for name, description in _DESCRIPTIONS.items():
        if name in data:
            data[name].attrs["description"] = description
    return data
