"""What the heads of attention modules see on a batch, in a pass over a model that is watched."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

import jax
import numpy as np
import torch
from jaxtyping import Bool, Float

from attractor.geometry.loading import raised_by_user
from attractor.heads import CaptureStatus, Projections
from attractor.heads.capture.calls import Call, calls_of, in_evaluation
from attractor.heads.capture.frame import SHIFT, UNROTATED, Frame, frame_of
from attractor.heads.capture.parts import frame_without_rotations
from attractor.heads.capture.projections import agreement, watching
from attractor.heads.captured.rows import coordinates
from attractor.support.errors import InvalidInputError, NotFiniteError
from attractor.support.precision import check_shape

Multihead = torch.nn.MultiheadAttention
"""PyTorch's own attention module."""


@dataclasses.dataclass(frozen=True, eq=False)
class ModuleRows:
    """Keys and queries of all heads of a module: scores are ``k^T q`` up to a constant of a query.

    Attributes:
        keys: Keys, ``(sequences, key_heads, tokens, width)``.
        queries: Queries, any scale of the scores included, ``(sequences, heads, rows, width)``.
        allowed: Tokens that a query may attend to, ``(sequences, heads or 1, rows, tokens)``.
        rows: False where a query is padding, ``(sequences, rows)``.
        projections: The matrices that made them; None where they are not known.
        status: Whether these scores are those of the module's own attention, for every head.
    """

    keys: Float[np.ndarray, "n key_heads T width"]
    queries: Float[np.ndarray, "n heads K width"]
    allowed: Bool[np.ndarray, "n 1 K T"]
    rows: Bool[np.ndarray, "n K"]
    projections: Projections | None
    status: tuple[CaptureStatus, ...]

    def head(
        self, head: int, rows: Bool[np.ndarray, "n K"]
    ) -> tuple[tuple[Any, ...], Float[np.ndarray, "d e"]]:
        """What a head sees under some queries, as ``Tokens`` takes it, and its matrix."""
        shared = head * self.keys.shape[1] // len(self.status)
        keys, queries, left, right = coordinates(
            self.keys[:, shared], self.queries[:, head], self.projections, head, shared
        )
        mask = self.allowed[:, head if self.allowed.shape[1] > 1 else 0]
        return (keys, queries, mask, rows), left.T @ right


def multihead_rows(module: Multihead, given: Mapping[str, Any]) -> ModuleRows:
    """What the heads of PyTorch's attention see.

    A bias of keys adds the same to all scores of a query, and is left out. Where there are tokens
    beside those given, the learned one of ``add_bias_kv`` or the zero of ``add_zero_attn``, it
    does not, and what a key is made of has two entries more: keys are ``[K, c, k] (x, 1, 0)``,
    the learned token is ``(0, 0, 1)``, and zero is zero.

    Args:
        module: The module.
        given: The arguments it was called with, by name.

    Raises:
        InvalidInputError: If a mask adds numbers to scores.
        NotFiniteError: If weights are not finite.
    """
    batched = given["query"].ndim == 3
    axes = (lambda one: one[None]) if not batched else (lambda one: one)
    if batched and not module.batch_first:
        axes = functools.partial(torch.transpose, dim0=0, dim1=1)
    z, x = (_exact(axes(given[name])) for name in ("query", "key"))
    heads, width = module.num_heads, module.head_dim
    if module.in_proj_weight is not None:
        Q, K, _ = _exact(module.in_proj_weight).reshape(3, heads, width, -1)
    else:
        Q = _exact(module.q_proj_weight).reshape(heads, width, -1)
        K = _exact(module.k_proj_weight).reshape(heads, width, -1)
    biases = module.in_proj_bias
    b = c = np.zeros((heads, width))
    if biases is not None:
        b, c, _ = _exact(biases).reshape(3, heads, width)
    allowed = _multihead_allowed(module, given, batched, (len(x), z.shape[1], x.shape[1]))
    extra = (module.bias_k is not None) + module.add_zero_attn
    if extra:
        learned = np.zeros((heads, width))
        if module.bias_k is not None:
            learned = _exact(module.bias_k).reshape(heads, width)
        K = np.concatenate([K, c[..., None], learned[..., None]], -1)
        x = np.pad(x, ((0, 0), (0, extra), (0, 2)))
        x[:, :-extra, -2] = 1.0
        x[:, -extra, -1] = module.bias_k is not None
        allowed = np.pad(allowed, ((0, 0), (0, 0), (0, 0), (0, extra)), constant_values=True)
    scale = 1 / math.sqrt(width)
    queries = np.einsum("hwe,nke->nhkw", Q, z) + b[:, None]
    padding = given.get("key_padding_mask")
    rows = np.ones(z.shape[:2], dtype=bool)
    if padding is not None and given["query"] is given["key"]:
        rows = ~_forbidden("key_padding_mask", padding).reshape(rows.shape)
    return ModuleRows(
        np.einsum("hwd,ntd->nhtw", K, x),
        scale * queries,
        allowed,
        rows,
        Projections(scale * Q, None if biases is None else scale * b, K),
        (CaptureStatus.BILINEAR,) * heads,
    )


