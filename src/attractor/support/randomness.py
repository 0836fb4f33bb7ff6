"""Every random number comes from a key named by (seed, instance, purpose, step).

Two computations that share those four numbers share their randomness, whatever else runs beside
them: trial 37 run alone draws what trial 37 of 100 draws.

Keys are those of JAX's default generator, Threefry-2x32 (Salmon, Moraes, Dror and Shaw 2011), and
so are uniform numbers. NumPy computes them: XLA would compile the twenty rounds for half a second,
anew for every shape.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import math
import random
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Int, UInt32

from attractor.support.checks import shown
from attractor.support.errors import InvalidInputError

if TYPE_CHECKING:
    import jax

_Function = TypeVar("_Function", bound=Callable[..., Any])


def key(seed: int, instance: int, purpose: str, step: int = 0) -> jax.Array:
    """Returns the JAX key that belongs to a seed, an instance, a purpose and a step.

    Args:
        seed: The user's seed.
        instance: The number of the data set.
        purpose: What the numbers are for, such as ``"initial weights"``.
        step: The training step, where randomness is drawn anew each step.

    Returns:
        A typed scalar key.

    Raises:
        InvalidInputError: If the seed is not an integer in [0, 2^63).
    """
    return keys(np.array([check_seed("seed", seed)]), np.array([instance]), purpose, step)[0]


def keys(
    seeds: Int[np.ndarray, "trial"],
    instances: Int[np.ndarray, "trial"],
    purpose: str,
    step: int = 0,
) -> jax.Array:
    """Returns the keys of many trials at once, each the one ``key`` gives."""
    import jax

    data = jax.numpy.asarray(key_data(seeds, instances, purpose, step))
    return jax.random.wrap_key_data(data, impl="threefry2x32")


def key_data(
    seeds: Int[np.ndarray, "trial"],
    instances: Int[np.ndarray, "trial"],
    purpose: str,
    step: int = 0,
) -> UInt32[np.ndarray, "trial 2"]:
    """Returns the numbers that make up the keys of many trials.

    They are those of ``fold_in(fold_in(fold_in(key(seed), instance), purpose), step)`` in
    ``jax.random``, with the purpose as its CRC-32.
    """
    words = _halves(np.asarray(seeds))
    for number in (instances, zlib.crc32(purpose.encode()), step):
        words = fold_in(words, number)
    return np.stack(words, axis=-1)


Words = tuple[UInt32[np.ndarray, "..."] | np.uint32, UInt32[np.ndarray, "..."] | np.uint32]


def fold_in(words: Words, number: Int[np.ndarray, "..."] | int) -> Words:
    """The two words of a key that belongs to a key and a number, as ``jax.random.fold_in``."""
    return _threefry(words, _halves(np.asarray(number) & 0xFFFFFFFF))


def unit_interval(words: Words, shape: tuple[int, ...]) -> Float[np.ndarray, "*trials *shape"]:
    """Uniform numbers on [0, 1) of every key, those of ``jax.random.uniform`` in float64."""
    first, second = (np.expand_dims(word, -1) for word in words)
    bits = _threefry((first, second), _halves(np.arange(math.prod(shape))))
    mantissa = (bits[0].astype(np.uint64) << 32 | bits[1]) >> 12
    numbers = (mantissa | np.float64(1).view(np.uint64)).view(np.float64) - 1
    return numbers.reshape(*words[0].shape, *shape)


def _halves(number: Int[np.ndarray, "..."] | np.integer) -> Words:
    return (number >> 32).astype(np.uint32), (number & 0xFFFFFFFF).astype(np.uint32)


def _threefry(key: Words, block: Words) -> Words:
    """Threefry-2x32 with 20 rounds."""
    schedule = (*key, key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    with np.errstate(over="ignore"):  # sums are modulo 2^32
        x, y = block[0] + schedule[0], block[1] + schedule[1]
        for group in range(1, 6):
            for rotation in ((17, 29, 16, 24), (13, 15, 26, 6))[group % 2]:
                x = x + y
                y = x ^ (y << rotation | y >> 32 - rotation)
            x, y = x + schedule[group % 3], y + schedule[(group + 1) % 3] + np.uint32(group)
    return x, y


def generator(seed: int, *numbers: int, purpose: str) -> np.random.Generator:
    """Returns the NumPy generator that belongs to a seed, some numbers and a purpose."""
    entropy = [check_seed("seed", seed), zlib.crc32(purpose.encode()), *numbers]
    return np.random.default_rng(entropy)


_TRACED = "what JAX traces"
_shared: Any = np.random
"""The functions of NumPy that draw from one generator for all, whose types NumPy leaves out."""
_turn: contextvars.ContextVar[threading.Lock] = contextvars.ContextVar(
    "turn",
    default=threading.Lock(),  # noqa: B039 - one for all threads
)
"""Held by the block of ``seeded`` that a thread is in turn to enter."""


@contextlib.contextmanager
def seeded(*numbers: int, purpose: str, alone: bool = True) -> Iterator[Callable[..., None]]:
    """Code of a user's, whose random numbers follow from ours, and change none of the user's.

    Such code may draw from the generators that a whole process shares: those of ``random``, of
    ``np.random`` and of PyTorch, where that is loaded. In the block they are seeded by numbers and
    a purpose. Afterwards they are as they were, whatever was raised.

    Threads share them too, so that one waits for the block of another. Inside of a block, threads
    that work under its settings (``attractor.support.threads``) take turns among themselves.

    Args:
        numbers: A seed and whatever else tells the numbers from others, such as an instance.
        purpose: What they are for.
        alone: Whether threads wait for each other. Code that starts threads of its own, which come
            here again, would wait for ever, so that it is not alone.

    Yields:
        A function of further numbers that seeds the generators anew inside the block.
    """

    def seed(*further: int) -> None:
        named = repr((purpose, *map(int, numbers), *map(int, further))).encode()
        _seed(hashlib.blake2b(named, digest_size=16).digest())

    turn = _turn.get() if alone else contextlib.nullcontext()
    with turn, contextlib.ExitStack() as stack:
        inside = _turn.set(threading.Lock()) if alone else None
        try:
            _restored(stack)
            seed()
            yield seed
        finally:
            stack.close()
            if inside is not None:
                _turn.reset(inside)


def traced(function: _Function) -> _Function:
    """A function that JAX traces, in which code of a user's is called.

    What such code draws becomes part of a program, which trials of every seed share: it depends on
    no seed, and not on what was drawn before.
    """
    return seeded(purpose=_TRACED)(function)


def _restored(stack: contextlib.ExitStack) -> None:
    """Has a stack put back the generators of the process as they are now."""
    stack.callback(random.setstate, random.getstate())
    bits, state = _shared.get_bit_generator(), _shared.get_state(legacy=False)
    stack.callback(_shared.set_state, state)  # which has the second of two normal numbers
    stack.callback(_shared.set_bit_generator, bits)
    for generator in _of_torch():
        stack.callback(generator.set_state, generator.get_state())


def _seed(digest: bytes) -> None:
    """Seeds the generators of the process."""
    random.seed(int.from_bytes(digest, "little"))
    if not isinstance(_shared.get_bit_generator(), np.random.MT19937):  # others take no seeds
        _shared.set_bit_generator(np.random.MT19937(0))
    _shared.seed(np.frombuffer(digest, "<u4"))
    for generator in _of_torch():
        generator.manual_seed(int.from_bytes(digest[:7], "little"))


class _Generator(NamedTuple):
    """What seeds a generator, reads its state and sets it."""

    manual_seed: Callable[[int], Any]
    get_state: Callable[[], Any]
    set_state: Callable[[Any], Any]


def _of_torch() -> Iterator[Any]:
    """The generators of PyTorch for processors and for devices in use; none if it is not loaded.

    ``torch.manual_seed`` would also seed devices that nobody uses yet, once somebody does.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(getattr(torch, "random", None), "default_generator"):
        return  # in the midst of being imported it does not have all of its parts
    yield torch.random.default_generator
    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)
        if device is not None and device.is_initialized():
            yield _Generator(
                device.manual_seed_all, device.get_rng_state_all, device.set_rng_state_all
            )
    if torch.backends.mps.is_available():
        yield _Generator(torch.mps.manual_seed, torch.mps.get_rng_state, torch.mps.set_rng_state)


