"""Two-stage training compared with the margin problems of both layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import log_softmax, logsumexp

from attractor.corpora.problems import attention_problem, feed_forward_problem
from attractor.corpora.samples import Samples
from attractor.corpora.structures.occurrences import Collocation
from attractor.corpora.structures.orders import partial_orders
from attractor.corpora.two_stages.two_stage import TwoStageTrajectory
from attractor.margin import Solution, solve
from attractor.support.checks import check_items, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_shaped, check_broadcast

if TYPE_CHECKING:
    import xarray as xr


def direction_distance(
    W: Float[np.ndarray, "*batch r c"], solution: Float[np.ndarray, "*#batch r c"]
) -> Float[np.ndarray, "*batch"]:
    """``1 - cos`` of the angle between matrices, as ``|W/|W| - W*/|W*||^2 / 2``.

    Accurate down to 1e-32, where one minus a cosine is not. NaN for a matrix of zeros.
    """
    W = as_shaped("W", W, ("...", "r", "c"))
    solution = as_shaped("solution", solution, ("...", *W.shape[-2:]))
    check_broadcast("solution", solution.shape, W.shape)

    def unit(matrix: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return matrix / np.linalg.norm(matrix, axis=(-1, -2), keepdims=True)

    return ((unit(W) - unit(solution)) ** 2).sum((-1, -2)) / 2


def feed_forward_solutions(run: TwoStageTrajectory) -> list[Solution]:
    """The max-margin solution of the feed-forward layer for each corpus."""
    check_kinds(run=(run, TwoStageTrajectory))
    tables = _tables(run)
    pairs = zip(run.collocations, tables, strict=True)
    return solve([feed_forward_problem(found, table) for found, table in pairs])


def attention_solutions(run: TwoStageTrajectory) -> list[Solution]:
    """The max-margin solution of the attention layer for each corpus."""
    check_kinds(run=(run, TwoStageTrajectory))
    each = zip(run.corpora, run.collocations, _tables(run), strict=True)
    return solve(
        [attention_problem(partial_orders(corpus, found), table) for corpus, found, table in each]
    )


def _solutions(argument: str, given: Any, run: TwoStageTrajectory) -> list[Solution] | None:
    """Solutions that a user gives in place of the layer's own, one for each corpus."""
    if given is None:
        return None
    found = check_items(argument, given, Solution)
    if len(found) != len(run.corpora):
        raise InvalidInputError(
            argument, f"there are {len(found)}", f"Give {len(run.corpora)}, one for each corpus"
        )
    return found


def measure_two_stages(
    run: TwoStageTrajectory,
    feed_forward: Sequence[Solution] | None = None,
    attention: Sequence[Solution] | None = None,
) -> xr.Dataset:
    """Directions, norms and losses of both layers at every recorded step.

    Args:
        run: A run that kept all its weights.
        feed_forward: The solutions that the first stage is compared with; default: its own.
        attention: Those of the second stage.

    Returns:
        Over ``(instance, feed_forward_step)`` and ``(instance, step)``: ``distance``, ``1 - cos``
        of the angle to the solution; ``correlation``; ``norm``; ``loss``, the mean over tokens of
        the first stage, the frequency-weighted mean over samples of the second; ``sum_loss``,
        the sum over distinct samples in which attention has a choice; ``log_other_attention``,
        the logarithm of the largest attention that a sample gives to tokens that do not explain
        its label; ``least_optimal_attention``, one minus that; ``log_excess_loss``, the logarithm
        of the loss above what it is with all attention on the tokens that explain the labels.
        Those of the first stage have ``feed_forward_`` before their names. Over ``instance``:
        ``solution_norm``, ``feed_forward_solution_norm``. Losses are NaN where a label of the
        corpus is not explained.
    """
    check_kinds(run=(run, TwoStageTrajectory))
    feed_forward = _solutions("feed_forward", feed_forward, run) or feed_forward_solutions(run)
    attention = _solutions("attention", attention, run) or attention_solutions(run)
    first, second = run.feed_forward.data, run.attention.data
    along = ("instance", "feed_forward_step")
    early = _directions(first["W"].isel(seed=0).to_numpy(), feed_forward)
    late = _directions(second["W"].isel(seed=0).to_numpy(), attention)
    losses = [
        _of_samples(samples, found, table, W_ov, matrices)
        for samples, found, table, W_ov, matrices in zip(
            run.samples,
            run.collocations,
            _tables(run),
            run.feed_forward.W()[:, 0],
            second["W"].isel(seed=0).to_numpy(),
            strict=True,
        )
    ]
    variables: dict[str, Any] = {
        f"feed_forward_{name}": (along, values) for name, values in early.items()
    }
    variables |= {name: (("instance", "step"), values) for name, values in late.items()}
    variables |= {
        name: (("instance", "step"), np.stack([each[name] for each in losses]))
        for name in losses[0]
    }
    variables["feed_forward_loss"] = (along, first["loss"].isel(seed=0).to_numpy())
    norms = [float(solution.value) for solution in attention]
    early_norms = [float(solution.value) for solution in feed_forward]
    variables["solution_norm"] = ("instance", norms)
    variables["feed_forward_solution_norm"] = ("instance", early_norms)
    return xr.Dataset(
        variables,
        coords={
            "instance": first["instance"].to_numpy(),
            "feed_forward_step": run.feed_forward.steps,
            "step": run.attention.steps,
        },
    )


