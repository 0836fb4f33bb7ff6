"""PyTorch optimizers: ours to drop in, and any on exact gradients.

Importing this module imports PyTorch.
"""

try:
    import torch  # noqa: F401 - before all that needs it
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "attractor.torch needs PyTorch. Run `pip install 'attractor[torch]'`", name=error.name
    ) from None

from attractor.torch.mirror_descent import MirrorDescent
from attractor.torch.steepest_descent import SteepestDescent
from attractor.torch.train import TorchOptimizer, train_with_torch

__all__ = [
    "MirrorDescent",
    "SteepestDescent",
    "TorchOptimizer",
    "train_with_torch",
]
