"""Arrays and texts in ``.npz`` or ``.safetensors``."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from attractor.storage import write_file


def write_arrays(file: Path, arrays: Mapping[str, Any], texts: Mapping[str, str] = {}) -> None:
    """Writes arrays, and texts: arrays without axes in ``.npz``, metadata in ``.safetensors``.

    Args:
        file: The destination, whose ending says which of the two; replaced atomically.
        arrays: Arrays by name.
        texts: Texts by name.
    """
    # safetensors writes memory as it lies, whatever the strides.
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    if file.suffix == ".npz":
        named = {name: np.array(text) for name, text in texts.items()}
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **ordered, **named)
        write_file(file, content.getvalue())
    else:
        write_file(file, safetensors.numpy.save(ordered, metadata=dict(texts) or None))
