"""Magnitudes and sparsity of the attention matrices of a model."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.analysis.sparsity import hoyer_sparsity
from attractor.models import head_matrices
from attractor.models.transformers import Model

MATRICES = ("queries", "keys", "values")
_BINS = 60
_REACH = 0.6
"""The largest weight of the histograms; larger ones count in the last bin."""


def measure_weights(model: Model) -> xr.Dataset:
    """Hoyer's sparsity of queries, keys and values by block, and histograms of magnitudes."""
    matrices = head_matrices(model)
    whole = [matrices[name].reshape(model.config.blocks, -1) for name in MATRICES]
    hoyer = [[hoyer_sparsity(block) for block in matrix] for matrix in whole]
    return xr.Dataset(
        {
            "hoyer": (("matrix", "block"), hoyer),
            "largest_weight": ("matrix", [float(np.abs(matrix).max()) for matrix in whole]),
            "share_of_weights": (("matrix", "bin"), [_histogram(matrix) for matrix in whole]),
        },
        {
            "matrix": list(MATRICES),
            "block": np.arange(1, model.config.blocks + 1),
            "bin": _REACH * np.arange(_BINS) / _BINS,
        },
    )


def _histogram(weights: Float[np.ndarray, "..."]) -> Float[np.ndarray, "bin"]:
    """Shares of the magnitudes in bins of one width; the last has all larger ones."""
    place = np.minimum((np.abs(weights) * (_BINS / _REACH)).astype(int), _BINS - 1)
    return np.bincount(place.ravel(), minlength=_BINS) / weights.size
