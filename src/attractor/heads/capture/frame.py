"""Keys and queries that positions rotate, in the frame of the query.

Rotary embeddings make scores ``(R_j k_j)^T (R_i q_i)`` with rotations R that depend on positions
alone. Turned back by the rotation of the query, keys are ``R_i^T R_j k_j`` and the query is
``q_i``: scores are the same, and no matrix between the two can know where in the text they lie.
Whether what is turned back is what was rotated is tested on the model itself.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from attractor.heads.capture.calls import Call, module_function

SHIFT = 5
"""Positions by which texts are moved to test a frame."""
_TOLERANCE = 1e-2
"""Largest change of a coordinate by such a move, relative to its own size. Rounding stays far below
in a model of a hundred layers; another rotation changes the fastest plane by its size and more."""
_TRIFLE = 0.1
"""Coordinates smaller than this share of all are as large as it."""
_UNIT = 1e-6
"""Cosines and sines, in single precision in any model, are that near to the unit circle."""
_SCORES = 1e-3
"""Largest change of scores by turning, relative to the lengths of key and query."""


@dataclasses.dataclass(frozen=True)
class Frame:
    """How keys and queries of a layer are turned back.

    Attributes:
        first: The first coordinate that is rotated.
        last: The one behind the last.
        rotate: The function of the model's file that rotates; None where nothing is rotated.
    """

    first: int
    last: int
    rotate: Callable[..., Any] | None

    def turned_back(
        self, vectors: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor
    ) -> torch.Tensor:
        """Vectors with the rotations of positions undone.

        Args:
            vectors: Keys or queries as captured, ``(batch, heads, tokens, width)``.
            cosines: Cosines that rotated them, ``(batch or 1, tokens or 1, rotated)``; they may be
                scaled, as longer contexts have it, and the scale stays.
            sines: The sines.
        """
        if self.rotate is None:
            return vectors
        square = cosines**2 + sines**2  # where it is rounding alone, it is undone, too
        scale = torch.where((square - 1).abs() <= _UNIT, square, square.sqrt())
        inner = vectors[..., self.first : self.last].contiguous()
        turned = _rotated(self.rotate, inner, cosines / scale, -sines / scale)
        return torch.cat([vectors[..., : self.first], turned, vectors[..., self.last :]], -1)


UNROTATED = Frame(0, 0, None)


def frame_of(call: Call, moved: Call) -> Frame | None:
    """The frame of a layer, from a call and the same on texts moved by some positions.

    Args:
        call: A call that was given rotations.
        moved: The same call where all positions are larger.

    Returns:
        The first frame in which nothing of the move is seen, and scores are what they were; None
        where there is none. Layers without positions, in models that have others, are unrotated.
    """
    if call.rotary is None or moved.rotary is None or call.query.shape != moved.query.shape:
        return None
    cosines, moved_cosines = call.rotary[0], moved.rotary[0]
    if cosines.shape != moved_cosines.shape or torch.equal(cosines, moved_cosines):
        return None
    frames = [*_frames(call), UNROTATED]
    return next((frame for frame in frames if _holds(frame, call, moved)), None)


def _frames(call: Call) -> list[Frame]:
    """Frames that a model may have: the whole width is rotated, or the first or last of it."""
    rotate = module_function(call.module, "apply_rotary_pos_emb")
    if rotate is None:
        return []
    width, found = call.query.shape[-1], []
    assert call.rotary is not None
    given = call.rotary[0].shape[-1]
    for rotated in (width, given, 2 * given):
        for first in (0, width - rotated):
            if first >= 0 and (frame := Frame(first, first + rotated, rotate)) not in found:
                found.append(frame)
    return found


def _holds(frame: Frame, call: Call, moved: Call) -> bool:
    try:
        before, after = _in_frame(frame, call), _in_frame(frame, moved)
    except Exception:  # of a function of the model's, which is not made for these sizes
        return False
    if before[0].shape[-1] != call.query.shape[-1]:
        return False
    same = all(_close(one, other) for one, other in zip(before, after, strict=True))
    raw = _of_last(call.query), call.key
    return same and _same_scores(before, raw)


def _in_frame(frame: Frame, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """The last query of a call, and all keys, in its frame."""
    assert call.rotary is not None
    last = [_of_last(one, -2) for one in call.rotary]
    query = frame.turned_back(_of_last(call.query), *last)
    return query, frame.turned_back(call.key, *last)


def _of_last(array: torch.Tensor, axis: int = 2) -> torch.Tensor:
    return array.narrow(axis, array.shape[axis] - 1, 1)


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether no coordinate changes by much, in root mean square over heads and tokens."""
    axes = (0, 1, 2)
    change = (one - other).double().square().mean(axes).sqrt()
    size = one.double().square().mean(axes).sqrt()
    largest = torch.maximum(size, _TRIFLE * size.square().mean().sqrt())
    return bool((change <= _TOLERANCE * largest).all())


def _same_scores(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    def scores(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        keys = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        return query.double() @ keys.double().transpose(-1, -2)

    lengths = other[0].norm(dim=-1).max() * other[1].norm(dim=-1).max()
    return bool((scores(*one) - scores(*other)).abs().max() <= _SCORES * lengths)


def _rotated(
    rotate: Callable[..., Any], vectors: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor
) -> torch.Tensor:
    """Vectors rotated by a function of a model's, which takes them by pairs or alone."""
    names = list(inspect.signature(rotate).parameters)
    given = {"cos": cosines, "sin": sines}
    if "k" in names:
        given["k"] = vectors
    found = rotate(**{names[0]: vectors}, **given)
    return found[0] if isinstance(found, tuple) else found
