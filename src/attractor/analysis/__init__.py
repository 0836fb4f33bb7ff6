"""Analysis: training runs compared with the directions predicted for them."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.analysis._verify import verify
    from attractor.analysis.basins import (
        BasinBoundary,
        BasinMap,
        BasinShares,
        basin_boundary,
        basin_map,
        basin_shares,
    )
    from attractor.analysis.bias import BiasMatrix, bias_matrix, which_norm
    from attractor.analysis.first_gradient import FirstGradientMargin, first_gradient_margin
    from attractor.analysis.geometries import compare_geometries
    from attractor.analysis.label_margin import LabelMarginConstant, label_margin_constant
    from attractor.analysis.measures import (
        DirectionMeasures,
        directional_bregman_divergence,
        measure_direction,
    )
    from attractor.analysis.offset import Offsets, measured_offsets, predicted_offsets
    from attractor.analysis.rates import Rate, Rates, fit_rate, fit_rates
    from attractor.analysis.smoothness import smoothness_constant
    from attractor.analysis.verdict import Verdict

__all__ = [
    "BasinBoundary",
    "BasinMap",
    "BasinShares",
    "BiasMatrix",
    "DirectionMeasures",
    "FirstGradientMargin",
    "LabelMarginConstant",
    "Offsets",
    "Rate",
    "Rates",
    "Verdict",
    "basin_boundary",
    "basin_map",
    "basin_shares",
    "bias_matrix",
    "compare_geometries",
    "directional_bregman_divergence",
    "first_gradient_margin",
    "fit_rate",
    "fit_rates",
    "label_margin_constant",
    "measure_direction",
    "measured_offsets",
    "predicted_offsets",
    "smoothness_constant",
    "verify",
    "which_norm",
]

import_on_first_use(__name__)
