"""Figures, from labeled data to matplotlib axes.

Importing this module loads matplotlib; ``import attractor`` does not.
"""

from typing import TYPE_CHECKING

from attractor.plots.design.arguments import with_checked_arguments
from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.plots.bands import band as band
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
    from attractor.plots.design.look import (
        COLORS as COLORS,
        PAGE as PAGE,
        SERIES as SERIES,
        panels_on_page as panels_on_page,
        save_figure as save_figure,
        style as style,
    )
    from attractor.plots.design.pairs import (
        beside as beside,
        panel_letters as panel_letters,
        shared_legend as shared_legend,
    )
    from attractor.plots.design.roles import (
        DASH_DOTTED as DASH_DOTTED,
        DASHED as DASHED,
        DOTTED as DOTTED,
        ROLES as ROLES,
        SEQUENCES as SEQUENCES,
        SOLID as SOLID,
        line_style as line_style,
        ordered_line_styles as ordered_line_styles,
        role_of as role_of,
    )
    from attractor.plots.figures import (
        attention_figure as attention_figure,
        attention_map as attention_map,
        direction_figure as direction_figure,
        patches_figure as patches_figure,
        training_figure as training_figure,
    )
    from attractor.plots.geometries import (
        geometries_figure as geometries_figure,
        geometry_label as geometry_label,
        solution_map as solution_map,
    )
    from attractor.plots.plane import (
        frame as frame,
        mid_margin_point as mid_margin_point,
        optimal_token_handle as optimal_token_handle,
        plane_tokens as plane_tokens,
        ray as ray,
        separating_line as separating_line,
        trajectory as trajectory,
    )
    from attractor.plots.rates import rates_figure as rates_figure
    from attractor.plots.several_runs import trajectory_figure as trajectory_figure
    from attractor.plots.solution import (
        singular_values as singular_values,
        solution_figure as solution_figure,
    )

import_on_first_use(__name__, prepare=with_checked_arguments)
