"""Geometries: a norm, its dual, and what an optimizer that descends in it does."""

from attractor.geometry.contract import Geometry
from attractor.geometry.frobenius import Frobenius
from attractor.geometry.registry import get_geometry, register_geometry

__all__ = ["Frobenius", "Geometry", "get_geometry", "register_geometry"]
