"""What the heads of an attention module of transformers see, found by running it alone again."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from attractor.heads import CaptureStatus, Projections
from attractor.heads.capture.agreement import agreement
from attractor.heads.capture.calls import Call, calls_of
from attractor.heads.capture.frame import SHIFT, UNROTATED, Frame, frame_of
from attractor.heads.capture.parts import frame_without_rotations
from attractor.heads.capture.projections import watching
from attractor.heads.captured.trained_matrix import coordinates
from attractor.heads.modules.module_rows import ModuleRows
from attractor.support.errors import InvalidInputError, NotFiniteError

_ROTARY = "position_embeddings"
_CACHES = (
    "past_key_values",
    "past_key_value",
    "cache",
    "use_cache",
    "cache_position",
    "layer_past",
)
"""Arguments that hold keys of earlier calls, or say where they are."""
_INSTEAD = "Read its heads with watched_heads(model, ...), or keys and queries yourself"


@dataclasses.dataclass(frozen=True)
class Known:
    """What does not change while a model is trained.

    Attributes:
        inside: The module that calls attention, itself or inside of it; not kept alive by this.
        frame: The frame of keys and queries.
        status: Whether softmax of ``k^T q`` is the module's own attention, for every head.
    """

    inside: weakref.ref[torch.nn.Module]
    frame: Frame
    status: tuple[CaptureStatus, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class RotatedRows:
    """Heads whose keys and queries positions rotate: every query meets keys of its own.

    Attributes:
        call: The call of attention.
        frame: Its frame.
        projections: The matrix of queries; None where it is not known.
        allowed: Tokens that a query may attend to, ``(sequences, heads or 1, rows, tokens)``.
        rows: False where a query is padding, ``(sequences, rows)``.
        status: Whether these scores are those of the module's own attention, for every head.
    """

    call: Call
    frame: Frame
    projections: Projections | None
    allowed: Bool[np.ndarray, "n 1 K T"]
    rows: Bool[np.ndarray, "n K"]
    status: tuple[CaptureStatus, ...]

    def head(
        self, head: int, rows: Bool[np.ndarray, "n K"]
    ) -> tuple[tuple[Any, ...], Float[np.ndarray, "d e"]]:
        """What a head sees, a sequence for each query, and its matrix."""
        call = self.call
        assert call.rotary is not None
        shared = head * call.key.shape[1] // call.query.shape[1]
        n, K = (torch.as_tensor(one, device=call.key.device) for one in np.nonzero(rows))
        rotary = [one.expand(len(call.query), -1, -1)[n, K][:, None] for one in call.rotary]
        query = self.frame.turned_back(call.query[n, head, K][:, None, None], *rotary)
        keys = self.frame.turned_back(call.key[n, shared][:, None], *rotary)
        x, z, left, right = coordinates(
            keys[:, 0].cpu().numpy(),
            call.scaling * query[:, 0, 0].cpu().numpy(),
            self.projections,
            head,
            shared,
        )
        allowed = self.allowed[:, head if self.allowed.shape[1] > 1 else 0][rows]
        return (x, z, allowed), left.T @ right


def transformers_rows(
    root: torch.nn.Module,
    module: torch.nn.Module,
    given: Mapping[str, Any],
    known: MutableMapping[torch.nn.Module, Known],
) -> ModuleRows | RotatedRows:
    """What the heads of a module see when it is called with some arguments.

    Args:
        root: The model, whose masks the arguments hold.
        module: The module, or one around it.
        given: The arguments, by name.
        known: What is known of modules from earlier calls; this one is added.

    Raises:
        InvalidInputError: If it never calls attention, or not in a way that is understood.
        NotFiniteError: If queries or keys are not finite.
    """
    halves = {one.dtype for one in module.parameters()} & {torch.float16, torch.bfloat16}
    if halves:
        kind = str(halves.pop()).removeprefix("torch.")
        raise InvalidInputError(
            "module",
            f"its weights are {kind}, too coarse to find the matrices of a module of transformers",
            "Keep weights in float32 and train under torch.autocast",
        )
    given = _without_caches(given)
    if module not in known:
        first = _only_call(module, _calls(root, module, given))
        frame = _frame(root, module, given, first)
        if frame is None:
            kind = type(module).__name__
            raise InvalidInputError(
                "module", f"positions rotate keys of {kind} in a way that is not known", _INSTEAD
            )
        known[module] = Known(weakref.ref(first.module), frame, _status(first))
    about = known[module]
    calls: list[Call] = []
    found: list[Projections | None] = []
    inside = about.inside()
    with watching([] if inside is None else [inside]) as watched:

        def receive(call: Call) -> None:
            calls.append(call)
            found.append(watched.projections(call, about.frame) if _is_finite(call) else None)

        with calls_of(root, receive):
            module(**given)
    call = _only_call(module, calls)
    allowed = call.allowed.cpu().numpy()
    rows = np.min(allowed.any(-1), axis=1)
    if not call.cross and allowed.shape[2] == allowed.shape[3]:
        rows = rows & allowed.any((1, 2))  # what nothing may attend to is padding
    if about.frame != UNROTATED:
        return RotatedRows(call, about.frame, found[0], allowed, rows, about.status)
    return ModuleRows(
        call.key.cpu().numpy(),
        call.scaling * call.query.cpu().numpy(),
        allowed,
        rows,
        found[0],
        about.status,
    )


def _only_call(module: torch.nn.Module, calls: list[Call]) -> Call:
    """The one call of attention that a module makes.

    Raises:
        InvalidInputError: If it makes none, or several.
        NotFiniteError: If queries or keys are not finite.
    """
    if len(calls) != 1:
        raise InvalidInputError(
            "module",
            f"{type(module).__name__} called attention {len(calls)} times through transformers' "
            "interface",
            "Give the module that makes queries and keys, or a torch.nn.MultiheadAttention",
        )
    if not _is_finite(calls[0]):
        raise NotFiniteError("run", "queries or keys hold NaN or infinity", "Lower the step size")
    return calls[0]


def _is_finite(call: Call) -> bool:
    return bool(call.query.isfinite().all() and call.key.isfinite().all())


def _calls(root: torch.nn.Module, module: torch.nn.Module, given: Mapping[str, Any]) -> list[Call]:
    """The calls of attention that a module makes."""
    calls: list[Call] = []
    with calls_of(root, calls.append):
        module(**given)
    return calls


def _without_caches(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without keys of earlier calls; those with ``**`` are beside the others."""
    flat: dict[str, Any] = {}
    for name, value in given.items():
        flat |= value if name == "kwargs" and isinstance(value, Mapping) else {name: value}
    return {name: value for name, value in flat.items() if name not in _CACHES}


