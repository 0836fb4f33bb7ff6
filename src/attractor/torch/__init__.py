"""PyTorch optimizers on exact gradients. Importing this module imports PyTorch."""

from attractor.torch.optimizer import TorchOptimizer
from attractor.torch.train import train_with_torch

__all__ = ["TorchOptimizer", "train_with_torch"]
