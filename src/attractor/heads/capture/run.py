"""Running one part of a model, and telling its calls of attention from those of others."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from typing import Any

import torch

from attractor.heads.capture.calls import Call, calls_of
from attractor.heads.capture.texts import Shown
from attractor.support.errors import InvalidInputError

PARTS = ("encoder", "decoder", "cross")


@dataclasses.dataclass(frozen=True)
class Run:
    """What of a model is run, and which of its calls count.

    Attributes:
        model: What is run.
        part: ``"encoder"``, ``"decoder"`` or ``"cross"``; ``"all"`` of a model without parts.
        decoder: Modules of the decoder; empty where it is not run, or there is none.
        start: The token that a decoder starts from.
    """

    model: torch.nn.Module
    part: str
    decoder: frozenset[torch.nn.Module]
    start: int

    @classmethod
    def of(cls, model: torch.nn.Module, shown: Shown, part: str | None) -> Run:
        """What is run of a model for a part; None for the encoder, or all where there is none.

        Layers that read what attention has made of a text are left out, where there are any.

        Raises:
            InvalidInputError: If the model has no such part.
        """
        base: Any = getattr(model, "base_model", model)
        if not (shown.arrays.keys() & _names(model)) <= _names(base):
            base = model  # which some have a module for that is no model itself
        configuration: Any = model.config
        if not getattr(configuration, "is_encoder_decoder", False):
            if part in ("encoder", "decoder"):
                raise InvalidInputError(
                    "part", f"{type(model).__name__} has no parts", "Leave it out, or give 'cross'"
                )
            return cls(base, part or "all", frozenset(), 0)
        encoder = base.get_encoder()
        if part in (None, "encoder"):
            return cls(encoder, "encoder", frozenset(), 0)
        start = getattr(configuration, "decoder_start_token_id", None)
        start = getattr(configuration, "pad_token_id", None) if start is None else start
        decoder = frozenset(base.modules()) - frozenset(encoder.modules())
        return cls(base, part, decoder, start or 0)

    def arguments(self, shown: Shown, rows: Sequence[int]) -> dict[str, Any]:
        """Arguments of the model for some rows: what it is shown, as far as it takes that."""
        weight = next(self.model.parameters())
        found: dict[str, Any] = shown.batch(rows, weight.device, weight.dtype)
        if self.decoder and "input_ids" in found:
            late = found["input_ids"].roll(1, 1)
            late[:, 0] = self.start
            found.setdefault("decoder_input_ids", late)
        names = _names(self.model)
        found = {name: one for name, one in found.items() if name in names or "kwargs" in names}
        return found | ({"use_cache": False} if "use_cache" in names else {})

    def captures(self, call: Call, given: dict[str, Any]) -> bool:
        """Whether a call, in a run with some arguments, is one of the part."""
        if call.cross != (self.part == "cross"):
            return False
        if self.decoder and call.module not in self.decoder:
            return False
        tokens = given.get("decoder_input_ids" if self.decoder else "input_ids")
        if tokens is not None and call.query.shape[::2] != tokens.shape:
            return False
        return call.cross or call.query.shape[2] == call.key.shape[2]

    def calls(self, given: dict[str, Any]) -> tuple[list[Call], int]:
        """The calls of the part, and the number of all that there are.

        Those count that are on sequences as long as the first, where tokens do not say how long.
        """
        every: list[Call] = []
        with calls_of(self.model, every.append):
            self.model(**given)
        own = [call for call in every if self.captures(call, given)]
        sizes = [call.allowed.shape[2:] for call in own]
        return [one for one, size in zip(own, sizes, strict=True) if size == sizes[0]], len(every)

    def moved(self, given: dict[str, Any], own: Sequence[Call], by: int) -> list[Call]:
        """The calls on the same sequence where every position is larger.

        The calls themselves where the model takes no positions, or fails on those.
        """
        argument = "decoder_position_ids" if self.part == "decoder" else "position_ids"
        if argument not in _names(self.model):
            return list(own)
        query = own[0].query
        here = given.get(argument, torch.arange(query.shape[2], device=query.device)[None])
        try:
            found, _ = self.calls({**given, argument: here + by})
        except Exception:  # of a model that reads positions otherwise
            return list(own)
        return found if len(found) == len(own) else list(own)


def _names(model: torch.nn.Module) -> set[str]:
    """The names of a model's arguments."""
    return set(inspect.signature(model.forward).parameters)
