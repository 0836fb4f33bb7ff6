"""The audit of checkpoints: which way every head moves, all heads tested together."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.heads.audit.finished_heads import Found, finished_heads, labeled
from attractor.heads.audit.margin_solution import (
    Selections,
    check_norms,
    problem_of,
    rotation_about,
    selections_of,
    solved,
)
from attractor.heads.captured.captured import Captured, CapturedLayer, CaptureStatus
from attractor.heads.captured.rows import chosen_heads, heads_of
from attractor.heads.checkpoints.checkpoint_result import (
    PLACE,
    VARIABLES,
    CheckpointAudit,
    Direction,
)
from attractor.heads.statistics.multiple import check_draws, together
from attractor.margin import Solution
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_flag, check_items
from attractor.support.errors import InvalidInputError
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed, generator
from attractor.support.threads import in_threads

if TYPE_CHECKING:
    import xarray as xr


GAP = 1e-4
"""Relative duality gap to which margin problems are solved, those of heads as those of draws."""
_LEAST = 1e-6
"""Part of a matrix below which a change of it, or a turn, may be rounding of single precision."""

Matrix = Float[np.ndarray, "m n"]


@dataclasses.dataclass(frozen=True, eq=False)
class Factors:
    """A matrix ``K^T B`` between hidden states, which may be long, by its factors.

    Attributes:
        key: ``K``.
        query: ``B``.
    """

    key: Float[np.ndarray, "width key_hidden"]
    query: Float[np.ndarray, "width query_hidden"]

    @classmethod
    def of(cls, layer: CapturedLayer, head: int) -> Factors:
        """The matrix ``K^T [Q, b]`` of a head whose projections are known."""
        made = layer.projections
        assert made is not None and made.key is not None
        query = made.query[head]
        if made.bias is not None:
            query = np.column_stack([query, made.bias[head]])
        return cls(made.key[layer.key_head(head)].astype(np.float64), query.astype(np.float64))


@dataclasses.dataclass(frozen=True, eq=False)
class Change:
    """A matrix ``V`` that became ``W``, and both with their queries turned, ``K^T R B``.

    All that is asked of them follows from Gram matrices of their factors, and from their parts in
    the rows of keys and queries in which margin solutions lie.

    Attributes:
        first: ``V``.
        last: ``W``.
        rows: Orthonormal rows; a matrix ``M`` in their coordinates is ``rows.key^T M rows.query``.
    """

    first: Factors
    last: Factors
    rows: Factors

    @cached_property
    def _grams(self) -> list[tuple[Matrix, Matrix]]:
        pairs = ((self.last, self.last), (self.last, self.first), (self.first, self.first))
        return [(one.key @ other.key.T, one.query @ other.query.T) for one, other in pairs]

    @cached_property
    def _parts(self) -> list[tuple[Matrix, Matrix]]:
        rows = self.rows
        return [(one.key @ rows.key.T, one.query @ rows.query.T) for one in (self.last, self.first)]

    def products(self, R: Matrix) -> tuple[float, float, float]:
        """The products ``<W, W>``, ``<W, V>`` and ``<V, V>`` of both, turned by ``R``."""
        ww, wv, vv = (float((key * (R @ query @ R.T)).sum()) for key, query in self._grams)
        return ww, wv, vv

    def cosine(self, M: Matrix, R: Matrix) -> float:
        """Cosine of the tangential change with ``M`` less its part along ``V``.

        The tangential change is the part of ``W - V`` orthogonal to ``V``: with
        ``g = <W, V> / <V, V>`` it is ``W - g V``. It can go along the part of ``M`` orthogonal to
        ``V`` alone: the cosine is 1 where ``V`` turns straight to ``M``, however near it is.
        """
        ww, wv, vv = self.products(R)
        if not vv > 0:
            return np.nan
        w, v = (float(((key.T @ R @ query) * M).sum()) for key, query in self._parts)
        size, growth = float((M**2).sum()), wv / vv
        product, tangential = w - growth * v, ww - growth * wv
        square = tangential * (size - v**2 / vv)
        return float(product / np.sqrt(square)) if square > 0 else np.nan


def movements(
    before: Sequence[CapturedLayer],
    last: CapturedLayer,
    head: int,
    *,
    norms: Sequence[str],
    draws: int,
    key: tuple[int, int],
) -> list[dict[str, Any]]:
    r"""The variables of question five: how a head moved from each checkpoint to the last.

    With ``W`` of the last checkpoint, ``V`` of one before and ``D = W - V`` in hidden space:
    ``|W| / |V|``, ``cos(D, V)``, the share of queries that select the same token in both, each by
    its own attention; and where the tangential part of ``D`` goes, seen from the certified margin
    solution of what the last one selects (``Change.cosine``).

    That solution is made of the last head's own selections, so that any change seems to go toward
    it. A draw of the null has selections of its own, too: queries of both checkpoints are turned by
    one random rotation, ``K^T R [Q, b]``, which leaves the mean query of either as it is, and with
    it the part of scores without the query; its margin solution is that of its last head. Where no
    rotation from the left changes the law of ``[Q, b]`` in both, as of Gaussian weights and steps,
    whatever their covariance along hidden states, the null is exact.

    Args:
        before: The layer at each checkpoint before the last.
        last: The layer at the last one.
        head: The number of the head.
        norms: Norms of margin solutions; draws are compared in the first.
        draws: Draws of the null.
        key: Seed and layer, which name the draws, with the head.

    Returns:
        The variables for each checkpoint before the last.
    """
    end, solved_for = None, False
    found = []
    for one in before:
        answer = _of_attention(one, last, head)
        why = _unknown(one, head) or _unknown(last, head)
        if why is None:
            if not solved_for:
                end, solved_for = _End.of(last, head, norms, key[0]), True
            sizes, why = _size(Factors.of(one, head), Factors.of(last, head))
            answer |= sizes
        if why is None and end is not None:
            answer |= end.reached_from(one, draws, (*key, head))
        else:
            answer["direction"] = f"{Direction.NOT_ASKED}: {why or 'nothing to choose among'}"
        found.append(answer)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class _End:
    """The last checkpoint of a head, and the margin solutions of what it selects."""

    layer: CapturedLayer
    head: int
    selections: Selections
    solutions: list[Solution]

    @classmethod
    def of(cls, layer: CapturedLayer, head: int, norms: Sequence[str], seed: int) -> _End | None:
        """Solves the margin problems; None where there is nothing to choose among."""
        own = selections_of(layer, head, seed)
        if own is None:
            return None
        W = own.left.T @ own.right
        return cls(layer, head, own, [solved(own.problem, W, norm, GAP) for norm in norms])

    @cached_property
    def rows(self) -> Factors:
        """The coordinates of solutions; that of a bias is the last."""
        made = Factors.of(self.layer, self.head)
        projections = self.layer.projections
        constants = int(projections is not None and projections.bias is not None)
        left, right = self.selections.left, self.selections.right
        rank, hidden = right.shape[1] - constants, made.query.shape[1] - constants
        query = np.zeros((rank + constants, hidden + constants))
        query[:rank, :hidden] = np.linalg.pinv(right[:, :rank]) @ made.query[:, :hidden]
        query[rank:, hidden:] = 1.0
        return Factors(np.linalg.pinv(left) @ made.key, query)

    def reached_from(
        self, first: CapturedLayer, draws: int, key: tuple[int, int, int]
    ) -> dict[str, Any]:
        """Where the tangential change from a checkpoint goes, of the head and of every draw."""
        last, head, own = self.layer, self.head, self.selections
        change = Change(Factors.of(first, head), Factors.of(last, head), self.rows)
        still = np.eye(len(own.left))
        axes = _independent(*(one.queries[own.used, head].mean(0) for one in (last, first)))
        null, gaps = [], []
        for draw in range(draws):
            R = rotation_about(generator(*key, draw, purpose="rotation of checkpoints"), *axes)
            turned = own.left.T @ R @ own.right
            problem = problem_of(own.tokens, turned)
            solution = solved(problem, turned, self.solutions[0].geometry.name, GAP)
            null.append(change.cosine(solution.W, R))
            gaps.append(float(solution.gap))
        return {
            "queries": float(len(own.used)),
            "rows": float(len(own.problem.bounds)),
            "gap": [float(one.gap) for one in self.solutions],
            "gap_null": max(gaps),
            "cosine": [change.cosine(one.W, still) for one in self.solutions],
            "cosine_null": null,
            "direction": "",
        }


def _unknown(layer: CapturedLayer, head: int) -> str | None:
    """Why the matrix of a head is not known; None if it is."""
    made = layer.projections
    if layer.status[head] is not CaptureStatus.BILINEAR:
        return layer.status[head].value
    if made is None:
        return "no linear projections"
    return "keys are rotated by position" if made.key is None else None


def _of_attention(first: CapturedLayer, last: CapturedLayer, head: int) -> dict[str, Any]:
    """What the attention of both checkpoints says, whatever it comes from."""
    if CaptureStatus.NOT_SUPPORTED in (first.status[head], last.status[head]):
        return {}
    choosing = last.allowed.sum(-1) > 1
    seen = [one.attention[choosing, head] for one in (first, last)]
    before, after = (np.where(last.allowed[choosing], one, 0.0) for one in seen)
    same = before.argmax(-1) == after.argmax(-1)
    tops = [float(np.median(one.max(-1))) if len(one) else np.nan for one in (before, after)]
    return {
        "agreement": float(same.mean()) if len(same) else np.nan,
        "top_probability_before": tops[0],
        "top_probability_after": tops[1],
    }


def _size(first: Factors, last: Factors) -> tuple[dict[str, Any], str | None]:
    """How a matrix grew and turned, and why it cannot be asked where it turns to, if so."""
    ww, wv, vv = Change(first, last, last).products(np.eye(len(last.key)))
    if not ww * vv > 0:
        return {}, "a matrix is zero"
    ratio = float(np.sqrt(ww / vv))
    turn = float(np.sqrt(max(0.0, 1 - wv**2 / (ww * vv))))
    change = ww - 2 * wv + vv
    if change <= _LEAST**2 * ww:
        return {"norm_ratio": ratio}, "nothing changed"
    radial = float((wv - vv) / np.sqrt(change * vv))
    why = "its size alone changed" if turn <= _LEAST else None
    return {"norm_ratio": ratio, "radial_cosine": radial}, why


def _independent(one: Matrix, other: Matrix) -> list[Matrix]:
    """Two axes, the second without its part along the first; left out where nothing remains."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    length = float(one @ one)
    rest = other - (one @ other) / length * one if length > 0 else other
    return [one, rest] if np.linalg.norm(rest) > _LEAST * np.linalg.norm(other) else [one]


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
