"""Figures, from labeled data to matplotlib axes.

Importing this module loads matplotlib; ``import attractor`` does not.
"""

from attractor.plots.attention import attention_map
from attractor.plots.bias_matrix import (
    bias_map,
    bias_matrix_figure,
    ratio_curves,
    ratio_curves_figure,
)
from attractor.plots.curves import (
    band_curve,
    correlation,
    correlation_shortfall,
    loss,
    margin_ratio,
    margin_ratio_shortfall,
    norm_growth,
    selected_probability,
    unselected_probability,
)
from attractor.plots.figures import (
    attention_figure,
    direction_figure,
    frequency_figure,
    patches_figure,
    sizes_figure,
    training_figure,
)
from attractor.plots.geometries import (
    geometries_figure,
    geometry_label,
    margin_ratio_matrix,
    solution_map,
)
from attractor.plots.patches import image_with_patches, patch_frequency
from attractor.plots.rates import plot_rate, rates_figure
from attractor.plots.sensitivity import sensitivity_figure, sensitivity_map
from attractor.plots.sizes import fraction_bars
from attractor.plots.style import COLORS, save_figure, style

__all__ = [
    "COLORS",
    "attention_figure",
    "attention_map",
    "band_curve",
    "bias_map",
    "bias_matrix_figure",
    "correlation",
    "correlation_shortfall",
    "direction_figure",
    "fraction_bars",
    "frequency_figure",
    "geometries_figure",
    "geometry_label",
    "image_with_patches",
    "loss",
    "margin_ratio",
    "margin_ratio_matrix",
    "margin_ratio_shortfall",
    "norm_growth",
    "patch_frequency",
    "patches_figure",
    "plot_rate",
    "rates_figure",
    "ratio_curves",
    "ratio_curves_figure",
    "save_figure",
    "selected_probability",
    "sensitivity_figure",
    "sensitivity_map",
    "sizes_figure",
    "solution_map",
    "style",
    "training_figure",
    "unselected_probability",
]
