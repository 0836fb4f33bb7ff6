"""Two-dimensional pictures of training: tokens, rays to solutions, separating lines, paths."""

from typing import TYPE_CHECKING

from attractor.plots.design.arguments import with_checked_arguments
from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.plots.plane.rays import (
        mid_margin_point as mid_margin_point,
        ray as ray,
        separating_line as separating_line,
    )
    from attractor.plots.plane.tokens import (
        HALO as HALO,
        frame as frame,
        optimal_token_handle as optimal_token_handle,
        plane_tokens as plane_tokens,
    )
    from attractor.plots.plane.trajectories import trajectory as trajectory

import_on_first_use(__name__, prepare=with_checked_arguments)