def _tables(run: TwoStageTrajectory) -> Float[np.ndarray, "instances V d"]:
    table = run.embeddings
    return np.broadcast_to(table, (len(run.corpora), *table.shape[-2:]))


def _directions(
    W: Float[np.ndarray, "instance step r c"], solutions: Sequence[Solution]
) -> dict[str, np.ndarray]:
    targets = np.stack([solution.W for solution in solutions])[:, None]
    distance = np.full(W.shape[:2], np.nan)
    solved = np.isfinite(targets).all((1, 2, 3))  # an infeasible problem has no direction
    if solved.any():
        distance[solved] = direction_distance(W[solved], targets[solved])
    return {
        "distance": distance,
        "correlation": 1 - distance,
        "norm": np.linalg.norm(W, axis=(-1, -2)),
    }


def _of_samples(
    samples: Samples,
    collocation: Collocation,
    table: Float[np.ndarray, "V d"],
    W_ov: Float[np.ndarray, "V d"],
    W: Float[np.ndarray, "step d d"],
) -> dict[str, np.ndarray]:
    """Losses and attention of every sample, combined for each step.

    With all attention on tokens that explain the label a sample has logits ``f``; what attention
    the others keep moves them by ``delta``, and the loss by ``log1p(sum_v exp(f_v - f_y)
    expm1(delta_v - delta_y) / (1 + sum_v exp(f_v - f_y)))``, which subtracts no losses.
    """
    known, labels = np.maximum(samples.contexts, 0), samples.labels
    explaining = collocation.inverse[labels]
    explains = samples.contexts == explaining[:, None]
    explained, choice = explains.any(-1), (samples.mask & ~explains).any(-1)

    of_token = table @ W_ov.T  # the logits of each token alone
    ideal = of_token[explaining] - of_token[explaining, labels][:, None]
    wrong = np.where(labels[:, None] == np.arange(len(table)), -np.inf, ideal)
    floor = np.logaddexp(0, np.asarray(logsumexp(wrong, axis=-1)))
    unlikely = np.exp(wrong - floor[:, None])
    moved = of_token[known] - of_token[known, labels[:, None]][..., None] - ideal[:, None]

    found = []
    for matrix in W:  # one step after another, for the memory that all samples take
        scores = np.einsum("ntd,nd->nt", table[known], table[samples.queries] @ matrix.T)
        logs = log_softmax(np.where(samples.mask, scores, -np.inf), axis=-1)
        others = np.where(explains, -np.inf, logs)
        delta = np.einsum("nt,ntv->nv", np.exp(others), moved)
        rise = np.where(explained, np.log1p((unlikely * np.expm1(delta)).sum(-1)), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            other = np.asarray(logsumexp(others, axis=-1))[choice & explained]
            excess = np.log((rise * samples.frequencies).sum(-1))
        losses = floor + rise
        mean, total = (losses * samples.frequencies).sum(-1), losses[choice].sum(-1)
        found.append((mean, total, other.max(initial=-np.inf), excess))
    loss, sum_loss, log_other, log_excess = np.array(found).T
    return {
        "loss": loss,
        "sum_loss": sum_loss,
        "log_other_attention": log_other,
        "least_optimal_attention": -np.expm1(log_other),
        "log_excess_loss": log_excess,
    }
