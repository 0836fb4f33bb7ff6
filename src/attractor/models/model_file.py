"""Models on disk: one safetensors file with the weights by name and the config beside them."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save

from attractor.models.building import CONFIGS, Config, Model, model_shapes
from attractor.support.checks import check_kinds, check_path
from attractor.support.containers import StoredTensors, parse_json, parsing
from attractor.support.errors import AttractorError, FileFormatError
from attractor.support.precision import double_precision
from attractor.support.storage import write_file

_FORMAT = "attractor model 1"
_PRECISIONS = ("F32", "F64")


def save_model(path: str | os.PathLike[str], model: Model) -> None:
    """Writes a model to one safetensors file, which appears whole or not at all.

    Args:
        path: The file; an existing one is replaced.
        model: The model. A weight is named by its place, such as ``blocks.0.attention.queries``.

    Raises:
        InvalidInputError: If ``model`` is no model of this package, or the path is a folder.
    """
    path = check_path("path", path)
    check_kinds(model=(model, Model))
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in named_weights(model).items()}
    content = save(arrays, metadata={"format": _FORMAT, "config": model.config.to_json()})
    write_file(path, content)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Reads what ``save_model`` wrote; nothing in the file is run.

    Args:
        path: The file.

    Raises:
        FileFormatError: If the file is not there, or holds no whole model.
    """
    path = check_path("path", path)
    stored = StoredTensors(path, "model")
    config = _config(path, stored.metadata)
    precisions = set(stored.precisions.values())
    if len(precisions) != 1 or not precisions <= set(_PRECISIONS):
        raise _wrong(path, f"its weights are stored as {', '.join(sorted(precisions))}")
    if 2 * config.blocks > len(stored):
        raise _wrong(path, f"it has too few weights for {config.blocks} blocks")
    dtype = jnp.float64 if precisions == {"F64"} else jnp.float32
    with double_precision():
        with parsing(path, "model"):
            shapes = model_shapes(config, dtype)
        named = named_weights(shapes)
        if missing := sorted(named.keys() ^ stored.keys()):
            raise _wrong(path, f"{missing[0]} is missing, or is too many")
        for name, leaf in named.items():
            if stored.shapes[name] != leaf.shape:
                raise _wrong(path, f"{name} has the shape {stored.shapes[name]}, not {leaf.shape}")
        leaves = [jnp.asarray(stored[name]) for name in named]
    return jax.tree.structure(shapes).unflatten(leaves)


def named_weights(model: Any) -> dict[str, Any]:
    """The leaves of a model, or of a tree of its structure, by their places."""
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _config(path: str | os.PathLike[str], metadata: dict[str, str]) -> Config:
    if metadata.get("format") != _FORMAT:
        raise _wrong(path, f"its metadata do not say {_FORMAT!r}")
    text = metadata.get("config", "")
    try:
        return CONFIGS[parse_json(text)["model"]].from_json(text)
    except (AttractorError, ValueError, KeyError, TypeError) as error:
        raise _wrong(path, f"its config cannot be used: {error}") from error


def _wrong(path: str | os.PathLike[str], reason: str) -> FileFormatError:
    return FileFormatError(f"{path}: no model that save_model wrote ({reason}).")
