import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.prompts.head import AttentionHead, head_gradients, output, output_jacobian
from attractor.prompts.measures import Empirical, Gaussian, Laplace, Mixture, Sphere, StudentT
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

RANDOM = np.random.default_rng(11)
POINTS = RANDOM.normal(size=(6, 3))
KEYS, QUERIES, VALUES = (RANDOM.normal(size=shape) for shape in ((2, 3), (2, 3), (2, 3)))
HEAD = AttentionHead.from_factors(
    keys=KEYS, queries=QUERIES, values=VALUES, divide_by_sqrt_head_dimension=True
)
QUERY, COTANGENT = RANDOM.normal(size=(4, 3)) / 2, RANDOM.normal(size=(4, 2))
FACTOR = RANDOM.normal(size=(3, 2))
LAWS = {
    "gaussian": Gaussian(POINTS[0], FACTOR @ FACTOR.T),
    "mixture": Mixture([1, 2], [Gaussian(point, FACTOR @ FACTOR.T) for point in POINTS[:2]]),
    "sphere": Sphere(3, 1.5),
    "prompt": Empirical(POINTS),
}


def loss(measure, scores, values, query):
    return (COTANGENT * output(measure, AttentionHead(scores, values), query)).sum()


@given(st.integers(0, 10_000))
def test_gaussian_tokens_make_attention_affine(seed):
    random = np.random.default_rng(seed)
    mean, factor, query = (
        random.normal(size=3),
        random.normal(size=(3, 2)),
        random.normal(size=(4, 3)),
    )
    measure = Gaussian(mean, factor @ factor.T)
    keys, queries, values = (random.normal(size=(2, 3)) for _ in range(3))
    head = AttentionHead.from_factors(
        keys=keys, queries=queries, values=values, divide_by_sqrt_head_dimension=False
    )
    affine = values @ mean + query @ (values @ factor @ factor.T @ keys.T @ queries).T
    np.testing.assert_allclose(output(measure, head, query), affine, atol=1e-12)


def test_finite_prompt_is_softmax_attention():
    scores = QUERY @ HEAD.score_matrix.T @ POINTS.T
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    found = output(Empirical(POINTS), HEAD, QUERY)
    assert type(found) is np.ndarray and found.dtype == np.float64
    np.testing.assert_allclose(found, weights @ POINTS @ VALUES.T, atol=1e-14)


@pytest.mark.parametrize(
    "name", ["gaussian", "prompt", pytest.param("mixture", marks=pytest.mark.slow)]
)
def test_derivatives_are_those_of_jax(name):
    measure = LAWS[name]
    with double_precision():
        gradient = jax.jit(jax.grad(lambda *arrays: loss(measure, *arrays), (0, 1, 2)))
        arrays = gradient(HEAD.score_matrix, HEAD.value_matrix, QUERY)
    scores, values, query = (np.asarray(array) for array in arrays)
    found = head_gradients(measure, HEAD, QUERY, COTANGENT)
    np.testing.assert_allclose(found.score_matrix, scores, atol=1e-13)
    np.testing.assert_allclose(found.value_matrix, values, atol=1e-13)
    np.testing.assert_allclose(found.query, query, atol=1e-13)
    jacobian = output_jacobian(measure, HEAD, QUERY)
    np.testing.assert_allclose(np.einsum("bv,bve->be", COTANGENT, jacobian), query, atol=1e-13)


def test_derivative_in_the_scores_agrees_with_finite_differences():
    change, step = np.random.default_rng(3).normal(size=(3, 3)), 1e-5
    ends = [
        output(LAWS["sphere"], AttentionHead(HEAD.score_matrix + s * change, VALUES), QUERY)
        for s in (step, -step)
    ]
    found = head_gradients(LAWS["sphere"], HEAD, QUERY, COTANGENT).score_matrix
    along = (COTANGENT * (ends[0] - ends[1])).sum() / (2 * step)
    assert along == pytest.approx((change * found).sum(), abs=1e-7)


