import xarray as xr
from matplotlib.figure import Figure

from attractor import plots


def test_bars_carry_their_numbers_and_the_chance_level():
    axes = Figure().subplots()
    fractions = xr.DataArray([1.0, 0.925], dims="n", coords={"n": [6, 12]})
    plots.fraction_bars(axes, fractions, color="blue", chance=1 / 16)
    assert [bar.get_height() for bar in axes.patches] == [1.0, 0.925]
    assert [text.get_text() for text in axes.texts] == ["100 %", "92.5 %"]
    assert axes.get_legend_handles_labels()[1] == ["chance: 6.25 %"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["6", "12"]
