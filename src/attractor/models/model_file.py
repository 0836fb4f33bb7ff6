"""Models on disk: one safetensors file with the weights by name and the config beside them."""

from __future__ import annotations

import json
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from attractor.checks import check_path
from attractor.errors import AttractorError, FileFormatError, InvalidInputError
from attractor.models.building import CONFIGS, Config, Model, model_shapes
from attractor.models.text import TextTransformer
from attractor.models.vision import VisionTransformer
from attractor.precision import double_precision
from attractor.storage import atomic_file

_FORMAT = "attractor model 1"
_PRECISIONS = ("F32", "F64")


def save_model(path: str | os.PathLike[str], model: Model) -> None:
    """Writes a model to one safetensors file, which appears whole or not at all.

    Args:
        path: The file; an existing one is replaced.
        model: The model. A weight is named by its place, such as ``blocks.0.attention.queries``.

    Raises:
        InvalidInputError: If ``model`` is no model of this room, or the path is a folder.
    """
    path = check_path("path", path)
    if not isinstance(model, TextTransformer | VisionTransformer):
        raise InvalidInputError(
            "model",
            f"{type(model).__name__} is no model that can be saved",
            "Give a TextTransformer or a VisionTransformer",
        )
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in named_weights(model).items()}
    content = save(arrays, metadata={"format": _FORMAT, "config": model.config.to_json()})
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Reads what ``save_model`` wrote; nothing in the file is run.

    Args:
        path: The file.

    Raises:
        FileFormatError: If the file is not there, or holds no whole model.
    """
    path = check_path("path", path)
    try:
        with safe_open(path, framework="numpy") as file:
            config = _config(path, file.metadata() or {})
            forms = {name: file.get_slice(name) for name in file.keys()}
            precisions = {form.get_dtype() for form in forms.values()}
            if len(precisions) != 1 or not precisions <= set(_PRECISIONS):
                raise _wrong(path, f"its weights are stored as {', '.join(sorted(precisions))}")
            dtype = jnp.float64 if precisions == {"F64"} else jnp.float32
            with double_precision():
                shapes = model_shapes(config, dtype)
                named = named_weights(shapes)
                if missing := sorted(named.keys() ^ forms.keys()):
                    raise _wrong(path, f"{missing[0]} is missing, or is too many")
                for name, leaf in named.items():
                    found = tuple(forms[name].get_shape())
                    if found != leaf.shape:
                        raise _wrong(path, f"{name} has the shape {found}, not {leaf.shape}")
                leaves = [jnp.asarray(file.get_tensor(name)) for name in named]
    except (SafetensorError, OSError) as error:
        raise _wrong(path, str(error)) from error
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
        return CONFIGS[json.loads(text)["model"]].from_json(text)
    except (AttractorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _wrong(path, f"its config cannot be used: {error}") from error


def _wrong(path: str | os.PathLike[str], reason: str) -> FileFormatError:
    return FileFormatError(f"{path}: no model that save_model wrote ({reason}).")
