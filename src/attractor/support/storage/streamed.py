"""NetCDF files larger than memory, written piece by piece; they too appear whole or not at all.

HDF5 that cannot write what it has buffered leaves objects behind that end the process when they
are collected. So it never learns of a failed write: what the disk did not take stays in memory,
where HDF5 finds it again, until the next check stops the work.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attractor.support.errors import WriteError
from attractor.support.storage.atomic import atomic_file
from attractor.support.storage.paths import check_writable


class StreamedNetCDF:
    """A file that is being written.

    Attributes:
        root: Its outermost group, an open ``h5netcdf.File``.
    """

    def __init__(self, root: Any, stream: _UnfailingStream) -> None:
        """Takes the group, and the stream that its bytes go through."""
        self.root, self._stream = root, stream

    def check(self) -> None:
        """Stops where a write has failed; to be called after every piece.

        Raises:
            OSError: The error of the write that failed.
        """
        if self._stream.error is not None:
            raise self._stream.error


@contextlib.contextmanager
def writing_netcdf(path: str | os.PathLike[str], *, needed: float) -> Iterator[StreamedNetCDF]:
    """Yields a NetCDF file to write to, which becomes ``path`` if the block raises nothing.

    Args:
        path: The destination; an existing file is replaced.
        needed: Bytes that the file will take, about.

    Raises:
        InvalidInputError: If the destination cannot be used, as for ``atomic_file``.
        WriteError: If the disk has less space free, or writing fails; what was there stays.
    """
    from attractor.support.storage.netcdf_file import open_netcdf

    destination = check_writable("path", path)
    _check_space(destination, needed)
    with atomic_file(destination) as temporary:
        with contextlib.closing(_UnfailingStream(temporary)) as stream:
            with open_netcdf(stream, "w") as root:
                written = StreamedNetCDF(root, stream)
                yield written
            written.check()


def _check_space(destination: Path, needed: float) -> None:
    there = next(place for place in destination.parents if place.exists())
    if needed > shutil.disk_usage(there).free:
        full = OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} for {needed / 1e9:.2f} GB")
        raise WriteError(destination, full)


class _UnfailingStream(io.RawIOBase):
    """A file in which every write succeeds: what the disk did not take is kept in memory.

    Attributes:
        error: The first error of the disk; None while there was none.
    """

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w+b", buffering=0)
        self._place, self._end = 0, 0
        self._kept: list[tuple[int, bytes]] = []
        self.error: OSError | None = None

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._end}[whence]
        self._place = base + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def write(self, content: Any) -> int:
        content = bytes(content)
        if self.error is None:
            try:
                self._put(self._place, content)
            except OSError as error:
                self.error = error
        if self.error is not None:
            self._kept.append((self._place, content))
        self._place += len(content)
        self._end = max(self._end, self._place)
        return len(content)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        count = max(min(len(view), self._end - self._place), 0)
        view[:count] = bytes(count)
        self._file.seek(self._place)
        found = self._file.read(count) or b""
        view[: len(found)] = found
        for start, content in self._kept:
            first = max(start, self._place)
            last = min(start + len(content), self._place + count)
            if first < last:
                within = content[first - start : last - start]
                view[first - self._place : last - self._place] = within
        self._place += count
        return count

    def truncate(self, size: int | None = None) -> int:
        self._end = self._place if size is None else size
        if self.error is None:
            try:
                self._file.truncate(self._end)
            except OSError as error:
                self.error = error
        return self._end

    def close(self) -> None:
        self._file.close()
        super().close()

    def _put(self, place: int, content: bytes) -> None:
        """Writes all of it: the system may take less at a time."""
        self._file.seek(place)
        left = memoryview(content)
        while left:
            left = left[self._file.write(left) :]
