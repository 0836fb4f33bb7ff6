"""What a part of a model is, found by running it once: its layers, their frames, their tokens."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from types import CodeType
from typing import Any

import numpy as np
import torch

from attractor.heads.capture.calls import NAME, Call
from attractor.heads.capture.frame import SHIFT, UNROTATED, Frame, frame_of
from attractor.heads.capture.texts import Run, Shown, Table
from attractor.heads.inputs import listed_layers
from attractor.support.errors import AttractorError, InvalidInputError

_NUMBER = re.compile(r"(?:^|\.)(\d+)(?=\.|$)")
"""A place in a list of modules, in the name of one inside."""


def layer_numbers(model: torch.nn.Module, modules: Sequence[torch.nn.Module]) -> tuple[int, ...]:
    """The layer of each attention module: its place in the model's list of layers.

    In models of which some layers have no heads, these numbers have gaps. Where layers share a
    module, or are in no list, they are those of the calls.

    Args:
        model: The model.
        modules: Its modules that call attention, in the order of their calls.
    """
    names = {module: name for name, module in model.named_modules()}
    parts = [_NUMBER.split(names.get(one, "")) for one in modules]  # names and numbers in turn
    for place in range(1, min(map(len, parts)), 2):
        numbers = [int(one[place]) for one in parts]
        alike = len({tuple(one[:place]) for one in parts}) == 1
        if alike and all(one < other for one, other in itertools.pairwise(numbers)):
            return tuple(numbers)
    return tuple(range(len(modules)))


_ROTATING = re.compile(r"[Rr]otary|RoPE|Rope(?![a-z])|(^|_)(rope|rotate)(_|$)")
"""Names of modules, functions and arguments by which rotations are known."""
_GIVEN = "position_embeddings"
"""The argument in which most models hand rotations to their attention."""


def rotates(call: Call) -> bool:
    """Whether the module of a call rotates keys and queries in a way that the call does not say.

    It does if a module inside of it rotates, or its code names something that does. What the rest
    of its file holds says nothing: Jamba's has a function that nobody calls. A module that takes
    rotations as an argument, and was given none, does not.

    Args:
        call: A call that was given no cosines and sines.
    """
    kind = type(call.module)
    if any(_ROTATING.search(type(one).__name__) for one in list(call.module.modules())[1:]):
        return True
    takes = set(inspect.signature(kind.forward).parameters)
    if _GIVEN in takes and not call.positioned:
        return any(map(_ROTATING.search, takes))
    return any(map(_ROTATING.search, _names(kind)))


@functools.cache
def _names(kind: type[torch.nn.Module]) -> frozenset[str]:
    """All names in the forward pass of a class, and in the functions that it names."""
    found: set[str] = set()
    ahead: list[Any] = [kind.forward]
    while ahead:
        function = inspect.unwrap(ahead.pop())
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        ahead += [one for one in cells if _is_own(one) and one.__name__ not in found]
        for name in _of_code(function.__code__) - found:
            found.add(name)
            named = getattr(kind, name, None), function.__globals__.get(name)
            ahead += [one for one in named if _is_own(one)]
    return frozenset(found)


def _of_code(code: CodeType) -> set[str]:
    inside = (_of_code(one) for one in code.co_consts if isinstance(one, CodeType))
    return {*code.co_names}.union(*inside)


def _is_own(one: Any) -> bool:
    """Whether something is a function of a model's, and not of PyTorch."""
    return inspect.isfunction(one) and one.__module__.partition(".")[0] != "torch"


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a model, and what its queries and keys are the tokens of.

    Attributes:
        run: How it is run.
        numbers: The number of the layer of every call, as the model itself numbers layers.
        frames: The frame of every call; None where it is unknown.
        layers: The layers that are captured.
        keys: The tokens that are keys.
        queries: The tokens that are queries.
        modules: The modules that call attention in these layers.
        bytes: Bytes of a query in all layers, without and with values.
        projection_bytes: Bytes that the matrices of all layers take at most.
        origin: What is known of the model.
    """

    run: Run
    numbers: tuple[int, ...]
    frames: tuple[Frame | None, ...]
    layers: tuple[int, ...]
    keys: Table
    queries: Table
    modules: tuple[torch.nn.Module, ...]
    bytes: tuple[int, int]
    projection_bytes: int
    origin: dict[str, str]


def part_of(
    model: torch.nn.Module,
    shown: Shown,
    part: str | None,
    sink_positions: int | None,
    layers: Sequence[int] | None,
) -> Part:
    """Runs a model on the longest text, to see what its attention is.

    Args:
        model: The model.
        shown: What it is shown.
        part: The part; None for the encoder, or all where there is none.
        sink_positions: First positions that are no content; None for 1 in causal attention.
        layers: The layers to capture; None for all.

    Raises:
        InvalidInputError: If there is no such part or layer, the model cannot be run, or calls no
            attention that can be seen.
    """
    run, kind = Run.of(model, shown, part), type(model).__name__
    given = run.arguments(shown, [shown.longest])
    try:
        own, called = run.calls(given)
    except AttractorError:
        raise
    except Exception as error:  # of the model: whatever it likes
        if error.args != (NAME,):  # which a table of attentions of its own does not have
            raise InvalidInputError(
                "model",
                f"{kind} raised {type(error).__name__}: {' '.join(str(error).split())[:300]}",
                "Try it alone on one text first",
            ) from error
        own, called = [], 0
    if not own:
        raise InvalidInputError(
            "model",
            f"{kind} called attention {called} times through transformers' interface, and never "
            "as heads on the tokens of a text",
            "Its heads cannot be seen; give keys and queries to Captured.from_arrays",
        )
    numbers = layer_numbers(run.model, [call.module for call in own])
    wanted = numbers if layers is None else sorted(set(layers))
    for number in wanted:
        if number not in numbers:
            gap = number < numbers[-1]
            what = (
                f"layer {number} has no attention heads" if gap else f"there is no layer {number}"
            )
            raise InvalidInputError("layers", what, f"Give some of {listed_layers(numbers)}")
    causal = run.part != "cross" and not bool(own[0].allowed.triu(1).any())
    sinks = int(causal) if sink_positions is None else sink_positions
    keys, queries = _tables(run, shown, own[0], sinks)
    frames = _frames(run, own, given)
    words = ["none" if one == UNROTATED else "query" if one else "unknown" for one in frames]
    origin = {
        "model": kind,
        "part": run.part,
        "layers": json.dumps(numbers),
        "frame": json.dumps(words),
        "causal": json.dumps(causal),
        "sink_positions": str(sinks),
        "transformers": version("transformers"),
        "torch": str(torch.__version__),
    }
    seen = [call for number, call in zip(numbers, own, strict=True) if number in wanted]
    modules = tuple(call.module for call in seen)
    size = _bytes(seen, keys.token.shape[1])
    weights = sum(one.nbytes for module in modules for one in module.parameters())
    return Part(run, numbers, frames, tuple(wanted), keys, queries, modules, size, weights, origin)


def _frames(run: Run, own: list[Call], given: dict[str, object]) -> tuple[Frame | None, ...]:
    """The frame of every call; a model that rotates is run again on a text that is moved."""
    moved = run.moved(given, own, SHIFT) if any(call.rotary for call in own) else own
    return tuple(
        frame_of(call, other) if call.rotary else frame_without_rotations(call)
        for call, other in zip(own, moved, strict=True)
    )


def frame_without_rotations(call: Call) -> Frame | None:
    """The frame of a call that was given no cosines and sines; None where it rotates all the same.

    Args:
        call: The call.
    """
    return UNROTATED if call.cross or not rotates(call) else None


def _tables(run: Run, shown: Shown, call: Call, sinks: int) -> tuple[Table, Table]:
    """The tokens that are keys, and those that are queries, in a part."""

    def table(of: Table | None, size: int) -> Table:
        if of is None or of.token.shape[1] != size:  # such as patches of a picture
            names = np.arange(size).astype(str).astype(object)
            none = np.zeros((len(shown), size), dtype=bool)
            of = Table(np.tile(names, (len(shown), 1)), none, none)
        return of

    keys = table(shown.decoder if run.part == "decoder" else shown.tokens, call.key.shape[2])
    queries = table(shown.decoder if run.decoder else shown.tokens, call.query.shape[2])
    if run.part == "cross":
        return keys.with_sinks(sinks), queries
    return keys.with_sinks(sinks), queries.with_sinks(sinks)


def _bytes(layers: Sequence[Call], tokens: int) -> tuple[int, int]:
    """Bytes that the layers take of a query, without and with values."""
    without = values = 0
    for call in layers:
        heads, width = call.query.shape[1], call.query.shape[-1]
        key_heads, value_width = call.key.shape[1], call.value.shape[-1]
        size = call.key.element_size()
        without += size * (heads * (width + tokens) + key_heads * tokens * width) + tokens
        values += size * key_heads * tokens * value_width
    return without, without + values
