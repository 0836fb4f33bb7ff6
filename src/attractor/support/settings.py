"""The settings of NumPy and JAX that the library computes in, whatever the user's are.

Some are there to find faults in code of one's own: NumPy raises where a number becomes too small,
JAX refuses to broadcast. They would end this library's work in the midst of it, and others would
change its numbers. So public functions run in settings of their own, which belong to the thread and
end with the call.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

_OF_JAX: dict[str, Any] = {
    "jax_debug_infs": False,
    "jax_debug_nans": False,
    "jax_default_matmul_precision": None,
    "jax_default_prng_impl": "threefry2x32",
    "jax_disable_jit": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_threefry_partitionable": True,
    "jax_transfer_guard_device_to_device": "allow",
    "jax_transfer_guard_device_to_host": "allow",
    "jax_transfer_guard_host_to_device": "allow",
}
"""Settings of JAX that results and work depend on, each with the value they need."""


_MARK = "in_own_settings"
"""An attribute of functions that run in the library's own settings."""


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """Has the library's own settings hold inside the block; those of JAX where it is loaded."""
    import numpy as np

    jax: Any = sys.modules.get("jax")
    # Another thread may be in the midst of importing it.
    of_jax = settings_of_jax(jax) if hasattr(jax, "vmap") else contextlib.nullcontext()
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"), of_jax:
        yield


def with_own_settings(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, in the library's own settings."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with own_settings():
            return function(*arguments, **named)

    setattr(call, _MARK, True)
    return call


def public_in_own_settings(public: Any) -> Any:
    """A public name, whose functions run in the library's own settings.

    A class of plain Python keeps its place, and its public methods run so; those of optimizers,
    which are tuples, are traced with a program, and so run in the settings of what traces it. A
    function takes the other's place in its module, too, so that it can be pickled.
    """
    plain = type(public) in (type, ABCMeta) and not issubclass(public, tuple)
    if plain and public.__module__.startswith("attractor."):
        methods: dict[str, Any] = dict(vars(public))
        for name, method in methods.items():
            if isinstance(method, classmethod) and _is_open(name, method.__func__):
                setattr(public, name, classmethod(with_own_settings(method.__func__)))
            elif _is_open(name, method):
                setattr(public, name, with_own_settings(method))
    if not _is_open("", public) or not public.__module__.startswith("attractor."):
        return public
    call = with_own_settings(public)
    module = sys.modules[public.__module__]
    if getattr(module, public.__name__, None) is public:
        setattr(module, public.__name__, call)
    return call


def _is_open(name: str, value: Any) -> bool:
    """Whether a name stands for a public function that runs in whatever settings hold."""
    function = isinstance(value, FunctionType) and not name.startswith("_")
    return function and not hasattr(value, _MARK)


def all_in_own_settings(package: str) -> None:
    """Has what a package lists in ``__all__`` run in the library's own settings."""
    names = vars(sys.modules[package])
    names.update({name: public_in_own_settings(names[name]) for name in names["__all__"]})


def settings_of_jax(jax: ModuleType) -> contextlib.AbstractContextManager[Any]:
    """The library's own settings of JAX, to hold inside a block."""
    config, together = jax.config, contextlib.ExitStack()
    for name, needed in _OF_JAX.items():
        if getattr(config, name, None) not in (None, needed):
            setter = getattr(jax, name.removeprefix("jax_"))
            together.enter_context(setter(needed))
    return together