def _multihead_allowed(
    module: Multihead, given: Mapping[str, Any], batched: bool, shape: tuple[int, int, int]
) -> Bool[np.ndarray, "n heads K T"]:
    """What the masks of a call let queries attend to."""
    n, K, T = shape
    allowed = np.ones((n, 1, K, T), dtype=bool)
    if given.get("attn_mask") is not None:
        forbidden = _forbidden("attn_mask", given["attn_mask"])
        if forbidden.ndim == 3:
            forbidden = forbidden.reshape(n, module.num_heads, K, T)
        allowed = allowed & ~forbidden
    if given.get("key_padding_mask") is not None:
        padding = _forbidden("key_padding_mask", given["key_padding_mask"])
        allowed = allowed & ~padding.reshape(n, 1, 1, T)
    return allowed


def _forbidden(name: str, mask: torch.Tensor) -> Bool[np.ndarray, "..."]:
    """What a mask forbids: True, or minus infinity."""
    array = mask.detach().cpu()
    if not array.is_floating_point():
        return array.bool().numpy()
    if bool(((array != 0) & (array > torch.finfo(array.dtype).min / 2)).any()):
        raise InvalidInputError(
            name,
            "it adds numbers to scores: no matrix stands for such heads",
            "Watch modules whose masks allow or forbid",
        )
    return (array != 0).numpy()


def _exact(tensor: torch.Tensor) -> Float[np.ndarray, "..."]:
    return tensor.detach().double().cpu().numpy()


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


_passes: weakref.WeakValueDictionary[Any, ModulePass] = weakref.WeakValueDictionary()
"""The pass of each function that runs a model, as long as a head is read by it."""


_Rows: TypeAlias = ModuleRows | RotatedRows | InvalidInputError
"""What a module saw, or why that cannot be said."""


class ModulePass:
    """Runs a model as the user says, and returns what its attention modules saw.

    The model is in evaluation mode without gradients and without autocast meanwhile.

    Attributes:
        run: From the training state to anything: it runs the model on the probe batch.
        modules: The modules to watch.
    """

    def __init__(self, run: Callable[[Any], Any]) -> None:
        """Starts without a module."""
        self.run = run
        self.modules: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._known: weakref.WeakKeyDictionary[torch.nn.Module, Known] = weakref.WeakKeyDictionary()

    def __call__(self, state: Any) -> Reading:
        """What every module saw."""
        others = [one for one in self.modules if not isinstance(one, Multihead)]
        held = [one for one in jax.tree.leaves(state) if isinstance(one, torch.nn.Module)]
        root = state if held == [state] else torch.nn.ModuleList([*held, *self.modules])
        noted: dict[torch.nn.Module, list[dict[str, Any]]] = {one: [] for one in self.modules}
        with in_evaluation(root), torch.no_grad(), _plain_computing(self.modules):
            with _noting(noted):
                # Masks for attention that is told of them, whatever the model computes it with.
                with calls_of(root, lambda call: None) if others else contextlib.nullcontext():
                    self.run(state)
            found = {module: self._rows(root, module, calls) for module, calls in noted.items()}
        return Reading(found)

    def _rows(self, root: torch.nn.Module, module: torch.nn.Module, calls: list[Any]) -> _Rows:
        """What a module saw, or why that cannot be said."""
        if len(calls) != 1:
            return InvalidInputError(
                "run",
                f"it called {type(module).__name__} {len(calls)} times",
                "Let it run the model itself, not a compiled one, once, on one batch",
            )
        try:
            if isinstance(module, Multihead):
                return multihead_rows(module, calls[0])
            return transformers_rows(root, module, calls[0], self._known)
        except InvalidInputError as error:
            return error
        except Exception as error:  # of one that is no longer what it was; others may well be
            return raised_by_user("module", type(module).__name__, error)


