"""A pass over a model in which attention modules are watched."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeAlias

import jax
import numpy as np
import torch
from jaxtyping import Float

from attractor.geometry.loading import raised_by_user
from attractor.heads import CaptureStatus
from attractor.heads.capture.calls import calls_of, in_evaluation
from attractor.heads.modules.module_rows import ModuleRows, Multihead, multihead_rows
from attractor.heads.modules.transformers_rows import Known, RotatedRows, transformers_rows
from attractor.support.errors import InvalidInputError, NotFiniteError
from attractor.support.precision import check_shape

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
