"""Standard output and standard error that may be closed, full, left by their reader, or ASCII."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from attractor.support.errors import AttractorError

left = False
"""Whether the reader of standard output has gone, such as ``head`` does."""
failure: str | None = None
"""Why nothing more is printed to standard output; None while something is."""


class OutputError(AttractorError):
    """Standard output cannot be written to."""


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Has standard streams print what they can inside the block, and say once that they cannot."""
    global left, failure
    before = sys.stdin, sys.stdout, sys.stderr
    left, failure = False, None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # closed; what is opened next must not take its number
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))
            failure = "it is closed" if name == "stdout" else failure
        elif number and isinstance(stream, io.TextIOWrapper):
            if stream.errors == "strict":
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, _Stream(stream, is_output=name == "stdout"))
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


class _Stream:
    """A stream that fails at most once; standard error never does, as nothing could say so."""

    def __init__(self, stream: io.TextIOWrapper, *, is_output: bool) -> None:
        self._stream, self._is_output, self._lost = stream, is_output, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes text, if it can. Libraries write an empty text to see what a stream takes."""
        try:
            return len(text) if self._lost or text == "" else self._stream.write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        """Hands on what was written, if it can."""
        try:
            if not self._lost:
                self._stream.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        global left, failure
        self._lost = True
        # What was not written would be tried again when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        if self._is_output:
            left = isinstance(error, BrokenPipeError)
            failure = f"it cannot be written to ({error.strerror})"
            raise error if left else OutputError(f"standard output: {failure}") from None