def test_gradient_of_a_finite_prompt_is_exact_in_saturation():
    gap = 600.0
    points = np.array([[0.0, 1.0], [gap, 2.0], [0.0, -1.0]])
    head, query, cotangent = (
        AttentionHead(np.eye(2), [[0.0, 1.0]]),
        np.array([1.0, 0.0]),
        np.ones(1),
    )
    found = head_gradients(Empirical(points), head, query, cotangent).score_matrix
    with double_precision():
        through = jax.jit(
            jax.grad(
                lambda scores: output(
                    Empirical(points), AttentionHead(scores, head.value_matrix), query
                )[0]
            )
        )
        same = np.asarray(through(jnp.eye(2)))
    with mpmath.workdps(60 + int(gap)):
        small = mpmath.exp(-mpmath.mpf(gap))
        weights = [small, mpmath.mpf(1), small]
        p = [w / mpmath.fsum(weights) for w in weights]
        mean = mpmath.fsum(a * x[1] for a, x in zip(p, points, strict=True))
        first = mpmath.fsum(a * (x[1] - mean) * x[0] for a, x in zip(p, points, strict=True))
        second = mpmath.fsum(a * (x[1] - mean) * x[1] for a, x in zip(p, points, strict=True))
        expected = np.array([[float(first), 0], [float(second), 0]])
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(same, expected, rtol=1e-13)


def test_prompts_of_a_batch_answer_their_own_queries(rng):
    prompts = rng.normal(size=(4, 6, 3))
    whole = output(Empirical(prompts), HEAD, QUERY)
    several = output(Empirical(prompts[:, None]), HEAD, np.stack([QUERY, -QUERY], axis=1))
    for number in range(4):
        alone = output(Empirical(prompts[number]), HEAD, QUERY)
        np.testing.assert_allclose(whole[number], alone[number], atol=1e-14)
        np.testing.assert_allclose(several[number, 0], alone[number], atol=1e-14)
    found = head_gradients(Empirical(prompts), HEAD, QUERY, COTANGENT)
    with double_precision():
        gradient = jax.jit(jax.grad(lambda U: loss(Empirical(prompts), U, VALUES, QUERY)))
        np.testing.assert_allclose(found.score_matrix, gradient(HEAD.score_matrix), atol=1e-13)


def test_jit_vmap_and_numpy_agree():
    measure = LAWS["mixture"]
    expected = output(measure, HEAD, QUERY)
    with double_precision():
        mapped = jax.jit(jax.vmap(lambda z: output(measure, HEAD, z)))(jnp.asarray(QUERY))
    np.testing.assert_allclose(mapped, expected, atol=1e-14)
    np.testing.assert_allclose(output(measure, HEAD, QUERY.tolist()), expected, atol=0)


def test_a_law_per_query_under_vmap(rng):
    means = rng.normal(size=(4, 3))
    with double_precision():

        @jax.jit
        @jax.vmap
        def each(mean, query):
            return output(Gaussian(mean, np.eye(3)), HEAD, query)

        found = np.asarray(each(means, QUERY))
    expected = (means + QUERY @ HEAD.score_matrix.T) @ VALUES.T
    np.testing.assert_allclose(found, expected, atol=1e-14)


def test_attention_that_does_not_exist_is_refused():
    head = AttentionHead(np.eye(3), np.eye(3))
    with pytest.raises(InvalidInputError, match="direction"):
        output(Laplace(1.0, 3), head, [0.5, 1.5, 0.0])
    with pytest.raises(InvalidInputError, match="measure"):
        head_gradients(StudentT(3.0, 3), head, np.ones(3), np.ones(3))
    with double_precision():
        compiled = jax.jit(lambda z: output(Laplace(1.0, 3), head, z))(jnp.array([0.5, 1.5, 0.0]))
    assert np.isnan(compiled).any()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda law: output(law, HEAD, np.ones(2)), "query"),
        (lambda law: output(law, HEAD, [np.nan] * 3), "query"),
        (
            lambda law: output(law, AttentionHead(np.ones((2, 3)), np.ones((2, 2))), np.ones(3)),
            "head",
        ),
        (lambda law: head_gradients(law, HEAD, QUERY, np.ones(3)), "cotangent"),
    ],
)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(InvalidInputError) as caught:
        call(LAWS["gaussian"])
    assert caught.value.argument == argument
