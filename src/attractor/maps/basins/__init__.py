"""Basins of attraction: which selection each starting point of training reaches."""

from attractor.maps.basins._basin_map import BasinMap, basin_map
from attractor.maps.basins._basin_shares import BasinShares, basin_shares
from attractor.support.settings import all_in_own_settings

__all__ = [
    "BasinMap",
    "BasinShares",
    "basin_map",
    "basin_shares",
]

all_in_own_settings(__name__)
