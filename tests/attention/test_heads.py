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
from attractor.attention.heads import Head, as_head, head_from_arrays
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

KINDS = ["linear", "relu", "concave", "value matrix", "module", "vocabulary"]
SCALAR = KINDS[:-1]


@jax.jit
def mean_gradient(head, start, end):
    return head.mean_gradient(start, end)


def stacked(heads):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *heads)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_formula(heads, oracle, rng, kind):
    head, outputs = heads(6)[kind], rng.normal(size=(2, 4, 6))
    expected = [[oracle.prediction(head, x)[0] for x in rows] for rows in outputs]
    expected = np.array(expected, dtype=float)
    expected = expected if kind == "vocabulary" else expected[..., 0]
    found = head(outputs)
    assert isinstance(found, np.ndarray) and found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    with double_precision():
        traced = jax.jit(lambda head, x: head(x))(head, outputs)
    np.testing.assert_allclose(traced, expected, rtol=1e-13, atol=1e-14)
    assert head.classes == (4 if kind == "vocabulary" else None)
    assert head.input_dimension == 6 and head.instances is None


@pytest.mark.parametrize("kind", KINDS)
def test_an_axis_of_instances_pairs_heads_with_data_sets(heads, rng, kind):
    alone = [heads(6, seed)[kind] for seed in range(3)]
    together = stacked(alone)
    outputs = rng.normal(size=(3, 4, 5, 6))
    expected = np.stack([head(x) for head, x in zip(alone, outputs, strict=True)])
    assert together.instances == 3 and together.input_dimension == 6
    np.testing.assert_allclose(together(outputs), expected, rtol=1e-13, atol=1e-14)
    sizes = np.stack([head.reach(x) for head, x in zip(alone, outputs, strict=True)])
    np.testing.assert_allclose(together.reach(outputs), sizes, rtol=1e-13, atol=1e-14)
    with double_precision():
        traced = jax.jit(jax.vmap(lambda head, x: head(x)))(together, outputs)
    np.testing.assert_allclose(traced, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_heads_of_chosen_instances(heads, rng, kind):
    alone = [heads(6, seed)[kind] for seed in range(2)]
    chosen = stacked(alone).for_instances(np.array([1, 1, 0]))
    outputs = rng.normal(size=(3, 4, 6))
    np.testing.assert_array_equal(chosen(outputs)[2], stacked(alone)(outputs[[2, 1]])[0])
    shared = alone[0].for_instances(np.array([4, 0]))
    assert shared.instances == 2
    np.testing.assert_allclose(shared(outputs[:2]), alone[0](outputs[:2]), rtol=1e-13)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "module"])
def test_a_head_survives_the_way_through_its_arrays(heads, rng, kind):
    outputs = rng.normal(size=(2, 4, 6))
    for head in (heads(6)[kind], stacked([heads(6, seed)[kind] for seed in (0, 1)])):
        arrays = head.arrays()
        assert all(isinstance(array, np.ndarray) for array in arrays.values())
        again = head_from_arrays(head.name, arrays)
        assert type(again) is type(head) and again.instances == head.instances
        np.testing.assert_array_equal(again(outputs), head(outputs))


def test_value_matrices_nest_and_take_the_instances_of_either_part(rng):
    first, second, v = rng.normal(size=(6, 5)), rng.normal(size=(5, 3)), rng.normal(size=3)
    nested = ValueMatrix(first, ValueMatrix(second, LinearHead(v)))
    outputs = rng.normal(size=(2, 4, 6))
    np.testing.assert_allclose(nested(outputs), outputs @ first @ second @ v, rtol=1e-12)
    again = head_from_arrays(nested.name, nested.arrays())
    np.testing.assert_array_equal(again(outputs), nested(outputs))
    several = rng.normal(size=(2, 3))
    for head in (
        ValueMatrix(rng.normal(size=(6, 3)), LinearHead(several)),
        ValueMatrix(rng.normal(size=(2, 6, 3)), LinearHead(v)),
        ValueMatrix(rng.normal(size=(2, 6, 3)), LinearHead(several)),
    ):
        assert head.instances == 2
        matrix, weight = head.matrix, head.head.weight
        expected = np.einsum("itv,ivw,iw->it", outputs, matrix, weight)
        np.testing.assert_allclose(head(outputs), expected, rtol=1e-12)


