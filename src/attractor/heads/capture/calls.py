"""Every call of attention in a model of transformers, seen as it happens.

One attention function and one mask function are registered under a name of ours, and the model is
switched to it for a while. The function computes nothing itself: it calls the eager attention of
the file that the module's class comes from, so that soft caps, learned sinks and biases are the
model's own and its outputs are bit for bit those of eager attention.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from attractor.support.errors import AttractorError, InvalidInputError
from attractor.support.randomness import seeded

DRAWN = "a model that is looked at"
"""What a model draws for, which by itself it seldom does in evaluation mode."""
NAME = "attractor_capture"
"""The name under which attention is registered."""
_CROSS = ("key_value_states", "encoder_hidden_states", "cross_attention_states")
"""Arguments of attention modules that hold what another sequence says."""
_ROTARY = "position_embeddings"
_NOTED = (_ROTARY, *_CROSS)
_lock = threading.Lock()
"""Held during a capture: a model is switched as a whole, and two would see the calls of both."""
_receiver: _Receiver | None = None


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of attention.

    Attributes:
        module: The module that called.
        query: Queries, ``(batch, heads, queries, width)``.
        key: Keys, ``(batch, key_heads, tokens, width)``.
        value: Values, ``(batch, key_heads, tokens, value_width)``.
        allowed: What the mask lets each query attend to, ``(batch, heads or 1, queries, tokens)``.
        scaling: What products are multiplied by.
        soft_cap: The bound of scores: ``cap tanh(score / cap)``; None where there is none.
        weights: The attention, ``(batch, heads, queries, tokens)``; None where it was not seen.
        rotary: Cosines and sines that rotate keys and queries, ``(batch or 1, queries, width)``
            each; None where the module was given none.
        positioned: Whether it was given rotations at all, cosines and sines or others.
        cross: Whether the keys are those of another sequence.
        again: Computes the attention once more in double precision; None where it cannot.
    """

    module: torch.nn.Module
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    allowed: torch.Tensor
    scaling: float
    soft_cap: float | None
    weights: torch.Tensor | None
    rotary: tuple[torch.Tensor, torch.Tensor] | None
    positioned: bool
    cross: bool
    again: Callable[[], torch.Tensor | None]


@dataclasses.dataclass
class _Receiver:
    receive: Callable[[Call], None]
    thread: int
    arguments: dict[torch.nn.Module, Mapping[str, Any]]


@contextlib.contextmanager
def calls_of(model: torch.nn.Module, receive: Callable[[Call], None]) -> Iterator[None]:
    """Hands every call of attention of a model to a function, while the block runs it.

    In the block the model is in evaluation mode and has no gradients, and what it draws is the same
    every time. Afterwards, and after an exception, it is as it was, and so are random generators.

    Args:
        model: A model of transformers, or a part of one.
        receive: Called with each call, in their order.

    Raises:
        AttractorError: If another capture is under way in this process.
    """
    global _receiver
    if not _lock.acquire(blocking=False):
        raise AttractorError("Another capture of heads is under way: one can be at a time.")
    try:
        register()
        _receiver = _Receiver(receive, threading.get_ident(), {})
        with contextlib.ExitStack() as stack:
            stack.enter_context(seeded(purpose=DRAWN))
            stack.enter_context(_switched(model))
            stack.enter_context(in_evaluation(model))
            stack.enter_context(_noting_arguments(model))
            stack.enter_context(torch.no_grad())
            yield
    finally:
        _receiver = None
        _lock.release()


def module_function(module: torch.nn.Module, name: str) -> Callable[..., Any] | None:
    """The function of a name in the file that the class of a module comes from, or its bases do."""
    for kind in type(module).__mro__:
        found = getattr(sys.modules.get(kind.__module__), name, None)
        if callable(found):
            return found
    return None


def register() -> None:
    """Makes the attention of ours known to transformers.

    Raises:
        InvalidInputError: If transformers is not installed, or too old.
    """
    try:
        from transformers.masking_utils import AttentionMaskInterface, eager_mask
        from transformers.modeling_utils import AttentionInterface
    except ImportError:
        raise InvalidInputError(
            "model",
            "heads are captured through transformers, which is not installed or too old",
            'Install "attractor[transformers]"',
        ) from None
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, eager_mask)


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    **arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention as the model's own file computes it, seen by the receiver."""
    eager = module_function(module, "eager_attention_forward")
    if eager is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward as eager
    output, weights = eager(module, query, key, value, attention_mask, **arguments)
    if _receiver is not None and _receiver.thread == threading.get_ident():
        given = _receiver.arguments.get(module, {})
        scaling = arguments.get("scaling")
        if scaling is None:
            scaling = query.shape[-1] ** -0.5
        rotary = given.get(_ROTARY)
        _receiver.receive(
            Call(
                module,
                query,
                key,
                value,
                _allowed(attention_mask, query, key),
                scaling,
                arguments.get("softcap"),
                weights if _is_attention(weights, query, key) else None,
                rotary if _is_pair(rotary) else None,
                rotary is not None,
                any(given.get(name) is not None for name in _CROSS),
                functools.partial(
                    _again, eager, module, query, key, value, attention_mask, arguments
                ),
            )
        )
    return output, weights


