"""Drawing queries, and what each layer holds of them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool

from attractor.heads import CapturedLayer, CaptureStatus
from attractor.heads.capture.calls import Call, calls_of, scores_of
from attractor.heads.capture.frame import UNROTATED, Frame
from attractor.heads.capture.parts import Part
from attractor.heads.capture.projections import Watched, agreement, watching
from attractor.heads.capture.texts import Shown
from attractor.heads.captured.rows import LEAST_CANDIDATES
from attractor.support.checks import naming


@dataclasses.dataclass
class Drawn:
    """The queries of a batch.

    Attributes:
        rows: The row of each.
        position: The place of each among the tokens of its row.
        seen: Number of rows of the batch.
    """

    rows: list[int]
    position: list[int]
    seen: int


class _DrawnAnewError(Exception):
    """A query that was drawn has too few tokens to choose from in a layer further on."""


def captured_batches(
    part: Part,
    shown: Shown,
    *,
    batch: int,
    seed: int,
    values: bool,
    write: Callable[[int, CapturedLayer, int], None],
) -> Iterator[Drawn]:
    """Runs a model batch by batch, and writes every layer as it comes.

    Which token may be a query is known only after the last layer, as masks may differ. A batch
    whose draw a layer refuses begins anew with another, which layers after it rarely refuse.

    Args:
        part: The part of the model.
        shown: What it is shown.
        batch: Rows of a batch.
        seed: Seed of the draws.
        values: Whether to keep values.
        write: Takes the number of a layer, queries of it, and the number of the first of them.

    Yields:
        The queries of each batch.
    """
    start = 0
    for first in range(0, len(shown), batch):
        rows = range(first, min(first + batch, len(shown)))
        given = part.run.arguments(shown, rows)
        one = _Batch(part, shown, rows, given, seed=seed, values=values, start=start, write=write)
        drawn = one.run()
        start += len(drawn.rows)
        yield drawn


class _Batch:
    """A batch under way: it receives the calls of attention in their order."""

    def __init__(
        self,
        part: Part,
        shown: Shown,
        rows: Sequence[int],
        given: dict[str, Any],
        *,
        seed: int,
        values: bool,
        start: int,
        write: Callable[[int, CapturedLayer, int], None],
    ) -> None:
        self._part, self._rows, self._given = part, rows, given
        self._values, self._start, self._write = values, start, write
        size = part.queries.special.shape[1]
        self._eligible = ~part.queries.special[list(rows)]
        self._order = []
        for row in rows:
            own = size if shown.lengths is None else int(shown.lengths[row])
            key = (seed, int(shown.document[row]), int(shown.text[row]))
            order = np.random.default_rng(key).permutation(own)
            self._order.append((order, int(shown.queries[row])))
        self._next = 0

    def run(self) -> Drawn:
        while True:
            self._local, self._position = self._draw()
            if not self._local:
                break
            self._next = 0
            try:
                with self._watching() as self._watched:
                    with calls_of(self._part.run.model, self._receive):
                        self._part.run.model(**self._given)
                break
            except _DrawnAnewError:
                continue
        return Drawn([self._rows[one] for one in self._local], self._position, len(self._rows))

    def _watching(self) -> contextlib.AbstractContextManager[Watched | None]:
        """Watches for projections in the first batch, which hold for all."""
        return contextlib.nullcontext() if self._start else watching(self._part.modules)

    def _draw(self) -> tuple[list[int], list[int]]:
        """Of each row the first few tokens in a random order that may be queries."""
        local, position = [], []
        for place, (order, count) in enumerate(self._order):
            may = [int(one) for one in order if self._eligible[place, one]][:count]
            local += [place] * len(may)
            position += may
        return local, position

    def _receive(self, call: Call) -> None:
        run, place = self._part.run, self._next
        if not run.captures(call, self._given):
            return
        if place and call.allowed.shape[2:] != self._shape:
            return
        self._shape = call.allowed.shape[2:]
        self._next += 1
        allowed = call.allowed.any(1).cpu().numpy()
        self._check(allowed)
        number, frame = self._part.numbers[place], self._part.frames[place]
        if number in self._part.layers:
            self._write(number, self._layer(call, allowed, frame), self._start)

    def _check(self, allowed: Bool[np.ndarray, "rows queries tokens"]) -> None:
        """Lets no token be a query that has too few to choose from.

        Raises:
            _DrawnAnewError: If one was drawn.
        """
        content = ~self._part.keys.special[list(self._rows)][:, : allowed.shape[2]]
        candidates = (allowed & content[:, None]).sum(-1)
        self._eligible[:, : allowed.shape[1]] &= candidates >= LEAST_CANDIDATES
        self._eligible[:, allowed.shape[1] :] = False
        if not self._eligible[self._local, self._position].all():
            raise _DrawnAnewError

    def _layer(
        self, call: Call, allowed: Bool[np.ndarray, "rows queries tokens"], frame: Frame | None
    ) -> CapturedLayer:
        """What a layer holds of the queries drawn."""
        local = torch.tensor(self._local, device=call.query.device)
        position = torch.tensor(self._position, device=call.query.device)
        queries = call.query[local, :, position][:, :, None].cpu().double()
        keys = call.key[local].cpu().double()
        if frame is not None and frame != UNROTATED:
            assert call.rotary is not None
            rotary = [
                one.expand(len(call.query), -1, -1)[local, position][:, None].cpu().double()
                for one in call.rotary
            ]
            queries = frame.turned_back(queries, *rotary)
            keys = frame.turned_back(keys, *rotary)
        may = torch.from_numpy(allowed[self._local, self._position])[:, None, None]
        if call.weights is None:
            scores = scores_of(queries, keys, call.scaling, call.soft_cap)
            seen = scores.masked_fill(~may, -torch.inf).softmax(-1)[:, :, 0].to(call.key.dtype)
            difference = np.full(seen.shape[1], np.nan)
            status = (CaptureStatus.NOT_SUPPORTED,) * seen.shape[1]
        else:
            seen = call.weights[local, :, position]
            difference, status = agreement(
                call, queries, keys, may, lambda every: every[local, :, position][:, :, None]
            )
        if frame is None:
            bilinear, unknown = CaptureStatus.BILINEAR, CaptureStatus.FRAME_UNKNOWN
            status = tuple(unknown if one == bilinear else one for one in status)
        size = self._part.keys.special.shape[1]
        there = ~self._part.keys.padding[list(self._rows)][self._local][:, None, :, None]
        values = None
        if self._values:
            values = np.where(there, _filled(_array(call.value[local]), size, 2), 0)
        with naming(queries="model", keys="model", attention="model", values="model"):
            return CapturedLayer(
                queries=_array(queries[:, :, 0].to(call.query.dtype) * call.scaling),
                keys=np.where(there, _filled(_array(keys.to(call.key.dtype)), size, 2), 0),
                allowed=_filled(allowed[self._local, self._position], size, 1),
                attention=_filled(_array(seen), size, 2),
                values=values,
                self_check=difference,
                status=status,
                projections=self._watched and self._watched.projections(call, frame),
            )


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def _filled(array: np.ndarray, size: int, axis: int) -> np.ndarray:
    """An array with zeros behind the tokens of a batch, up to those of all."""
    missing = [(0, size - array.shape[axis] if axis == one else 0) for one in range(array.ndim)]
    return np.pad(array, missing) if size > array.shape[axis] else np.ascontiguousarray(array)
