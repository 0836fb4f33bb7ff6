"""Optimizers of anybody's: by name, from a module, or as objects, of optax or of PyTorch."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.training.own.bring_your_own import load_method as load_method
    from attractor.training.own.method import Method as Method

import_on_first_use(__name__)
