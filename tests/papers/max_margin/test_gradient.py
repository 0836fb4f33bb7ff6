"""The gradient in the prompt: as the paper writes it, by automatic differentiation, and ours."""

import jax
import jax.numpy as jnp
import numpy as np

from attractor.attention import PromptVector, get_loss, scaled_gradient
from attractor.attention.rows import attention_rows
from attractor.papers.max_margin.data import random_prompt_data
from attractor.support.precision import double_precision


def as_written(keys, gamma, p):
    """``mean_i l'(g_i) K_i^T (diag(s_i) - s_i s_i^T) gamma_i`` and the covariances along q."""
    weights = np.exp(keys @ p)
    weights /= weights.sum(-1, keepdims=True)
    mean = (weights * gamma).sum(-1, keepdims=True)
    slope = -1 / (1 + np.exp(mean[:, 0]))
    return (slope[:, None, None] * (weights * (gamma - mean))[..., None] * keys).sum(1).mean(0)


@jax.jit
@jax.grad
def automatic_gradient(p, keys, gamma):
    margins = (jax.nn.softmax(keys @ p) * gamma).sum(-1)
    return jnp.log1p(jnp.exp(-margins)).mean()


@jax.jit
def exact_gradient(p, head, rows):
    found = scaled_gradient(PromptVector(), get_loss("logistic"), p, head, rows).attention
    return found.mantissa * jnp.exp(found.log_scale)


def test_all_three_are_the_same():
    for seed in range(5):
        case = random_prompt_data(seed, 4, 5, 6)
        keys, gamma = case.tokens.keys, case.scores[:, 0]
        p = np.random.default_rng(seed).standard_normal(6)
        written = as_written(keys, gamma, p)
        with double_precision():
            automatic = automatic_gradient(p, keys, gamma)
            exact = exact_gradient(p, case.head, attention_rows(case.tokens))
        np.testing.assert_allclose(automatic, written, rtol=0, atol=1e-12)
        np.testing.assert_allclose(exact, written, rtol=0, atol=1e-12)
