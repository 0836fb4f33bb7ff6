"""Figures, from labeled data to matplotlib axes.

Importing this module loads matplotlib; ``import attractor`` does not.
"""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use
from attractor.plots.arguments import with_checked_arguments

if TYPE_CHECKING:
    from attractor.plots._style import (
        COLORS as COLORS,
        COLUMN as COLUMN,
        PAGE as PAGE,
        save_figure as save_figure,
        style as style,
    )
    from attractor.plots.attention import attention_map as attention_map
    from attractor.plots.audit import (
        audit_accuracy_figure as audit_accuracy_figure,
        audit_curves_figure as audit_curves_figure,
        audit_map_figure as audit_map_figure,
        margin_control_figure as margin_control_figure,
    )
    from attractor.plots.bands import band as band, end_labels as end_labels
    from attractor.plots.basins import (
        basin_map_axes as basin_map_axes,
        basin_map_figure as basin_map_figure,
        basin_shares_axes as basin_shares_axes,
        basin_shares_figure as basin_shares_figure,
        selection_colors as selection_colors,
    )
    from attractor.plots.bias_matrix import (
        bias_map as bias_map,
        bias_matrix_figure as bias_matrix_figure,
        ratio_curves as ratio_curves,
        ratio_curves_figure as ratio_curves_figure,
    )
    from attractor.plots.checkpoints import checkpoint_figure as checkpoint_figure
    from attractor.plots.collocation import collocation_figure as collocation_figure
    from attractor.plots.corpus import (
        assumption_bars as assumption_bars,
        assumptions_figure as assumptions_figure,
        class_map as class_map,
        class_map_figure as class_map_figure,
    )
    from attractor.plots.corpus_training import (
        limits_figure as limits_figure,
        two_stage_figure as two_stage_figure,
    )
    from attractor.plots.curves import (
        band_curve as band_curve,
        correlation as correlation,
        correlation_shortfall as correlation_shortfall,
        loss as loss,
        margin_ratio as margin_ratio,
        margin_ratio_shortfall as margin_ratio_shortfall,
        norm_growth as norm_growth,
        selected_probability as selected_probability,
        unselected_probability as unselected_probability,
    )
    from attractor.plots.differences import differences_figure as differences_figure
    from attractor.plots.figures import (
        attention_figure as attention_figure,
        direction_figure as direction_figure,
        image_with_patches as image_with_patches,
        patches_figure as patches_figure,
        training_figure as training_figure,
    )
    from attractor.plots.geometries import (
        geometries_figure as geometries_figure,
        geometry_label as geometry_label,
        margin_ratio_matrix as margin_ratio_matrix,
        solution_map as solution_map,
    )
    from attractor.plots.heads import (
        head_curves as head_curves,
        head_map as head_map,
        heads_figure as heads_figure,
    )
    from attractor.plots.in_context import (
        experiment_figure as experiment_figure,
        lengths_figure as lengths_figure,
    )
    from attractor.plots.marked_text import attention_text_figure as attention_text_figure
    from attractor.plots.orders import (
        orders_figure as orders_figure,
        priority_figure as priority_figure,
    )
    from attractor.plots.pairs import (
        beside as beside,
        panel_letters as panel_letters,
        shared_legend as shared_legend,
    )
    from attractor.plots.phase_map import (
        phase_lines_figure as phase_lines_figure,
        phase_map_figure as phase_map_figure,
    )
    from attractor.plots.plane import (
        frame as frame,
        log_radius as log_radius,
        mid_margin_point as mid_margin_point,
        optimal_token_handle as optimal_token_handle,
        plane_tokens as plane_tokens,
        ray as ray,
        separating_line as separating_line,
        trajectory as trajectory,
    )
    from attractor.plots.prompt_length import error_by_length_figure as error_by_length_figure
    from attractor.plots.rates import plot_rate as plot_rate, rates_figure as rates_figure
    from attractor.plots.recorded_run import trajectory_figure as trajectory_figure
    from attractor.plots.roles import (
        ROLES as ROLES,
        SEQUENCES as SEQUENCES,
        line_style as line_style,
        ordered_line_styles as ordered_line_styles,
        role_of as role_of,
    )
    from attractor.plots.shares import (
        fraction_curve as fraction_curve,
        stacked_shares as stacked_shares,
        wilson as wilson,
    )
    from attractor.plots.solution import (
        margin_curve as margin_curve,
        singular_values as singular_values,
        solution_figure as solution_figure,
    )

import_on_first_use(__name__, prepare=with_checked_arguments)
