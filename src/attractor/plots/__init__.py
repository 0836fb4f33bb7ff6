"""Figures, from labeled data to matplotlib axes.

Importing this module loads matplotlib; ``import attractor`` does not.
"""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use
from attractor.plots.arguments import with_checked_arguments

if TYPE_CHECKING:
    from attractor.plots._style import COLORS, COLUMN, PAGE, save_figure, style
    from attractor.plots.attention import attention_map
    from attractor.plots.bands import band, end_labels
    from attractor.plots.basins import (
        basin_map_axes,
        basin_map_figure,
        basin_shares_axes,
        basin_shares_figure,
        selection_colors,
    )
    from attractor.plots.bias_matrix import (
        bias_map,
        bias_matrix_figure,
        ratio_curves,
        ratio_curves_figure,
    )
    from attractor.plots.collocation import collocation_figure
    from attractor.plots.corpus import (
        assumption_bars,
        assumptions_figure,
        class_map,
        class_map_figure,
    )
    from attractor.plots.corpus_training import limits_figure, two_stage_figure
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
        fraction_bars,
        frequency_figure,
        image_with_patches,
        patch_frequency,
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
    from attractor.plots.heads import head_curves, heads_figure
    from attractor.plots.in_context import experiment_figure, lengths_figure
    from attractor.plots.orders import orders_figure, priority_figure
    from attractor.plots.pairs import beside, panel_letters, shared_legend
    from attractor.plots.plane import (
        frame,
        log_radius,
        mid_margin_point,
        optimal_token_handle,
        plane_tokens,
        ray,
        separating_line,
        trajectory,
    )
    from attractor.plots.prompt_length import (
        error_by_length_figure,
        prompt_phase_figure,
        score_deviation_figure,
    )
    from attractor.plots.rates import plot_rate, rates_figure
    from attractor.plots.roles import ROLES, SEQUENCES, look, ordered_looks, role_of
    from attractor.plots.sensitivity import sensitivity_figure, sensitivity_map
    from attractor.plots.shares import fraction_curve, stacked_shares, wilson

__all__ = [
    "COLORS",
    "COLUMN",
    "PAGE",
    "ROLES",
    "SEQUENCES",
    "assumption_bars",
    "assumptions_figure",
    "attention_figure",
    "attention_map",
    "band",
    "band_curve",
    "basin_map_axes",
    "basin_map_figure",
    "basin_shares_axes",
    "basin_shares_figure",
    "beside",
    "bias_map",
    "bias_matrix_figure",
    "class_map",
    "class_map_figure",
    "collocation_figure",
    "correlation",
    "correlation_shortfall",
    "direction_figure",
    "end_labels",
    "error_by_length_figure",
    "experiment_figure",
    "fraction_bars",
    "fraction_curve",
    "frame",
    "frequency_figure",
    "geometries_figure",
    "geometry_label",
    "head_curves",
    "heads_figure",
    "image_with_patches",
    "lengths_figure",
    "limits_figure",
    "log_radius",
    "look",
    "loss",
    "margin_ratio",
    "margin_ratio_matrix",
    "margin_ratio_shortfall",
    "mid_margin_point",
    "norm_growth",
    "optimal_token_handle",
    "ordered_looks",
    "orders_figure",
    "panel_letters",
    "patch_frequency",
    "patches_figure",
    "plane_tokens",
    "plot_rate",
    "priority_figure",
    "prompt_phase_figure",
    "rates_figure",
    "ratio_curves",
    "ratio_curves_figure",
    "ray",
    "role_of",
    "save_figure",
    "score_deviation_figure",
    "selected_probability",
    "selection_colors",
    "sensitivity_figure",
    "sensitivity_map",
    "separating_line",
    "shared_legend",
    "sizes_figure",
    "solution_map",
    "stacked_shares",
    "style",
    "training_figure",
    "trajectory",
    "two_stage_figure",
    "unselected_probability",
    "wilson",
]

import_on_first_use(__name__, prepare=with_checked_arguments)