class Reading:
    """What modules saw in one pass; every head of them is put together once."""

    def __init__(self, rows: dict[torch.nn.Module, _Rows]) -> None:
        """Starts without a head."""
        self._rows = rows
        self._heads: dict[tuple[torch.nn.Module, int, int], Any] = {}

    def head(
        self, module: torch.nn.Module, head: int, rows: Any
    ) -> tuple[tuple[Any, ...] | None, Float[np.ndarray, "d e"] | None]:
        """What a head sees, as ``Tokens`` takes it, and its matrix; None where not finite.

        Args:
            module: The module.
            head: The number of the head.
            rows: The queries to look at, ``(sequences, queries)``; None for all but padding.

        Raises:
            InvalidInputError: If the module was not called once, there is no such head, it is not
                bilinear, or the queries do not fit.
        """
        key = module, head, id(rows)
        if key not in self._heads:
            self._heads[key] = self._head(self._rows[module], head, rows)
        return self._heads[key]

    def _head(self, found: _Rows, head: int, rows: Any) -> Any:
        if isinstance(found, NotFiniteError):
            return None, None
        if isinstance(found, InvalidInputError):
            raise found
        heads = len(found.status)
        if head >= heads:
            raise InvalidInputError(
                "head", f"the module has {heads} heads, and no {head}", f"Give 0 to {heads - 1}"
            )
        status = found.status[head]
        if status is not CaptureStatus.BILINEAR:
            raise InvalidInputError(
                "head",
                f"head {head} is {status}, {status.message}: no matrix stands for it",
                "Watch others, if there are any",
            )
        chosen = found.rows
        if rows is not None:
            check_shape("rows", rows.shape, chosen.shape)
            chosen = chosen & rows
        if not chosen.any():
            raise InvalidInputError("rows", "all queries are padding", "Let at least one count")
        return found.head(head, chosen)


def pass_of(run: Callable[[Any], Any], module: torch.nn.Module) -> tuple[ModulePass, Any]:
    """The pass of a function, which watches a module from now on, and the module that attends.

    Args:
        run: The function; what is given the same one shares a pass.
        module: An attention module, or one that has a single one of PyTorch inside.

    Raises:
        InvalidInputError: If it is no module, or has several inside.
    """
    if not isinstance(module, torch.nn.Module):
        raise InvalidInputError(
            "module",
            f"it is of type {type(module).__name__}",
            "Give a torch.nn.MultiheadAttention, or an attention module of transformers",
        )
    inside = [one for one in module.modules() if isinstance(one, Multihead)]
    if len(inside) > 1:
        raise InvalidInputError(
            "module", f"it has {len(inside)} attention modules inside", "Give one of them"
        )
    found = _passes.get(run) if isinstance(run, Hashable) else None
    if found is None:
        found = ModulePass(run)
        if isinstance(run, Hashable):
            _passes[run] = found
    attending = inside[0] if inside else module
    found.modules.add(attending)
    return found, attending


@contextlib.contextmanager
def _noting(noted: dict[torch.nn.Module, list[dict[str, Any]]]) -> Iterator[None]:
    """Notes the arguments that modules are called with, by name."""

    def note(module: torch.nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        names = inspect.signature(module.forward).bind_partial(*given, **named).arguments
        noted[module].append(names)

    handles = []
    try:
        for one in noted:
            handles.append(one.register_forward_pre_hook(note, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def _plain_computing(modules: Iterable[torch.nn.Module]) -> Iterator[None]:
    """Lets PyTorch's encoder call its attention module, and computes in the model's precision."""
    fast = torch.backends.mha.get_fastpath_enabled()
    kinds = {weight.device.type for module in modules for weight in module.parameters()}
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        with contextlib.ExitStack() as stack:
            for kind in kinds:
                stack.enter_context(torch.autocast(kind, enabled=False))
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
