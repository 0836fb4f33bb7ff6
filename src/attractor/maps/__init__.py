"""Maps: which optimizer goes where, which start ends where, and sweeps over grids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.maps.basins import (
        BasinMap as BasinMap,
        BasinShares as BasinShares,
        basin_map as basin_map,
        basin_shares as basin_shares,
    )
    from attractor.maps.bias import (
        BiasMatrix as BiasMatrix,
        bias_matrix as bias_matrix,
        which_norm as which_norm,
    )
    from attractor.maps.comparison import Paired as Paired, labeled as labeled, paired as paired

import_on_first_use(__name__)
