"""Reading token files."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from attractor.errors import FileFormatError, InvalidInputError
from attractor.files.interpretation import interpret
from attractor.files.layout import SUFFIXES, TEXTS
from attractor.files.loaded import LoadedTokens


def load(path: str | os.PathLike[str]) -> LoadedTokens:
    """Reads a token file, ``.npz`` or ``.safetensors``, of the layout in ``LAYOUT``.

    Nothing in the file is ever unpickled or imported.

    Raises:
        InvalidInputError: If the file does not exist, lacks an array, or an array cannot be used.
        FileFormatError: If the file is damaged or not of the kind its name says.
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidInputError(
            "file",
            f"there is no file {file}",
            "Give a .npz or .safetensors file; `attractor example tokens PATH` writes one",
        )
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(
            "file",
            f"{file.name} ends in neither .npz nor .safetensors",
            "Save the arrays with numpy.savez or safetensors.numpy.save_file",
        )
    arrays, texts = _read_npz(file) if file.suffix == ".npz" else _read_safetensors(file)
    return interpret(arrays, texts, file.name)


def _read_npz(file: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    if not zipfile.is_zipfile(file):
        raise FileFormatError(
            f"{file} is damaged or is not an .npz file: it is no complete zip archive. "
            "Write it again with numpy.savez."
        )
    arrays = {}
    name = "its list of arrays"
    try:
        with np.load(file, allow_pickle=False) as stored:
            for name in stored.files:
                arrays[name] = stored[name]
    except ValueError as error:
        if "Object arrays" in str(error):
            raise InvalidInputError(
                name,
                "the array holds Python objects, which are never loaded",
                "Save a rectangular array of numbers; pad ragged sequences and use mask",
            ) from None
        raise FileFormatError(f"{file} is damaged: {name} cannot be read ({error}).") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, MemoryError) as error:
        raise FileFormatError(f"{file} is damaged: {name} cannot be read ({error}).") from None
    texts = {name: _text(name, arrays.pop(name)) for name in TEXTS if name in arrays}
    return arrays, texts


def _text(name: str, array: np.ndarray) -> str:
    if array.dtype.kind != "U" or array.ndim:
        raise InvalidInputError(
            name,
            f"it is an array of type {array.dtype} and shape {array.shape}, not a text",
            f"Save it as a text: numpy.savez(..., {name}='...')",
        )
    return str(array)


def _read_safetensors(file: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    try:
        with safetensors.safe_open(file, framework="np") as stored:
            metadata = stored.metadata() or {}
        arrays = safetensors.numpy.load_file(file)
    except (safetensors.SafetensorError, OSError) as error:
        raise FileFormatError(
            f"{file} is damaged or is not a safetensors file ({error})."
        ) from None
    except (KeyError, TypeError) as error:
        raise FileFormatError(
            f"{file} holds numbers of a kind NumPy does not know ({error}). "
            "Save them as float32 or float64."
        ) from None
    misplaced = next((name for name in TEXTS if name in arrays), None)
    if misplaced is not None:
        raise InvalidInputError(
            misplaced,
            f"{file.name} has an array of this name, which is a text",
            f"Put it into the metadata: save_file(..., metadata={{{misplaced!r}: '...'}})",
        )
    return arrays, {name: metadata[name] for name in TEXTS if name in metadata}
