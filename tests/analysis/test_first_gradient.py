"""Whether the first gradient separates the optimal tokens: definition and published shares."""

import jax
import numpy as np
import prompt_examples as examples
import pytest

from attractor.analysis import first_gradient_margin
from attractor.attention import LinearHead, ReLUHead
from attractor.datasets import unit_tokens
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


@pytest.mark.parametrize(
    ("size", "published"),
    (
        ((4, 4, 6), 0.21),
        pytest.param((4, 4, 10), 0.34, marks=pytest.mark.slow),
        pytest.param((5, 5, 20), 0.32, marks=pytest.mark.slow),
    ),
)
def test_the_share_of_random_data_that_meet_the_condition(size, published):
    tokens, head = unit_tokens(*size, seeds=200)
    found = first_gradient_margin(tokens, head)
    np.testing.assert_allclose((found.margin > 0).mean(), published, atol=0.0051)
    assert (np.sign(found.margin) == np.sign(found.relative)).all()
    one = first_gradient_margin(tokens[7], LinearHead(head.weight[7]))
    np.testing.assert_allclose(one.margin, found.margin[7], rtol=1e-12)


@pytest.mark.parametrize("loss", ("logistic", "exponential", "linear"))
def test_it_is_the_margin_of_the_gradient_at_zero(loss, rng):
    keys, queries = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 2, 3))
    mask = np.ones((3, 2, 4), bool)
    mask[0, 1, 2:] = mask[1, 0, 1:] = False  # one row has a single token
    labels, v = rng.choice([-1.0, 1], size=(3, 2)), rng.normal(size=2)
    slope = {
        "logistic": lambda u: -1 / (1 + np.exp(u)),
        "exponential": lambda u: -np.exp(-u),
        "linear": lambda u: -np.ones_like(u),
    }[loss]
    gradient, rows = np.zeros((2, 3)), []
    for i, k in np.ndindex(3, 2):
        own = keys[i][mask[i, k]]
        scores = labels[i, k] * own @ v
        weighted = (scores - scores.mean()) @ own / len(own)
        gradient += slope(scores.mean()) * np.outer(weighted, queries[i, k]) / 6
        rows.append((own, scores.argmax(), queries[i, k]))
    ahead = [
        (own[t] - own[best]) @ gradient @ query
        for own, best, query in rows
        for t in range(len(own))
        if t != best
    ]
    found = first_gradient_margin(Tokens(keys, queries, labels, mask), LinearHead(v), loss=loss)
    np.testing.assert_allclose(found.margin, min(ahead), rtol=1e-10)
    np.testing.assert_allclose(found.relative, min(ahead) / np.linalg.norm(gradient), rtol=1e-10)


def test_gradients_too_small_for_floating_point_still_have_a_direction():
    tokens, head = examples.scored(examples.ONE_SEQUENCE, examples.EQUAL_SCORES + 2000)
    near, _ = examples.scored(examples.ONE_SEQUENCE, examples.EQUAL_SCORES)
    found = first_gradient_margin(tokens, head, loss="exponential", parameterization="p")
    expected = first_gradient_margin(near, head, loss="exponential", parameterization="p")
    assert found.margin == 0
    np.testing.assert_allclose(found.relative, expected.relative, rtol=1e-10)
    assert expected.relative > 0


def test_a_selection_of_ones_own_and_rows_without_others():
    tokens, head = examples.scored(examples.ONE_SEQUENCE, examples.EQUAL_SCORES)
    other = first_gradient_margin(
        tokens, head, selection=Selection.from_index(tokens, [1]), parameterization="p"
    )
    assert other.margin < 0
    everything = Selection(tokens.mask, np.ones((1, 1), bool))
    all_kept = first_gradient_margin(tokens, head, selection=everything, parameterization="p")
    assert all_kept.margin == np.inf


def test_a_gradient_of_zero_has_no_margin():
    tokens, head = examples.scored(examples.ONE_SEQUENCE, np.zeros((1, 3)))
    chosen = Selection.from_index(tokens, [0])
    found = first_gradient_margin(tokens, head, selection=chosen, parameterization="p")
    assert found.margin == 0
    assert np.isnan(found.relative)


def test_heads_that_are_not_linear(rng):
    # The gradient at zero is that of a linear head with the slope at the mean token.
    keys = rng.normal(size=(1, 3, 2)) + 3  # so that no unit is switched off
    tokens, weights = Tokens(keys, [[1.0]], [1]), np.array([[1.0, 0.5], [0.2, 2.0]])
    with jax.enable_x64(True):
        v = np.asarray(jax.grad(lambda x: ReLUHead(weights)(x))(keys[0].mean(0)))
    for selected in ([0], [1], [2]):
        chosen = Selection.from_index(tokens, selected)
        found, expected = (
            first_gradient_margin(tokens, head, selection=chosen, loss="linear").margin
            for head in (ReLUHead(weights), LinearHead(v))
        )
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_what_cannot_be_used_is_named():
    tokens, head = examples.joint(examples.TIGHT)
    other, _ = examples.scored(examples.ONE_SEQUENCE, examples.EQUAL_SCORES)
    for changed, message in (
        ({"parameterization": "KQ"}, "parameterization: the condition is not one on"),
        ({"parameterization": "(v, p)"}, "parameterization: the condition is not one on"),
        ({"selection": Selection.from_index(other, [0])}, "selection: its mask has shape"),
        ({"loss": "cross_entropy"}, "labels: "),
    ):
        with pytest.raises(InvalidInputError, match=message):
            first_gradient_margin(tokens, head, **changed)
