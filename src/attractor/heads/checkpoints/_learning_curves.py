"""How rules learned from a head's selections become better with more documents to learn from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Bool

from attractor.heads.audit.result import VARIABLES, Audit
from attractor.heads.captured.captured import Captured, CapturedLayer
from attractor.heads.captured.rows import HeadRows, content_tokens, head_rows, pairs_of, sink_count
from attractor.heads.statistics.learnability import learn
from attractor.heads.statistics.multiple import resampled
from attractor.heads.statistics.nulls import Null, draw_maps
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_count, check_flag, check_kind
from attractor.support.errors import InvalidInputError
from attractor.support.progress import progress_bar
from attractor.support.randomness import generator
from attractor.support.threads import in_threads

if TYPE_CHECKING:
    import xarray as xr

_HALVINGS = 4
"""How often the documents to learn from are halved."""


def learning_curves(
    captured: Captured,
    audit: Audit,
    heads: Sequence[tuple[int, int]],
    *,
    draws: int = 29,
    progress: bool = False,
) -> xr.Dataset:
    """Accuracies of rules learned from a sixteenth, an eighth, ... and all of the documents.

    The documents are the first of those that the audit learned from in a random order that its
    seed names, so that fewer lie among more; they are tested on the same documents always. Beside
    each head are draws of the null that the verdict rests on, each learned from its own selections
    on the same documents. With all documents, accuracies are those of the audit, to the last bit.

    Args:
        captured: What was audited.
        audit: Its audit, which has the halves of documents, the null and the seed.
        heads: Layer and number of each head, in the order wanted.
        draws: How many draws of the null: those that an audit draws first.
        progress: Whether to show progress.

    Returns:
        Over ``curve`` (with ``layer`` and ``head``) and ``size``: ``documents`` learned from,
        ``accuracy``, ``accuracy_low`` and ``accuracy_high``, ``accuracy_query_free``,
        ``accuracy_offset``, ``chance``, and over ``draw``, too, ``accuracy_null``; over ``curve``
        the verdict, ``learnable``.

    Raises:
        InvalidInputError: If the audit is that of something else, or a head was not tested in it.
    """
    check_kind("captured", captured, Captured, "Give what was audited")
    data = check_kind("audit", audit, Audit, "Give what audit_heads returned").data
    draws = check_count("draws", draws, most=99_999)
    _check_same(captured, data)
    chosen = [_tested(data, pair) for pair in pairs_of(heads)]
    verdicts = [str(data["learnable"].sel(layer=n, head=m).item()) for n, m in chosen]
    check_flag("progress", progress)
    found: dict[tuple[int, int], dict[str, Any]] = {}
    wanted = sorted(set(chosen))
    with (
        single_blas_thread(),
        progress_bar("learning curves", len(wanted), enabled=progress, lines_every=30) as advance,
    ):
        for number in sorted({layer for layer, _ in wanted}):
            learner = _Learner(captured, number, captured.layer(number), data.attrs, draws)
            mine = [head for at, head in wanted if at == number]
            for head, curve in in_threads(learner, mine):
                found[number, head] = curve
                advance(1)
    meanings = VARIABLES | {"documents": "documents that rules were learned from"}
    arrays = {name: np.array([found[pair][name] for pair in chosen]) for name in found[chosen[0]]}
    arrays["learnable"] = np.array(verdicts)
    return xr.Dataset(
        {
            name: (("curve", "size", "draw")[: array.ndim], array, {"long_name": meanings[name]})
            for name, array in arrays.items()
        },
        coords={
            "layer": ("curve", [n for n, _ in chosen]),
            "head": ("curve", [n for _, n in chosen]),
        },
        attrs={"null": data.attrs["null"], "seed": data.attrs["seed"], "draws": draws},
    )


@dataclass(frozen=True)
class _Learner:
    """The curves of the heads of a layer."""

    captured: Captured
    number: int
    layer: CapturedLayer
    settings: dict[str, Any]
    draws: int

    def __call__(self, head: int) -> dict[str, Any]:
        seed = int(self.settings["seed"])
        sinks = sink_count(self.captured, self.layer, self.settings["sink_positions"])
        content = content_tokens(self.captured, self.layer, sinks)
        rows = head_rows(self.captured, self.layer, head, content, seed)
        key = (seed, self.number, head)
        maps = draw_maps(Null(self.settings["null"]), rows, self.draws, key)
        points = []
        for count, learned in _nested(rows, seed):
            one = learn(rows, maps, learned)
            random = generator(*key, purpose="resampled documents")
            low, high = resampled(one.hits.astype(float), rows.document[~rows.learned], random)
            points.append(
                {
                    "documents": count,
                    "accuracy": one.accuracy[0],
                    "accuracy_low": low,
                    "accuracy_high": high,
                    "accuracy_query_free": one.query_free.mean(),
                    "accuracy_offset": one.offset.mean(),
                    "accuracy_null": one.accuracy[1:],
                    "chance": one.chance,
                }
            )
        return {name: np.array([point[name] for point in points]) for name in points[0]}


def _nested(rows: HeadRows, seed: int) -> list[tuple[int, Bool[np.ndarray, "rows"]]]:
    """Numbers of documents to learn from, rising to all, each with the rows of the first so many.

    A document has its place in the order whatever other documents there are.
    """
    documents = np.unique(rows.document[rows.learned])
    ordered = documents[np.argsort([_place(seed, one) for one in documents.tolist()])]
    counts = [max(len(documents) >> halved, 1) for halved in range(_HALVINGS, -1, -1)]
    return [(n, rows.learned & np.isin(rows.document, ordered[:n])) for n in counts]


def _place(seed: int, document: int) -> str:
    return hashlib.sha256(f"order {seed} {document}".encode()).hexdigest()


def _check_same(captured: Captured, data: xr.Dataset) -> None:
    for name in ("document", "position"):
        if not np.array_equal(data[name].to_numpy(), getattr(captured, name)):
            raise InvalidInputError(
                "audit", f"it is not of what was captured: {name}s differ", "Audit it first"
            )


def _tested(data: xr.Dataset, pair: tuple[int, int]) -> tuple[int, int]:
    layer, head = pair
    there = layer in data["layer"] and head in data["head"] and "accuracy" in data
    if not there or not np.isfinite(float(data["accuracy"].sel(layer=layer, head=head))):
        raise InvalidInputError(
            "heads", f"head {layer}.{head} was not tested in the audit", "Give heads that were"
        )
    return pair
