"""Two-dimensional pictures of training: tokens, rays to solutions, separating lines, paths."""

from attractor.plots.arguments import check_arguments
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

check_arguments(globals())
