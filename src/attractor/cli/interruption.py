"""Ctrl-C and SIGTERM: what they do, from the first moment of a command to its last.

While a command works they raise an exception once, so that what is half-written is removed on the
way out. Before and after, while it imports a module, and the second time, they end the process at
once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from attractor.cli import answer

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""The signals that are handled."""
_CODE = 128
"""Added to the number of a signal to give an exit code, as shells do."""

_working = False
"""Whether a command works, and can clean up after itself."""
_received: signal.Signals | None = None
"""The first signal that came while it did."""


class Terminated(KeyboardInterrupt):
    """SIGTERM; like Ctrl-C, it is no error that libraries may handle."""


def take_charge() -> None:
    """Handles the signals from here on; those that the process is to ignore stay ignored."""
    for number in WORDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _handle)
    if os.name != "nt":
        sys.unraisablehook = _repeat_if_swallowed


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Lets signals raise inside the block, where this process is in charge of them."""
    global _working
    before, _working = _working, True
    try:
        yield
    finally:
        _working = before


def is_working() -> bool:
    """Whether a command works already, which then has called another one."""
    return _working


def behind(error: BaseException) -> signal.Signals | None:
    """The signal that an exception comes from, be it by way of a library; None for no signal."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT
    return _received


def exit_code() -> int | None:
    """The exit code for a signal that came while a command worked; None for no signal."""
    return None if _received is None else _CODE + _received


def _handle(number: int, frame: FrameType | None) -> None:
    global _received
    came = signal.Signals(number)
    if _working and _received is None and not _is_importing(frame):
        _received = came
        raise KeyboardInterrupt if came == signal.SIGINT else Terminated
    if "attractor.support.storage" in sys.modules:
        sys.modules["attractor.support.storage"].discard_unfinished()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        os.write(2, f"error: {WORDS[came]}\n".encode())
        if "--json" in sys.argv and not answer.printed:
            command = sys.argv[1] if sys.argv[1] != "--json" else None
            ended = answer.answer_line(command, _CODE + came, answer.failure(WORDS[came]))
            os.write(1, ended.encode())
    os._exit(_CODE + came)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: compiled ones abort the process on an exception."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _repeat_if_swallowed(unraisable: Any) -> None:
    """Sends a signal again whose exception came where none can be raised, in a callback of JAX."""
    global _received
    if _received is None or not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    again, _received = _received, None
    repeat = threading.Timer(0.01, os.kill, (os.getpid(), again))
    repeat.daemon = True
    repeat.start()
