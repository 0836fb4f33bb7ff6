"""Attention weights of one trial before and after training, as a figure needs them."""

from __future__ import annotations

import numpy as np
import scipy.special
import xarray as xr
from jaxtyping import Float

from attractor.analysis import Verdict
from attractor.tokens import Tokens


def attention_weights(tokens: Tokens, W: Float[np.ndarray, "d e"]) -> xr.DataArray:
    """Softmax weights ``softmax(X W z)``, a row for each query; NaN where masked.

    Args:
        tokens: One data set.
        W: The attention matrix.

    Returns:
        Dimensions ``sequence, token``; several queries of a sequence follow one another.
    """
    weights = scipy.special.softmax(tokens.scores(W), axis=-1)
    rows = np.where(tokens.mask, weights, np.nan).reshape(-1, tokens.length)
    return xr.DataArray(rows, dims=("sequence", "token"))


def first_trial(
    verdict: Verdict,
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray | None]:
    """Weights of the first trial at the first and the last record, and its predicted tokens."""
    trajectory = verdict.trajectory.sel(**verdict.trajectory.variants[0])
    tokens = trajectory.tokens if trajectory.tokens.instances is None else trajectory.tokens[0]
    first, last = (
        attention_weights(tokens, trajectory.W(step)[0, 0])
        for step in (trajectory.steps[0], trajectory.steps[-1])
    )
    predicted = None
    if "predicted" in verdict.data:
        numbers = verdict.data["predicted"].isel(instance=0).values.ravel()
        predicted = xr.DataArray(numbers, dims="sequence")
    return first, last, predicted
