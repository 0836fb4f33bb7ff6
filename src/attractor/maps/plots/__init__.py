"""Figures of maps: bias matrices, basins, phases, differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.plots.design.arguments import with_checked_arguments
from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.maps.plots.basins import (
        basin_map_axes as basin_map_axes,
        basin_map_figure as basin_map_figure,
        basin_shares_figure as basin_shares_figure,
        selection_colors as selection_colors,
    )
    from attractor.maps.plots.bias_matrix import (
        bias_matrix_figure as bias_matrix_figure,
        ratio_curves_figure as ratio_curves_figure,
    )
    from attractor.maps.plots.phase_map import (
        phase_lines_figure as phase_lines_figure,
        phase_map_figure as phase_map_figure,
    )

import_on_first_use(__name__, with_checked_arguments)
