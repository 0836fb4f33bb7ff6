"""Geometries: a norm, its dual, and what an optimizer that descends in it does."""

from attractor.geometry.blocks import Block, BlockMaximum, BlockSum
from attractor.geometry.contract import Geometry, has_norm_of
from attractor.geometry.decompositions import singular_value_decomposition, singular_values
from attractor.geometry.entrywise import Lp
from attractor.geometry.frobenius import Frobenius
from attractor.geometry.registry import get_geometry, register_geometry, registered_geometries
from attractor.geometry.schatten import Nuclear, Schatten, Spectral
from attractor.geometry.vectors import cosines, lengths

__all__ = [
    "Block",
    "BlockMaximum",
    "BlockSum",
    "Frobenius",
    "Geometry",
    "Lp",
    "Nuclear",
    "Schatten",
    "Spectral",
    "cosines",
    "get_geometry",
    "has_norm_of",
    "lengths",
    "register_geometry",
    "registered_geometries",
    "singular_value_decomposition",
    "singular_values",
]
