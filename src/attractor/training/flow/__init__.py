"""Gradient flow: training with infinitely small steps."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.training.flow._gradient_flow import gradient_flow as gradient_flow

import_on_first_use(__name__)
