"""Analysis: training runs compared with the directions predicted for them."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.analysis._verify import verify as verify
    from attractor.analysis.geometries import compare_geometries as compare_geometries
    from attractor.analysis.label_margin import (
        LabelMarginConstant as LabelMarginConstant,
        label_margin_constant as label_margin_constant,
    )
    from attractor.analysis.losses.first_gradient import (
        FirstGradientMargin as FirstGradientMargin,
        first_gradient_margin as first_gradient_margin,
    )
    from attractor.analysis.losses.smoothness import smoothness_constant as smoothness_constant
    from attractor.analysis.measures import (
        DirectionMeasures as DirectionMeasures,
        directional_bregman_divergence as directional_bregman_divergence,
        measure_direction as measure_direction,
    )
    from attractor.analysis.offset import (
        Offsets as Offsets,
        measured_offsets as measured_offsets,
        predicted_offsets as predicted_offsets,
    )
    from attractor.analysis.rates import (
        Rate as Rate,
        Rates as Rates,
        fit_rate as fit_rate,
        fit_rates as fit_rates,
    )
    from attractor.analysis.verdict import Verdict as Verdict

import_on_first_use(__name__)
