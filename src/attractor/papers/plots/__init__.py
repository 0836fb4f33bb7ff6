"""Bars of shares, as several papers draw them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.plots.design.arguments import with_checked_arguments
from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.papers.plots.shares import (
        fraction_curve as fraction_curve,
        stacked_shares as stacked_shares,
        wilson as wilson,
    )

import_on_first_use(__name__, with_checked_arguments)
