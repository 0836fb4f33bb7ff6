"""Standard output and standard error that may be closed, full, left by their reader, or ASCII."""

from __future__ import annotations

import io
import os
import sys

from attractor.errors import AttractorError

left = False
"""Whether the reader of standard output has gone, such as ``head`` does."""
failure: str | None = None
"""Why nothing more is printed to standard output; None while something is."""


class OutputError(AttractorError):
    """Standard output cannot be written to."""


def prepare() -> None:
    """Puts streams in place that print what they can, and say once that they cannot."""
    global failure
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed; what is opened next must not take its number
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))
            failure = "it is closed" if name == "stdout" else failure
        elif number and isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            setattr(sys, name, _Stream(stream, what_it_is=name))


class _Stream(io.TextIOWrapper):
    """A stream that fails at most once; standard error never, as nothing could be said of it."""

    def __init__(self, stream: io.TextIOWrapper, what_it_is: str) -> None:
        errors = "backslashreplace" if stream.errors == "strict" else stream.errors
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors=errors,
            line_buffering=stream.line_buffering,
        )
        self._is_output, self._lost = what_it_is == "stdout", False

    def write(self, text: str) -> int:
        """Writes text, if it can."""
        try:
            return len(text) if self._lost else super().write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        """Hands on what was written, if it can."""
        try:
            if not self._lost:
                super().flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        global left, failure
        self._lost = True
        if self._is_output:
            left = isinstance(error, BrokenPipeError)
            failure = f"it cannot be written to ({error.strerror})"
            raise error if left else OutputError(f"standard output: {failure}") from None
