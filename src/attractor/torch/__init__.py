"""PyTorch optimizers: ours to drop in, and any on exact gradients.

Importing this module imports PyTorch.
"""

import attractor.torch._installed  # noqa: F401 - before all that needs PyTorch
from attractor.torch.mirror_descent import MirrorDescent
from attractor.torch.optimizer import TorchOptimizer
from attractor.torch.steepest_descent import SteepestDescent
from attractor.torch.train import train_with_torch

__all__ = [
    "MirrorDescent",
    "SteepestDescent",
    "TorchOptimizer",
    "train_with_torch",
]
