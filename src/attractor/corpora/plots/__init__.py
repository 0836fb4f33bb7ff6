"""Figures of corpora: collocation, orders, classes, training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.plots.design.arguments import with_checked_arguments
from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.corpora.plots.collocation import collocation_figure as collocation_figure
    from attractor.corpora.plots.corpus import (
        assumptions_figure as assumptions_figure,
        class_map as class_map,
        class_map_figure as class_map_figure,
        limits_figure as limits_figure,
        two_stage_figure as two_stage_figure,
    )
    from attractor.corpora.plots.orders import (
        orders_figure as orders_figure,
        priority_figure as priority_figure,
    )

import_on_first_use(__name__, with_checked_arguments)