def _frame(
    root: torch.nn.Module, module: torch.nn.Module, given: Mapping[str, Any], call: Call
) -> Frame | None:
    """The frame of a module; one that rotates is tried on the same tokens at other positions."""
    if call.rotary is None:
        return frame_without_rotations(call)
    size = call.query.shape[2] - SHIFT
    if call.cross or size < 2:
        raise InvalidInputError(
            "run", f"its texts have {call.query.shape[2]} tokens", f"Give {SHIFT + 2} or more"
        )
    try:
        here, moved = (_calls(root, module, _cut(given, start, size)) for start in (0, SHIFT))
    except (RuntimeError, IndexError, TypeError, ValueError):  # of a module that takes others
        return None
    return frame_of(here[0], moved[0])


def _cut(given: Mapping[str, Any], start: int, size: int) -> dict[str, Any]:
    """Arguments for the first tokens, at positions from a start on."""
    found = dict(given)
    for name, value in given.items():
        if name == _ROTARY:
            found[name] = tuple(one[..., start : start + size, :] for one in value)
        elif isinstance(value, torch.Tensor) and value.ndim == 4:
            found[name] = value[..., :size, :size]
        elif isinstance(value, torch.Tensor) and value.ndim == 3:
            found[name] = value[:, :size]
    return found


def _status(call: Call) -> tuple[CaptureStatus, ...]:
    """Whether softmax of scores is the attention of the module, for every head."""
    if call.weights is None:
        return (CaptureStatus.NOT_SUPPORTED,) * call.query.shape[1]
    queries, keys = call.query.cpu().double(), call.key.cpu().double()
    return agreement(call, queries, keys, call.allowed.cpu())[1]
