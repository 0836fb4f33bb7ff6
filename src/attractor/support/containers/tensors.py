"""The arrays of a ``.safetensors`` file, each read on access."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from safetensors import safe_open

from attractor.support.containers.damage import check_declared, check_name, check_shape, parsing
from attractor.support.errors import FileFormatError

_BYTES = {
    **{"BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "U32": 4, "I32": 4, "U64": 8, "I64": 8},
    **{"F16": 2, "BF16": 2, "F32": 4, "F64": 8},
}
"""Bytes of the kinds of numbers that can be read."""


class StoredTensors(Mapping[str, np.ndarray]):
    """The arrays of a safetensors file by name; each is read on its first access.

    Attributes:
        metadata: The texts of the file.
        precisions: The kind of number of each array, such as ``"F64"``.
        shapes: The shape of each array.

    Raises:
        InvalidInputError: If there is less memory than the arrays take.
        FileFormatError: If the file is damaged, or an array that is accessed has numbers of a
            kind that NumPy does not know.
    """

    def __init__(self, file: str | os.PathLike[str], kind: str = "safetensors") -> None:
        """Reads the header of a file that is to be of some kind."""
        self._file, self._kind = file, kind
        self._read: dict[str, np.ndarray] = {}
        with parsing(file, kind), self._open() as stored:
            check_declared(file, os.path.getsize(file))
            self.metadata: dict[str, str] = stored.metadata() or {}
            slices = {check_name(name): stored.get_slice(name) for name in stored.keys()}
            self.precisions = {name: str(one.get_dtype()) for name, one in slices.items()}
            self.shapes = {name: tuple(one.get_shape()) for name, one in slices.items()}
            for name, shape in self.shapes.items():
                check_shape(shape, _BYTES.get(self.precisions[name], 1))

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.shapes)

    def __len__(self) -> int:
        """Number of arrays."""
        return len(self.shapes)

    def __contains__(self, name: object) -> bool:
        """Whether there is an array of that name; it is not read."""
        return name in self.shapes

    def __getitem__(self, name: str) -> np.ndarray:
        """The array."""
        if name not in self._read:
            if self.precisions[name] not in _BYTES:
                raise FileFormatError(
                    f"{os.fspath(self._file)} holds numbers of a kind NumPy does not know: {name} "
                    f"is of {self.precisions[name]}. Save them as float32 or float64."
                )
            if self.precisions[name] == "BF16":
                import ml_dtypes  # noqa: F401 - of JAX, which tells NumPy what bfloat16 is
            with parsing(self._file, self._kind, name), self._open() as stored:
                self._read[name] = stored.get_tensor(name)
        return self._read[name]

    def _open(self) -> Any:
        return safe_open(self._file, framework="numpy")
