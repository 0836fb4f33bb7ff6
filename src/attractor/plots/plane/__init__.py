"""Two-dimensional pictures of training: tokens, rays to solutions, separating lines, paths."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use
from attractor.plots.arguments import with_checked_arguments

if TYPE_CHECKING:
    from attractor.plots.plane.rays import mid_margin_point, ray, separating_line
    from attractor.plots.plane.tokens import frame, optimal_token_handle, plane_tokens
    from attractor.plots.plane.trajectories import log_radius, trajectory

__all__ = [
    "frame",
    "log_radius",
    "mid_margin_point",
    "optimal_token_handle",
    "plane_tokens",
    "ray",
    "separating_line",
    "trajectory",
]

import_on_first_use(__name__, prepare=with_checked_arguments)