def random_rotation(generator: np.random.Generator, width: int) -> Float[np.ndarray, "width width"]:
    """An orthogonal matrix, uniformly at random (Haar's measure)."""
    if not width:
        return np.empty((0, 0))
    matrix, triangle = np.linalg.qr(generator.standard_normal((width, width)))
    return matrix * np.where(np.diag(triangle) < 0, -1.0, 1.0)


def check_seed(argument: str, seed: int) -> int:
    """Returns ``seed`` as a Python integer.

    Raises:
        InvalidInputError: If it is not an integer in [0, 2^63).
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InvalidInputError(argument, f"{seed!r} is not an integer", "Give an integer >= 0")
    if not 0 <= int(seed) < 2**63:
        raise InvalidInputError(argument, f"{seed} is out of range", "Give an integer in [0, 2^63)")
    return int(seed)


def check_key(argument: str, key: Any) -> jax.Array:
    """Checks that something is one key of JAX, of either style.

    Raises:
        InvalidInputError: If it is not.
    """
    import jax

    if isinstance(key, jax.Array):
        typed = jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) and key.ndim == 0
        if typed or (key.dtype == jax.numpy.uint32 and key.shape == (2,)):
            return key
    raise InvalidInputError(argument, f"{shown(key)} is no key", "Give one: jax.random.key(0)")
