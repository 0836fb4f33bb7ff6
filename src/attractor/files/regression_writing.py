"""Writing regression task files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from attractor.checks import check_kinds, check_path
from attractor.errors import InvalidInputError
from attractor.files.arrays_writing import write_arrays
from attractor.files.layout import SUFFIXES
from attractor.files.regression_arrays import interpret_regression
from attractor.files.regression_loaded import LoadedRegression


def save_regression(path: str | os.PathLike[str], loaded: LoadedRegression) -> None:
    """Writes a regression task, so that ``load`` gives the same.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        loaded: The task, lengths of prompts, and where and how long training goes.

    Raises:
        InvalidInputError: If the name ends in anything else, or a number cannot be used; nothing is
            written then.
    """
    check_kinds(loaded=(loaded, LoadedRegression))
    path = check_path("path", path)
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(
            "path", f"{file.name} ends in neither .npz nor .safetensors", "Choose one of the two"
        )
    task = loaded.task
    given = {
        "covariance": task.covariance,
        "query_covariance": task.query_covariance,
        "weight_variance": task.weight_variance,
        "label_noise": task.label_noise,
        "query_noise": task.query_noise,
        "length": loaded.lengths,
        "initial_scale": loaded.initial_scale,
        "initial_value": loaded.initial_value,
        "time": loaded.time,
    }
    arrays = {name: np.asarray(array) for name, array in given.items()}
    interpret_regression(arrays, file.name)
    write_arrays(file, arrays)
