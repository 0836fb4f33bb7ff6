"""The audit of checkpoints: which way every head moves, all heads tested together."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.heads.audit.finished_heads import finished_heads
from attractor.heads.audit.labeled import Found, labeled
from attractor.heads.audit.margin_solution import check_norms
from attractor.heads.captured.captured import Captured, CapturedLayer
from attractor.heads.captured.chosen import chosen_heads, heads_of
from attractor.heads.checkpoints.checkpoint_result import VARIABLES, CheckpointAudit
from attractor.heads.checkpoints.checkpoint_words import PLACE
from attractor.heads.checkpoints.movement import GAP, Direction, movements
from attractor.heads.statistics.multiple import check_draws, together
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_flag, check_items
from attractor.support.errors import InvalidInputError
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed
from attractor.support.threads import in_threads

if TYPE_CHECKING:
    import xarray as xr

_AXES = {"gap": ["norm"], "cosine": ["norm"], "cosine_null": ["draw"]}
"""Axes of variables beside checkpoint, layer and head."""
_EMPTY = {"direction": ""}
_SAME_TEXTS = "Capture the same layers of each, with the same texts, tokenizer and seed"


def audit_checkpoints(
    checkpoints: Sequence[Captured],
    *,
    draws: int = 99,
    alpha: float = 0.05,
    layers: Sequence[int] | None = None,
    heads: Sequence[tuple[int, int]] | None = None,
    norms: Sequence[str] = ("frobenius",),
    seed: int = 0,
    progress: bool = False,
    store: str | os.PathLike[str] | None = None,
) -> CheckpointAudit:
    r"""Asks of every head which way it moves: whether it grows, and where it turns to.

    In hidden space a head is the matrix ``W = K^T [Q, b]`` of ``CapturedLayer.projections``. For
    each checkpoint with ``V`` in its place, in this order: ``|W| / |V|`` and the cosine of the
    change ``W - V`` with ``V`` (a head that grows along itself saturates, one that shrinks is
    decayed), whether queries still select the same tokens and how sharply; and the cosine of the
    rest of the change, orthogonal to ``V``, with the certified margin solution of what the last
    checkpoint selects: ``toward`` or ``away``, if that cosine is beyond those of heads whose
    queries are turned at random at both checkpoints, with selections of their own, two-sided, for
    all heads and checkpoints together at level ``alpha`` (max-T).

    A head's numbers depend on the seed, its layer and its number; ``p_together`` does on others.

    Args:
        checkpoints: The same texts and queries as each checkpoint sees them, from the first to the
            last: of ``capture_heads`` with the same texts and the same seed.
        draws: Draws of the null; fixed beforehand, as no p-value is below ``1 / (draws + 1)``.
        alpha: Level of the tests, for all heads and checkpoints together.
        layers: Layers to ask about; None for all.
        heads: Heads to ask about as pairs ``(layer, head)``; None for all.
        norms: Norms of margin solutions: "frobenius", "nuclear", "spectral". Draws are compared,
            and verdicts given, in the first. Factors ``K`` and ``Q`` go to the nuclear one, which
            takes a hundred times as long to find for wide heads on many tokens.
        seed: Names the queries used and all draws.
        progress: Whether to show progress.
        store: A folder that keeps heads that are done: the same call, killed, goes on there. It
            may be that of ``audit_heads`` of the last checkpoint.

    Raises:
        InvalidInputError: If an argument is of the wrong kind, the checkpoints are not of the same
            texts and queries or of models of the same shape, a head does not exist, there are too
            few draws for the level, or the folder holds another audit.
    """
    captured = check_items("checkpoints", checkpoints, Captured, 2)
    draws, alpha = check_draws(draws, alpha)
    norms, seed = check_norms(norms, 1), check_seed("seed", seed)
    check_flag("progress", progress)
    *before, last = captured
    for place, one in enumerate(before):
        _refuse(place, _other_queries(one, last), _SAME_TEXTS)
    chosen = chosen_heads(last, layers, heads)
    numbers = sorted({layer for layer, _ in chosen})
    found: dict[tuple[int, int], list[Found]] = {}
    kept = {"draws": draws, "seed": seed, "norms": ",".join(norms)}
    with (
        finished_heads(store, last, kept, of="checkpoints") as finished,
        progress_bar("layers", len(numbers), enabled=progress, lines_every=30) as advance,
    ):
        for number in numbers:
            end, starts = last.layer(number), [one.layer(number) for one in before]
            for place, one in enumerate(starts):
                _refuse(place, _other_shapes(number, one, end), "Give checkpoints of one model")
            mine = heads_of(number, end, chosen)
            key = (seed, number)
            ask = functools.partial(movements, starts, end, norms=norms, draws=draws, key=key)
            todo = []
            for head in mine:
                pairs = zip(_kept_as(number, head, starts), starts, strict=True)
                done = [finished.read(name, [one, end], head) for name, one in pairs]
                if all(done):
                    found[number, head] = [one for one in done if one]
                    advance(1 / len(mine))
                else:
                    todo.append(head)
            with single_blas_thread():
                for head, answer in in_threads(ask, todo):
                    found[number, head] = answer
                    kept_as = _kept_as(number, head, starts)
                    for name, one, part in zip(kept_as, starts, answer, strict=True):
                        finished.write(name, [one, end], head, part)
                    advance(1 / len(mine))
    settings = {"draws": draws, "alpha": alpha, "seed": seed, "last": str(len(before))}
    return CheckpointAudit(_judged(_assembled(found, len(before), norms, settings)))


def _kept_as(number: int, head: int, starts: Sequence[CapturedLayer]) -> list[str]:
    """The names of the answers of a head in a store, one for each earlier checkpoint."""
    return [f"moved_{number}_{head}_from_{place}" for place in range(len(starts))]


def _refuse(place: int, differences: Iterator[str], remedy: str) -> None:
    """Refuses a checkpoint for the first of its differences from the last."""
    for difference in differences:
        raise InvalidInputError(f"checkpoints[{place}]", difference, remedy)


def _other_queries(one: Captured, last: Captured) -> Iterator[str]:
    """Where a checkpoint saw other texts, or was asked at other queries."""
    for name in ("document", "position", "token", "special"):
        mine, wanted = getattr(one, name), getattr(last, name)
        if mine.shape != wanted.shape:
            yield f"{name} has the shape {mine.shape}, and {wanted.shape} in the last"
        elif (mine != wanted).any():
            row = int(np.argwhere(mine != wanted)[0][0])
            yield f"{name} of query {row} differs from that in the last"
    if one.layers != last.layers:
        yield f"it has layers {one.layers}, and the last has {last.layers}"


def _other_shapes(number: int, one: CapturedLayer, last: CapturedLayer) -> Iterator[str]:
    """Where heads of a layer are of another shape, or see other tokens."""
    pairs = [(name, getattr(one, name), getattr(last, name)) for name in ("queries", "keys")]
    first, second = one.projections, last.projections
    if first is not None and second is not None:
        pairs += [
            (f"projections.{name}", getattr(first, name), getattr(second, name))
            for name in ("query", "bias", "key")
        ]
    for name, *pair in pairs:
        mine, wanted = (None if array is None else array.shape for array in pair)
        if mine != wanted:
            yield f"{name} of layer {number} has the shape {mine}, and {wanted} in the last"
    if (one.allowed != last.allowed).any():
        yield f"the mask of layer {number} is not that of the last"


def _assembled(
    found: Mapping[tuple[int, int], list[Found]],
    count: int,
    norms: Sequence[str],
    settings: dict[str, Any],
) -> xr.Dataset:
    """The variables of all heads as labeled arrays."""
    import xarray as xr

    layers, heads = (sorted({pair[axis] for pair in found}) for axis in range(2))
    by_place = {
        (place, layers.index(layer), heads.index(head)): one
        for (layer, head), every in found.items()
        for place, one in enumerate(every)
    }
    places = {"checkpoint": [*map(str, range(count))], "layer": layers, "head": heads}
    sizes = {"norm": len(norms), "draw": settings["draws"]}
    variables = labeled(by_place, places, VARIABLES, axes=_AXES, sizes=sizes, empty=_EMPTY)
    return xr.Dataset(variables, coords={**places, "norm": list(norms)}, attrs=settings)


def _judged(data: xr.Dataset) -> xr.Dataset:
    """Adds p-values, for all heads together, and the verdicts that rest on them."""
    if "cosine" not in data:
        return data
    cosine = data["cosine"].to_numpy()[..., 0]
    known = np.isfinite(cosine)
    statistic = np.concatenate([cosine[..., None], data["cosine_null"].to_numpy()], -1)[known]
    above = statistic - statistic.mean(-1, keepdims=True)
    p_together = np.full(known.shape, np.nan)
    p_together[known] = together(np.abs(above))
    verdicts = data["direction"].to_numpy().astype(object)
    words = np.where(above[:, 0] > 0, Direction.TOWARD.value, Direction.AWAY.value)
    words = np.where(p_together[known] <= data.attrs["alpha"], words, Direction.ELSEWHERE.value)
    gaps = np.maximum(data["gap"].to_numpy().max(-1), data["gap_null"].to_numpy())[known]
    verdicts[known] = np.where(gaps <= GAP, words, Direction.OPEN.value)
    named = {"p_together": p_together, "direction": verdicts.astype(str)}
    return data.assign(
        {name: (PLACE, array, {"long_name": VARIABLES[name]}) for name, array in named.items()}
    )