def test_arrays_without_instances_are_shared(rng):
    hidden, outputs = rng.normal(size=(2, 6, 3)), rng.normal(size=(2, 4, 6))
    head = ReLUHead(hidden)
    expected = np.maximum(np.einsum("itv,ivk->itk", outputs, hidden), 0).sum(-1)
    np.testing.assert_allclose(head(outputs), expected, rtol=1e-13)
    concave = ConcaveHead(rng.normal(size=6), [0.0, 2.0])
    plain = outputs @ concave.weight[0]
    expected = plain - np.array([[0.0], [2.0]]) * (outputs**2).sum(-1)
    np.testing.assert_allclose(concave(outputs), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_reach_bounds_the_prediction(heads, rng, kind):
    for seed in range(5):
        head, outputs = heads(6, seed)[kind], rng.normal(size=(20, 6))
        sizes = np.abs(head(outputs)).reshape(20, -1).max(-1)
        assert (head.reach(outputs) >= sizes * (1 - 1e-14)).all()


@pytest.mark.parametrize("kind", SCALAR)
@pytest.mark.parametrize("length", [3.0, 1e-2, 1e-5, 1e-10])
def test_the_mean_gradient_spans_a_segment_without_cancellation(heads, oracle, rng, kind, length):
    for seed in range(4):
        head = heads(6, seed)[kind]
        start = rng.normal(size=6)
        end = start + length * rng.normal(size=6)
        with double_precision():
            mean = np.asarray(mean_gradient(head, start, end))
        with mpmath.workdps(60):
            exact = np.vectorize(mpmath.mpf, otypes=[object])
            (before,), (after,) = (oracle.prediction(head, exact(x))[0] for x in (start, end))
            change = float(after - before)
            found = float(exact(mean) @ (exact(end) - exact(start)))
        assert abs(found - change) <= 2e-12 * np.linalg.norm(mean) * np.linalg.norm(end - start)


def test_a_segment_across_a_kink_counts_the_unit_for_its_part():
    head = ReLUHead([[1.0], [0.0]], [2.0])
    with double_precision():
        for a, b in [(1.0, -3.0), (-3.0, 1.0), (1e-12, -3e-12), (0.0, 1e-300), (0.0, -1.0)]:
            start, end = np.array([a, 5.0]), np.array([b, 5.0])
            expected = 2 * (max(b, 0) - max(a, 0)) / (b - a)
            mean = mean_gradient(head, start, end)
            np.testing.assert_allclose(mean, [expected, 0.0], rtol=1e-15)


def test_training_the_head_leaves_the_penalty_alone(rng):
    head = ConcaveHead(rng.normal(size=3), 0.5)
    with double_precision():
        slope = jax.jit(jax.grad(lambda head, x: head(x)))(head, np.ones(3))
        assert float(slope.penalty) == 0
    np.testing.assert_array_equal(slope.weight, np.ones(3))


def test_a_module_of_any_kind_is_a_head(tanh_module, rng):
    class Table(eqx.Module):
        """Arrays of integers, settings and a static field beside the parameters."""

        weight: jax.Array
        order: jax.Array
        factor: float
        power: int = eqx.field(static=True)

        def __call__(self, x):
            return self.factor * ((x[self.order] * self.weight) ** self.power).sum()

    order = np.array([2, 0, 1])
    outputs = rng.normal(size=(2, 5, 3))
    table = Table(jnp.arange(3.0), jnp.asarray(order), 0.5, 3)
    head = as_head(table, 3)
    expected = 0.5 * ((outputs[..., order] * np.arange(3.0)) ** 3).sum(-1)
    np.testing.assert_allclose(head(outputs), expected, rtol=1e-13)
    assert list(head.arrays()) == ["weight"]
    assert jax.tree.structure(head) == jax.tree.structure(as_head(table, 3))
    function = as_head(eqx.nn.Lambda(lambda x: x.sum()), 3)
    np.testing.assert_allclose(function(outputs), outputs.sum(-1), rtol=1e-14)
    assert function.arrays() == {} and function.instances is None
    assert as_head(tanh_module(3, 0, 1), 3).classes is None  # a vector of length one
    assert as_head(tanh_module(3, 0, 5), 3).classes == 5
    assert list(as_head(tanh_module(3, 0), 3).arrays()) == [
        "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
    ]  # fmt: skip


def test_a_head_that_does_not_fit_says_so_wherever_it_is_used(heads, rng):
    for kind, head in heads(6).items():
        with pytest.raises(
            InvalidInputError, match=r"head: it reads vectors of dimension 6.*have 5"
        ):
            head(rng.normal(size=(2, 5)))
        if kind != "module":
            with pytest.raises(InvalidInputError, match="it has 2 instances, but the outputs"):
                stacked([head, head])(rng.normal(size=(3, 4, 6)))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: LinearHead(np.zeros((1, 2, 3))), r"shape is \(1, 2, 3\).*\(v,\), or \(instances"),
        (lambda: LinearHead([1.0, np.nan]), "finite"),
        (lambda: LinearHead(np.float64(1)), r"Give \(v,\)"),
        (lambda: ReLUHead(np.ones(3)), r"Give \(v, k\)"),
        (lambda: ReLUHead(np.ones((3, 4)), np.ones(3)), r"4 hidden units.*Give weight \(4,\)"),
        (lambda: ReLUHead(np.ones((2, 3, 4)), np.ones((3, 4))), "2 and 3 instances"),
        (lambda: ConcaveHead(np.ones(3), -1.0), "penalty: it is -1"),
        (lambda: ConcaveHead(np.ones(3), np.ones((1, 1))), r"Give \(\), or \(instances,\)"),
        (lambda: VocabularyHead(np.ones((1, 3))), "Give two or more"),
        (lambda: VocabularyHead(np.ones(3)), r"Give \(C, v\)"),
        (lambda: ValueMatrix(np.ones((3, 2)), LinearHead(np.ones(3))), r"Give .* shape \(3, 3\)"),
        (lambda: ValueMatrix(np.ones(3), LinearHead(np.ones(3))), r"Give \(v, w\)"),
        (lambda: ModuleHead(eqx.nn.Lambda(lambda x: x @ np.ones(4)), 3), "vector of dimension 3"),
        (lambda: ModuleHead(eqx.nn.Lambda(lambda x: x[:, None] * x), 3), r"of shape \(3, 3\)"),
        (lambda: ModuleHead(eqx.nn.Lambda(lambda x: x[0] > 0), 3), "gives bool"),
        (lambda: as_head(np.ones(3), 3), "ndarray is not a head"),
        (lambda: as_head(lambda x: x.sum(), 3), r"equinox.nn.Lambda\(function\)"),
        (lambda: head_from_arrays("cubic", {}), "Known heads: linear, relu, concave, vocabulary"),
        (lambda: head_from_arrays("value_matrix.cubic", {}), "none named 'value_matrix.cubic'"),
        (lambda: head_from_arrays("linear", {"slope": np.ones(2)}), "do not define 'linear'"),
        (lambda: head_from_arrays("value_matrix.linear", {}), "do not define"),
    ],
)
def test_bad_heads_are_refused(build, words):
    with pytest.raises(InvalidInputError, match=words):
        build()


def test_a_new_head_is_one_small_class(rng):
    class Cubic(Head):
        name = "cubic"
        weight: np.ndarray

        def predict(self, outputs):
            return (outputs**3) @ self.weight

        instances = None

        @property
        def input_dimension(self):
            return self.weight.shape[-1]

    head, outputs = Cubic(rng.normal(size=3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(head(outputs), outputs**3 @ head.weight)
    np.testing.assert_array_equal(head.reach(outputs), abs(head(outputs)))
    with double_precision():
        mean = mean_gradient(head, outputs, outputs + 1e-6)
        np.testing.assert_allclose(
            mean.sum(-1), ((3 * outputs**2 + 3e-6 * outputs + 1e-12) @ head.weight), rtol=1e-12
        )
