"""The figure of sparse attention, drawn from made-up numbers."""

import numpy as np
import xarray as xr

from attractor.papers.max_margin.figures.attention_sparsity import DIMENSIONS, SPARSITY
from attractor.plots.design.look import style

COUNT, STEPS = 6, 5


def test_sparsity_has_a_curve_for_every_dimension():
    numbers = np.random.default_rng(0).random((2, len(DIMENSIONS), COUNT, STEPS))
    along = ("d", "instance", "step")
    curves = {"effective_support": (along, numbers[0]), "norm": (along, numbers[1])}
    data = xr.Dataset(curves, {"d": list(DIMENSIONS), "step": range(STEPS)})
    with style():
        support, norm = SPARSITY.draw(data).axes
    assert len(norm.lines) == len(DIMENSIONS)
    assert len(support.lines) == len(DIMENSIONS) + 1  # with that of a single token
