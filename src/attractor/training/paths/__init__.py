"""Regularization paths: minima of the loss over balls of growing radius, in any geometry."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.training.paths._local_path import local_path as local_path
    from attractor.training.paths._regularization_path import (
        regularization_path as regularization_path,
    )

import_on_first_use(__name__)
