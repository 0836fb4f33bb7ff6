"""A gradient oracle in arbitrary precision, and data on which every loser has the same gap."""

import functools
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.attention import (
    ConcaveHead,
    LinearHead,
    ModuleHead,
    ReLUHead,
    ValueMatrix,
    VocabularyHead,
)
from attractor.tokens import Tokens

exact = np.vectorize(mpmath.mpf, otypes=[object])


def exact_prediction(head, o):
    """Predictions of a head for one output, and their gradients, as lists."""
    match head:
        case LinearHead():
            return [exact(head.weight) @ o], [exact(head.weight)]
        case ConcaveHead():
            v, penalty = exact(head.weight), mpmath.mpf(float(head.penalty))
            return [v @ o - penalty * (o @ o)], [v - 2 * penalty * o]
        case ReLUHead():
            hidden, before = exact(head.hidden), o @ exact(head.hidden)
            active = np.where(before > 0, exact(head.weight), 0)
            return [before @ active], [hidden @ active]
        case VocabularyHead():
            return list(exact(head.weight) @ o), list(exact(head.weight))
        case ValueMatrix():
            matrix = exact(head.matrix)
            values, gradients = exact_prediction(head.head, o @ matrix)
            return values, [matrix @ gradient for gradient in gradients]
        case ModuleHead():  # tanh_network
            arrays = {name: exact(array) for name, array in head.arrays().items()}
            first, last = arrays["layers.0.weight"], arrays["layers.1.weight"]
            tanh = np.array([mpmath.tanh(x) for x in first @ o + arrays["layers.0.bias"]])
            values = np.atleast_1d(last @ tanh + arrays["layers.1.bias"])
            return list(values), list(np.atleast_2d((last * (1 - tanh**2)) @ first))


def exact_slopes(loss, f, y):
    """Derivative of a loss in the predictions."""
    if loss == "cross_entropy":
        weights = [mpmath.exp(logit - max(f)) for logit in f]
        return [w / sum(weights) - (c == int(y)) for c, w in enumerate(weights)]
    f, y = f[0], mpmath.mpf(y)
    return {
        "logistic": lambda: [-y / (1 + mpmath.exp(y * f))],
        "exponential": lambda: [-y * mpmath.exp(-y * f)],
        "linear": lambda: [-y],
        "squared": lambda: [f - y],
        "negative_log": lambda: [-1 / f],
    }[loss]()


def exact_gradient(tokens, head, W, loss="logistic", meets=None):
    """Gradient of the mean loss in W, as (unit Frobenius direction, log of its norm).

    Digits cover the cancellation of ``p * (g - <p, g>)``, written here as the textbooks do, and
    once more that of ``f - y`` where it can be as small. With ``meets``, the target of sequence i
    is not its label but exactly what the head says of its token ``meets[i]``.
    """
    head = head if isinstance(head, eqx.Module) else LinearHead(head)
    scores = tokens.scores(W)[tokens.mask]
    cancellations = 1 if meets is None and loss != "cross_entropy" else 2
    with mpmath.workdps(80 + int(cancellations * np.ptp(scores) / 2.3)):
        keys, values, queries = exact(tokens.keys), exact(tokens.values), exact(tokens.queries)
        W = exact(W)
        total = np.zeros(W.shape, dtype=object)
        for i in range(tokens.sequences):
            for k in range(tokens.queries_per_sequence):
                kept = tokens.mask[i, k]
                x, v = keys[i][kept], values[i][kept]
                scores = x @ (W @ queries[i, k])
                weights = np.array([mpmath.exp(s - max(scores)) for s in scores])
                p = weights / weights.sum()
                f, gradients = exact_prediction(head, p @ v)
                y = tokens.labels[i, k]
                if meets is not None:
                    y = exact_prediction(head, values[i][meets[i]])[0][0]
                slopes = exact_slopes(loss, f, y)
                gain = v @ sum(s * g for s, g in zip(slopes, gradients, strict=True))
                total = total + np.outer((p * (gain - p @ gain)) @ x, queries[i, k])
        total = total / (tokens.sequences * tokens.queries_per_sequence)
        norm = mpmath.sqrt(sum(entry**2 for entry in total.ravel()))
        if norm == 0:
            return np.zeros(W.shape), -np.inf
        return (total / norm).astype(float), float(mpmath.log(norm))


def matrix_for_scores(keys, queries, scores):
    """A matrix under which token t of sequence i has (up to rounding) the score asked for."""
    effects = np.stack([np.linalg.pinv(x) @ s for x, s in zip(keys, scores, strict=True)])
    return effects.T @ np.linalg.pinv(queries.T)


def equal_gap_problem(gap, seed, *, n=3, length=5, d=6, dtype=np.float64):
    """Tokens, head vector and W: one winner a row, every loser the same gap below it."""
    random = np.random.default_rng(seed)
    keys = random.normal(size=(n, length, d)).astype(dtype)
    queries = random.normal(size=(n, d)).astype(dtype)
    labels = np.where(random.random(n) < 0.5, -1.0, 1.0)
    v = random.normal(size=d).astype(dtype)
    scores = np.zeros((n, length))
    scores[np.arange(n), random.integers(length, size=n)] = gap
    W = matrix_for_scores(keys.astype(float), queries.astype(float), scores).astype(dtype)
    return Tokens(keys, queries, labels), v, W


def tanh_network(d, seed, outputs="scalar"):
    """An Equinox module with a smooth, curved response."""
    return eqx.nn.MLP(d, outputs, 4, 1, activation=jnp.tanh, key=jax.random.key(seed))


def every_head(d, seed=0):
    """One head of each kind, by name; the last gives 4 logits."""
    return dict(_every_head(d, seed, jax.config.jax_enable_x64))


@functools.cache  # the module alone takes some ten milliseconds
def _every_head(d, seed, double):
    random = np.random.default_rng(seed)
    return {
        "linear": LinearHead(random.normal(size=d)),
        "relu": ReLUHead(random.normal(size=(d, 7)), random.normal(size=7)),
        "concave": ConcaveHead(random.normal(size=d), 0.3),
        "value matrix": ValueMatrix(
            random.normal(size=(d, 3)), ReLUHead(random.normal(size=(3, 5)))
        ),
        "module": ModuleHead(tanh_network(d, seed), d),
        "vocabulary": VocabularyHead(random.normal(size=(4, d))),
    }


@pytest.fixture
def oracle():
    return SimpleNamespace(
        gradient=exact_gradient,
        matrix=matrix_for_scores,
        equal_gap=equal_gap_problem,
        prediction=exact_prediction,
    )


@pytest.fixture
def tanh_module():
    return tanh_network


@pytest.fixture
def heads():
    return every_head
