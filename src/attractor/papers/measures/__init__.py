"""Measurements that claims of several papers share, for claims of any pack."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.papers.large_prompt.finite_prompts import (
        long_prompt_errors as long_prompt_errors,
    )
    from attractor.papers.large_prompt.quadrature import (
        Points as Points,
        attended_means as attended_means,
        gaussian_points as gaussian_points,
    )
    from attractor.papers.large_prompt.regression import (
        balanced_head as balanced_head,
        off_balanced as off_balanced,
        time_to_rest as time_to_rest,
    )
    from attractor.papers.measurements.attended import (
        attended as attended,
        margin_ratios as margin_ratios,
    )
    from attractor.papers.measurements.directions import trained as trained
    from attractor.papers.measurements.paths import where_it_ends as where_it_ends

import_on_first_use(__name__)
