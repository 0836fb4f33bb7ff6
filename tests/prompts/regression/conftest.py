import numpy as np
import pytest

from attractor.prompts.regression import RegressionTask, kac_murdock_szego


@pytest.fixture(scope="session")
def correlated():
    return RegressionTask(kac_murdock_szego(5, 0.5))


class Simulation:
    """Prompts, queries and targets drawn one by one, and what heads make of them."""

    def __init__(self, task, length, count, seed):
        rng = np.random.default_rng(seed)
        d = task.dimension
        weights = rng.standard_normal((count, d)) * np.sqrt(task.weight_variance)
        inputs = rng.standard_normal((count, length, d)) @ np.linalg.cholesky(task.covariance).T
        noise = np.sqrt(task.label_noise) * rng.standard_normal((count, length))
        labels = np.einsum("nld,nd->nl", inputs, weights) + noise
        queries = rng.multivariate_normal(np.zeros(d), task.query_covariance, count)
        self.weights = weights
        self.tokens = np.concatenate([inputs, labels[..., None]], axis=-1)
        self.queries = np.column_stack([queries, np.zeros(count)])
        self.targets = np.sum(weights * queries, axis=-1)

    def heads(self, blocks):
        score, value = blocks.matrices()
        score = score.reshape(-1, *score.shape[-2:])
        for u, v in zip(score, value.reshape(score.shape), strict=True):
            scores = np.einsum("nli,ij,nj->nl", self.tokens, u, self.queries)
            yield scores, self.tokens @ v[-1]

    def softmax(self, blocks):
        return sum(
            np.sum(np.exp(s - s.max(1, keepdims=True)) * v, axis=1)
            / np.sum(np.exp(s - s.max(1, keepdims=True)), axis=1)
            for s, v in self.heads(blocks)
        )

    def linear(self, blocks):
        return sum(np.mean(s * v, axis=1) for s, v in self.heads(blocks))

    def agrees(self, predictions, risk, errors=4):
        squares = (predictions - self.targets) ** 2 / 2
        return abs(squares.mean() - risk) < errors * squares.std() / np.sqrt(len(squares))


@pytest.fixture(scope="session")
def simulate():
    return Simulation
