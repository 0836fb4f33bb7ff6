"""Reading and writing the files that users keep their token sequences in."""

from __future__ import annotations

import dataclasses
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from attractor.attention import LinearHead
from attractor.errors import FileFormatError, InvalidInputError
from attractor.precision import as_float64
from attractor.storage import atomic_file
from attractor.tokens import Tokens

LAYOUT = {
    "keys": ("(n, T, d)", "the tokens of n sequences, T each, d numbers per token"),
    "queries": ("(n, e)", "the query of each sequence"),
    "labels": ("(n,)", "-1 or +1 for each sequence"),
    "head": ("(d,)", "optional: the fixed linear head v that reads the attention output"),
    "mask": ("(n, T)", "optional, bool: False where a token is padding"),
    "instance_numbers": ("(instances,)", "optional: the numbers of several data sets"),
}
"""What a token file may hold: for each array its shape and what it means.

Every array but the last may have one leading axis of instances: data sets treated side by side.
"""

REQUIRED = ("keys", "queries", "labels")


@dataclasses.dataclass(frozen=True)
class LoadedTokens:
    """What a token file holds.

    Attributes:
        tokens: The sequences.
        head: The head, or None where the file has none.
    """

    tokens: Tokens
    head: LinearHead | None


def load(path: str | os.PathLike[str]) -> LoadedTokens:
    """Reads a token file, ``.npz`` or ``.safetensors``, of the layout in ``LAYOUT``.

    Nothing in the file is ever unpickled.

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
    readers = {".npz": _read_npz, ".safetensors": _read_safetensors}
    if file.suffix not in readers:
        raise InvalidInputError(
            "file",
            f"{file.name} ends in neither .npz nor .safetensors",
            "Save the arrays with numpy.savez or safetensors.numpy.save_file",
        )
    arrays = readers[file.suffix](file)
    _check_names(arrays, file)
    return _interpret(arrays)


def save_tokens(
    path: str | os.PathLike[str], tokens: Tokens, head: LinearHead | None = None
) -> None:
    """Writes tokens, and a head where there is one, so that ``load`` gives them back.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        tokens: Tokens with labels, whose values are their keys.
        head: A linear head.

    Raises:
        InvalidInputError: If the name ends in anything else, or the layout cannot hold the tokens.
    """
    file = Path(path)
    if file.suffix not in {".npz", ".safetensors"}:
        raise InvalidInputError(
            "path", f"{file.name} ends in neither .npz nor .safetensors", "Choose one of the two"
        )
    if tokens.labels is None:
        raise InvalidInputError("tokens", "they have no labels", "Give labels, -1 or +1")
    if not np.array_equal(tokens.values, tokens.keys):
        raise InvalidInputError(
            "tokens", "their values differ from their keys", "A token file holds keys alone"
        )
    one_query = tokens.queries_per_sequence == 1
    queries, labels, mask = (
        (tokens.queries[..., 0, :], tokens.labels[..., 0], tokens.mask[..., 0, :])
        if one_query
        else (tokens.queries, tokens.labels, tokens.mask)
    )
    arrays = {"keys": tokens.keys, "queries": queries, "labels": labels}
    if not mask.all():
        arrays["mask"] = mask
    if head is not None:
        arrays["head"] = np.asarray(head.weight)
    if tokens.instances is not None:
        arrays["instance_numbers"] = np.asarray(tokens.instance_numbers)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with atomic_file(file) as temporary:
        if file.suffix == ".npz":
            with temporary.open("wb") as stream:
                np.savez_compressed(stream, allow_pickle=False, **arrays)
        else:
            safetensors.numpy.save_file(arrays, temporary)


def _read_npz(file: Path) -> dict[str, np.ndarray]:
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
    return arrays


def _read_safetensors(file: Path) -> dict[str, np.ndarray]:
    try:
        return safetensors.numpy.load_file(file)
    except (safetensors.SafetensorError, OSError) as error:
        raise FileFormatError(
            f"{file} is damaged or is not a safetensors file ({error})."
        ) from None
    except (KeyError, TypeError) as error:
        raise FileFormatError(
            f"{file} holds numbers of a kind NumPy does not know ({error}). "
            "Save them as float32 or float64."
        ) from None


def _check_names(arrays: dict[str, np.ndarray], file: Path) -> None:
    missing = next((name for name in REQUIRED if name not in arrays), None)
    if missing is not None:
        shape, meaning = LAYOUT[missing]
        raise InvalidInputError(
            missing,
            f"{file.name} has no such array; it has {', '.join(sorted(arrays)) or 'none'}",
            f"Add {missing} {shape}: {meaning}",
        )
    unknown = next((name for name in sorted(arrays) if name not in LAYOUT), None)
    if unknown is not None:
        raise InvalidInputError(
            unknown,
            f"{file.name} has an array of this name, which means nothing here",
            f"Rename or remove it; known are {', '.join(LAYOUT)}",
        )


def _interpret(arrays: dict[str, np.ndarray]) -> LoadedTokens:
    keys, queries, labels = (as_float64(name, arrays[name]) for name in REQUIRED)
    mask = arrays.get("mask")
    if mask is not None and mask.dtype != np.bool_:
        raise InvalidInputError(
            "mask", f"its data type is {mask.dtype.name}", "Save it as bool, False for padding"
        )
    numbers = arrays.get("instance_numbers")
    tokens = Tokens(keys, queries, labels, mask=mask, instance_numbers=numbers)
    if "head" not in arrays:
        return LoadedTokens(tokens, None)
    v = as_float64("head", arrays["head"])
    d = tokens.value_dimension
    shapes = [(d,)] if tokens.instances is None else [(d,), (tokens.instances, d)]
    if v.shape not in shapes:
        raise InvalidInputError(
            "head",
            f"its shape is {v.shape}, but the tokens have {d} numbers each",
            f"Its shape must be {' or '.join(str(shape) for shape in shapes)}",
        )
    return LoadedTokens(tokens, LinearHead(v))
