"""The figures of random data, drawn from made-up numbers."""

import numpy as np
import pytest
import xarray as xr

from attractor.papers.max_margin.figures.random_data import DIMENSIONS, SELECTION, SHARES, SPARSITY
from attractor.plots._style import style

COUNT, STEPS = 6, 5


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    by_set, along = ("d", "instance"), ("d", "instance", "step")
    flags = {name: (by_set, random.random((len(DIMENSIONS), COUNT)) < 0.5) for name in SHARES}
    numbers = random.random((2, len(DIMENSIONS), COUNT, STEPS))
    curves = {"effective_support": (along, numbers[0]), "norm": (along, numbers[1])}
    cosine = {"cosine": (by_set, 1 - 0.01 * numbers[0, ..., 0])}
    return xr.Dataset(flags | curves | cosine, {"d": list(DIMENSIONS), "step": range(STEPS)})


def test_shares_have_wilson_intervals(data):
    with style():
        bars, distances = SELECTION.draw(data).axes
    heights = [bar.get_height() for bar in bars.patches]
    shares = [data[name].mean("instance") for name in SHARES]
    np.testing.assert_allclose(heights, np.ravel(shares))
    low, high = np.swapaxes(bars.collections[0].get_segments(), 0, 1)[..., 1]
    hits = data[next(iter(SHARES))].sum("instance").values
    for k, least, most in zip(hits, low, high, strict=True):
        # Both ends are as many standard errors from the share as the level says.
        for end in (least, most):
            error = np.sqrt(end * (1 - end) / COUNT)
            assert abs(k / COUNT - end) == pytest.approx(1.959964 * error, rel=1e-5)
    assert distances.get_yscale() == "log"


def test_sparsity_has_a_curve_for_every_dimension(data):
    with style():
        support, norm = SPARSITY.draw(data).axes
    assert len(norm.lines) == len(DIMENSIONS)
    assert len(support.lines) == len(DIMENSIONS) + 1  # with that of a single token
