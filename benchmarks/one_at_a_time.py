"""The usual way to train: a Python loop over data sets and steps, PyTorch and its autograd.

Each update is written from the equations of the published experiments, in double precision, and
nothing is recorded on the way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.experiments import LEARNING_RATE, ROUNDING, Run, data, initial


class Trainer:
    """Trains one data set after another, as one run of an experiment does."""

    def __init__(self, run: Run) -> None:
        """Converts the data once."""
        tokens, head = data()
        arrays = (tokens.keys, tokens.queries[..., 0, :], tokens.labels[..., 0], head.weight)
        self.arrays = [torch.tensor(np.asarray(array)) for array in arrays]
        self.start = {name: torch.tensor(array) for name, array in initial(run).items()}
        self.run = run

    def __call__(self, index: int, steps: int | None = None) -> np.ndarray:
        """Trains one data set and returns the matrix W that it ends at."""
        keys, queries, labels, v = (array[index] for array in self.arrays)
        start = {name: array[index] for name, array in self.start.items()}
        layer = _Factors(start) if self.run.parameterization == "KQ" else _Matrix(start)
        p = self.run.p
        step = _normalized_gradient_descent(layer) if p is None else _mirror_descent(layer, p)
        for _ in range(self.run.steps if steps is None else steps):
            layer.zero_grad()
            scores = layer(keys, queries)
            outputs = (torch.softmax(scores, -1)[..., None] * keys).sum(-2)
            loss = torch.nn.functional.softplus(-labels * (outputs @ v)).mean()
            (loss + layer.penalty()).backward()
            step()
        return layer.effective_matrix()

    def several(self, first: int, stop: int) -> None:
        """Trains the data sets from one number to another."""
        for index in range(first, stop):
            self(index)


class _Matrix(torch.nn.Module):
    """Scores ``x_t^T W z`` of a matrix kept in one linear layer."""

    def __init__(self, start: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.W = _linear(start["W"])

    def forward(self, keys: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        return (keys @ self.W(queries)[..., None])[..., 0]

    def penalty(self) -> float:
        return 0.0

    def effective_matrix(self) -> np.ndarray:
        return self.W.weight.detach().numpy().copy()


class _Factors(torch.nn.Module):
    """Scores ``(K^T x_t)^T (Q^T z)`` of two linear layers."""

    def __init__(self, start: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.K, self.Q = _linear(start["K"].T), _linear(start["Q"].T)

    def forward(self, keys: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        return (self.K(keys) @ self.Q(queries)[..., None])[..., 0]

    def penalty(self) -> torch.Tensor:
        return ROUNDING * ((self.K.weight**2).sum() + (self.Q.weight**2).sum())

    def effective_matrix(self) -> np.ndarray:
        return (self.K.weight.T @ self.Q.weight).detach().numpy()


def _linear(weight: torch.Tensor) -> torch.nn.Linear:
    rows, columns = weight.shape
    layer = torch.nn.Linear(columns, rows, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer


def _normalized_gradient_descent(layer: torch.nn.Module) -> Callable[[], None]:
    """What takes a step once the gradient is there: each weight's is divided by its own norm."""
    descent = torch.optim.SGD(layer.parameters(), lr=LEARNING_RATE)

    def step() -> None:
        for weight in layer.parameters():
            weight.grad /= weight.grad.norm() + ROUNDING
        descent.step()

    return step


def _mirror_descent(layer: torch.nn.Module, p: float) -> Callable[[], None]:
    """The same for the potential ``sum |W_ij|^p / p``."""

    @torch.no_grad()
    def step() -> None:
        for weight in layer.parameters():
            gradient = weight.grad / (weight.grad.norm(p / (p - 1)) + ROUNDING)
            image = weight.sign() * weight.abs() ** (p - 1) - LEARNING_RATE * gradient
            weight.copy_(image.sign() * image.abs() ** (1 / (p - 1)))

    return step
