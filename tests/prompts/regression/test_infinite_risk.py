import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.prompts.regression import Blocks, RegressionTask, infinite_risk, limit_horizon
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision


def definite(rng, d):
    root = rng.standard_normal((d, d))
    return root @ root.T / d + 0.3 * np.eye(d)


def random_blocks(rng, heads, d, scale=0.5):
    shapes = ((*heads, d, d), (*heads, d), (*heads, d), heads)
    return Blocks(*(scale * rng.standard_normal(shape) for shape in shapes))


def by_quadrature(task, blocks):
    """The risk from outputs V Gamma_w U z, by Gauss-Hermite nodes in weights and query."""
    d = task.dimension
    nodes, masses = np.polynomial.hermite_e.hermegauss(4)
    grid = np.stack(np.meshgrid(*[nodes] * (2 * d), indexing="ij"), axis=-1).reshape(-1, 2 * d)
    mass = np.prod(np.stack(np.meshgrid(*[masses] * (2 * d), indexing="ij")), axis=0).ravel()
    weights = np.sqrt(task.weight_variance) * grid[:, :d]
    queries = grid[:, d:] @ np.linalg.cholesky(task.query_covariance).T
    score, value = (m.reshape(-1, d + 1, d + 1) for m in blocks.matrices())
    tokens = task.token_covariance(weights)
    padded = np.column_stack([queries, np.zeros(len(queries))])
    outputs = np.einsum("hj,njk,hki,ni->n", value[:, -1], tokens, score, padded)
    errors = (outputs - np.sum(weights * queries, axis=1)) ** 2
    return mass @ errors / mass.sum() / 2


@given(seed=st.integers(0, 10**6), heads=st.sampled_from([(), (1,), (3,)]))
def test_risk_of_all_blocks_against_quadrature(seed, heads):
    rng = np.random.default_rng(seed)
    task = RegressionTask(
        definite(rng, 2),
        definite(rng, 2),
        weight_variance=rng.uniform(0.1, 2),
        label_noise=rng.uniform(0, 1),
    )
    blocks = random_blocks(rng, heads, 2)
    assert infinite_risk(task, blocks) == pytest.approx(by_quadrature(task, blocks), rel=1e-11)


def test_known_head_predicts_perfectly_and_wrong_scale_does_not():
    task = RegressionTask(np.diag([1.0, 2.0]), np.ones((2, 2)))
    zeros = np.zeros(2)
    right = Blocks(np.diag([1.0, 0.5]) / 3, zeros, zeros, np.array(3.0))
    assert infinite_risk(task, right) < 1e-30
    # the identity in place of the inverse predicts the sum 1 + 2 where the target is 2
    wrong = right._replace(key_query=np.eye(2) / 3)
    assert infinite_risk(task, wrong) == pytest.approx(0.5)
    nothing = right._replace(value_label=np.array(0.0))
    assert infinite_risk(task, nothing) == pytest.approx(task.risk_of_zero, rel=1e-14)


def test_compiled_gradient_is_that_of_differences(rng):
    task = RegressionTask(definite(rng, 2), definite(rng, 2), label_noise=0.3)
    blocks = random_blocks(rng, (2,), 2)
    with double_precision():
        traced = jax.tree.map(jnp.asarray, blocks)
        gradient = jax.jit(jax.grad(lambda b: infinite_risk(task, b)))(traced)
    for i, name in enumerate(Blocks._fields):
        direction = rng.standard_normal(blocks[i].shape)
        ends = [blocks._replace(**{name: blocks[i] + h * direction}) for h in (1e-4, -1e-4)]
        slope = (infinite_risk(task, ends[0]) - infinite_risk(task, ends[1])) / 2e-4
        assert np.sum(np.asarray(gradient[i]) * direction) == pytest.approx(slope, rel=1e-6)


def test_horizon_is_the_largest_score_deviation(rng):
    task = RegressionTask(definite(rng, 3), definite(rng, 3))
    blocks = random_blocks(rng, (), 3)
    angles = rng.standard_normal((100_000, 3))
    queries = angles / np.linalg.norm(angles, axis=1, keepdims=True) @ task.query_factor.T
    scores = queries @ blocks.key_query.T
    deviations = np.sqrt(np.einsum("ni,ij,nj->n", scores, task.covariance, scores))
    horizon = limit_horizon(task, blocks)
    assert deviations.max() <= horizon
    assert deviations.max() == pytest.approx(horizon, rel=1e-3)


def test_blocks_of_another_dimension():
    with pytest.raises(InvalidInputError, match="key_query"):
        infinite_risk(RegressionTask(np.eye(3)), random_blocks(np.random.default_rng(0), (), 2))
