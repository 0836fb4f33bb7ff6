"""Reading packed files within a limit on what they hold."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from pathlib import Path

from attractor.support.errors import FileFormatError

DAMAGED = (EOFError, zlib.error, OSError)
"""What gzip raises for a file that is cut off or damaged."""


class Unpacked:
    """The content of a gzip file, as a stream that refuses to read past a limit."""

    def __init__(self, file: Path, most: int) -> None:
        self._file = file
        self._left = most
        self._most = most
        self._stream = gzip.open(file, "rb")

    def read(self, size: int) -> bytes:
        """Returns the next bytes, at most ``size``.

        Raises:
            FileFormatError: If the file holds more than it may, or is damaged.
        """
        try:
            content = self._stream.read(min(size, self._left + 1))
        except DAMAGED as error:
            raise FileFormatError(f"{self._file} is cut off or damaged ({error}).") from None
        self._left -= len(content)
        if self._left < 0:
            raise FileFormatError(
                f"{self._file} holds more than {self._most:,} bytes when unpacked: too many for "
                "what its name says."
            )
        return content

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()


def read_gzip(file: Path, most: int) -> bytes:
    """Returns the content of a gzip file, at most ``most`` bytes."""
    with contextlib.closing(Unpacked(file, most)) as stream:
        return stream.read(most + 1)