def scores_of(
    queries: torch.Tensor, keys: torch.Tensor, scaling: float, soft_cap: float | None
) -> torch.Tensor:
    """Scores ``(rows, heads, queries, tokens)``, scaled and capped as a model has them.

    Args:
        queries: Queries, ``(rows, heads, queries, width)``.
        keys: Keys, ``(rows, key_heads, tokens, width)``.
        scaling: What products are multiplied by.
        soft_cap: The bound of scores; None where there is none.
    """
    keys = keys.repeat_interleave(queries.shape[1] // keys.shape[1], 1)
    scores = scaling * queries @ keys.transpose(-1, -2)
    return scores if soft_cap is None else soft_cap * torch.tanh(scores / soft_cap)


def _again(
    eager: Callable[..., Any],
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    arguments: dict[str, Any],
) -> torch.Tensor | None:
    """The attention of the model's own function in double precision, None where that fails.

    Many take their softmax in single precision all the same. So the largest score of each query is
    moved to zero by its mask, which changes no share of a token in what tokens get together.
    """
    if mask is not None and not mask.is_floating_point():
        return None
    scaling = arguments.get("scaling")
    try:
        query, key, value = query.double(), key.double(), value.double()
        factor = query.shape[-1] ** -0.5 if scaling is None else scaling
        scores = scores_of(query, key, factor, arguments.get("softcap"))
        hidden = ~_allowed(mask, query, key)
        largest = scores.masked_fill(hidden, -torch.inf).amax(-1, keepdim=True)
        added = scores.new_zeros(()) if mask is None else mask[..., : key.shape[-2]].double()
        moved = added - torch.where(largest.isfinite(), largest, 0.0)
        with torch.no_grad():
            weights = eager(module, query, key, value, moved, **arguments)[1]
    except Exception:  # of a function of the model's, or a device without double precision
        return None
    return weights if _is_attention(weights, query, key) else None


def _allowed(mask: torch.Tensor | None, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """What a mask allows: masked scores are lowered by the largest number, or by infinity."""
    batch, _, queries, _ = query.shape
    tokens = key.shape[-2]
    if mask is None:
        return query.new_ones((batch, 1, queries, tokens), dtype=torch.bool)
    allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    allowed = allowed[..., :tokens]
    return allowed.expand(batch, allowed.shape[1], queries, tokens)


def _is_attention(weights: Any, query: torch.Tensor, key: torch.Tensor) -> bool:
    wanted = (*query.shape[:-1], key.shape[-2])
    return isinstance(weights, torch.Tensor) and tuple(weights.shape) == wanted


def _is_pair(rotary: Any) -> bool:
    """Whether something is cosines and sines, as most models hand them to their attention."""
    return (
        isinstance(rotary, tuple | list)
        and len(rotary) == 2
        and all(isinstance(one, torch.Tensor) and one.is_floating_point() for one in rotary)
    )


@contextlib.contextmanager
def _switched(model: torch.nn.Module) -> Iterator[None]:
    """Lets every part of a model use the attention of ours."""
    configurations = {}
    for module in model.modules():
        found = getattr(module, "config", None)
        if hasattr(found, "_attn_implementation_internal"):
            configurations[id(found)] = found
    before = [(one, one._attn_implementation_internal) for one in configurations.values()]
    try:
        for configuration, _ in before:
            # The public setter warns of models that do not follow the interface, and of those
            # that do leaves out parts whose configuration is not listed.
            configuration._attn_implementation_internal = NAME
        yield
    finally:
        for configuration, implementation in before:
            configuration._attn_implementation_internal = implementation


@contextlib.contextmanager
def in_evaluation(model: torch.nn.Module) -> Iterator[None]:
    """A model in evaluation mode, and afterwards every module of it as it was."""
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True


@contextlib.contextmanager
def _noting_arguments(model: torch.nn.Module) -> Iterator[None]:
    """Notes what modules are given that attention functions do not see."""
    assert _receiver is not None
    noted = _receiver.arguments

    def note(module: torch.nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        every = dict(zip(_names(type(module)), given, strict=False)) | named
        noted[module] = {name: every[name] for name in _NOTED if name in every}

    handles = []
    try:
        for module in model.modules():
            if not {*_NOTED, "kwargs"}.isdisjoint(_names(type(module))):
                handles.append(module.register_forward_pre_hook(note, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


@functools.cache
def _names(kind: type[torch.nn.Module]) -> tuple[str, ...]:
    """The names of the arguments of modules of a class."""
    return tuple(inspect.signature(kind.forward).parameters)[1:]
