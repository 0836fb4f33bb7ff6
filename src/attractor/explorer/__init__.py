"""The explorer: drag a token, watch the attractor move.

A page, or a cell of a notebook, computes the margin solution, the basins, the path of training and
the certificate while something is dragged. Python makes it of tokens and a head, and answers beside
it in notebooks.
"""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.explorer.building import state_of as state_of
    from attractor.explorer.explorer import (
        Explorer as Explorer,
        explore as explore,
        explorer_page as explorer_page,
    )
    from attractor.explorer.state import (
        check_state as check_state,
        scene_named as scene_named,
        scene_names as scene_names,
    )

import_on_first_use(__name__)
