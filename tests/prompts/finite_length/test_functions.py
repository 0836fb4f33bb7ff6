"""Exact averages over finite prompts."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import quad, simpson

from attractor.prompts.finite_length import (
    functions,
    mean_output,
    output_error,
    output_second_moment,
    prompt_moments,
    sum_of_squared_weights,
)
from attractor.support.errors import InvalidInputError

LENGTHS = 4.0 ** np.arange(2, 9)

# By nested adaptive quadrature in mpmath.
FROM_MPMATH = [
    (0.5, 16, 0.0956985455773738522, 0.0781976092382936462),
    (1, 1024, 0.00520351541800347557, 0.00263540900616277961),
    (2, 64, 0.32969265373478227, 0.16073511237779714),
    (4, 1e6, 0.12478618608689317, 0.043341168358752209),
    (8, 1e12, 1.7012743868270279, 0.15933769229880891),
]


def by_tensor_quadrature(s, length, step):
    """Averages over all tokens by the trapezoidal rule, for a few tokens."""
    g = np.arange(-9, 9 + step, step)
    density = step * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)
    grids = np.meshgrid(*[g] * length, indexing="ij")
    weights = np.prod(np.meshgrid(*[density] * length, indexing="ij"), axis=0)
    scores = s * np.stack(grids)
    p = np.exp(scores - scores.max(0))
    p /= p.sum(0)
    ghat = (p * grids).sum(0)
    values = [(ghat - s) ** 2, ghat, ghat**2, (p**2).sum(0)]
    return [(weights * value).sum() for value in values]


def by_adaptive_quadrature(s, length):
    """Error and squared weights by nested adaptive quadrature with relative errors."""
    accurate = {"epsabs": 0, "epsrel": 1e-11, "limit": 200}

    def average(f, log_time):
        turn = s / 2 - log_time / s  # where y = 1
        ends = np.unique(np.clip([-12, turn - 4 / s, turn, turn + 3 / s, s, 2 * s + 13], -12, 40))
        ends = ends[ends <= 2 * s + 13]
        total = 0
        for a, b in itertools.pairwise(ends):
            total += quad(
                lambda g: f(g, np.exp(log_time + s * g - s * s / 2)) * np.exp(-g * g / 2),
                a, b, **accurate,
            )[0]  # fmt: skip
        return total / np.sqrt(2 * np.pi)

    def rest(log_time, tokens):
        return np.exp((length - tokens) * np.log1p(-average(lambda g, y: -np.expm1(-y), log_time)))

    def error(log_time):
        two = average(lambda g, y: (g - s) ** 2 * y * y * np.exp(-y), log_time)
        one = average(lambda g, y: y * y * np.exp(-y), log_time)
        pairs = length * (length - 1) * (s * one) ** 2 * rest(log_time, 2)
        return length * two * rest(log_time, 1) + pairs

    def weights(log_time):
        return length * average(lambda g, y: y * y * np.exp(-y), log_time) * rest(log_time, 1)

    middle = s * s / 2 - s * np.sqrt(2 * np.log(length))
    ends = [middle - 12 - s * s, middle - 4, middle + 4, middle + 10 + 4 * s]
    return [
        sum(quad(f, a, b, epsabs=0, epsrel=1e-9)[0] for a, b in itertools.pairwise(ends))
        for f in (error, weights)
    ]


@pytest.mark.parametrize(
    ("s", "error", "weights"),
    [
        (
            0.5,
            [9.57e-2, 2.475e-2, 6.248e-3, 1.566e-3, 3.918e-4, 9.796e-5, 2.449e-5],
            [7.82e-2, 1.993e-2, 5.007e-3, 1.253e-3, 3.134e-4, 7.837e-5, 1.959e-5],
        ),
        (
            1,
            [0.2082, 6.857e-2, 1.977e-2, 5.204e-3, 1.320e-3, 3.314e-4, 8.293e-5],
            [0.1325, 3.880e-2, 1.033e-2, 2.635e-3, 6.624e-4, 1.658e-4, 4.147e-5],
        ),
        (
            2,
            [0.7399, 0.3297, 0.1617, 7.823e-2, 3.324e-2, 1.185e-2, 3.612e-3],
            [0.3165, 0.1607, 7.267e-2, 2.854e-2, 9.687e-3, 2.895e-3, 7.901e-4],
        ),
        (
            4,
            [5.843, 3.620, 2.247, 1.380, 0.8358, 0.5024, 0.3046],
            [0.5864, 0.4582, 0.3560, 0.2725, 0.2037, 0.1476, 0.1027],
        ),
    ],
)
def test_values_known_to_four_digits(s, error, weights):
    np.testing.assert_allclose(output_error(s, LENGTHS), error, rtol=5e-4)
    np.testing.assert_allclose(sum_of_squared_weights(s, LENGTHS), weights, rtol=5e-4)


@pytest.mark.parametrize(("s", "length", "error", "weights"), FROM_MPMATH)
def test_nine_digits_of_arbitrary_precision(s, length, error, weights):
    np.testing.assert_allclose(output_error(s, length), error, rtol=5e-10)
    np.testing.assert_allclose(sum_of_squared_weights(s, length), weights, rtol=5e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("s", "length"), [(2, 64), (3, 1e6)])
def test_adaptive_quadrature(s, length):
    error, weights = by_adaptive_quadrature(s, length)
    np.testing.assert_allclose(output_error(s, length), error, rtol=1e-8)
    np.testing.assert_allclose(sum_of_squared_weights(s, length), weights, rtol=1e-8)


@pytest.mark.parametrize(("s", "length", "step"), [(0.02, 2, 0.2), (3, 2, 0.04), (1, 3, 0.2)])
def test_few_tokens_by_direct_quadrature(s, length, step):
    expected = by_tensor_quadrature(s, length, step)
    np.testing.assert_allclose(prompt_moments(s, length)[:4], expected, rtol=1e-11)


@given(s=st.floats(0, 8), log_length=st.floats(0, 35))
def test_integration_by_parts_holds_and_bounds_are_kept(s, log_length):
    length = np.floor(np.exp(log_length))
    error, mean, second, weights, per_variance = prompt_moments(s, length)
    assert (1 - 1e-12) / length <= weights <= 1 + 1e-12
    np.testing.assert_allclose(mean, s * (1 - weights), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(error, weights + s**2 * per_variance, rtol=1e-10)
    np.testing.assert_allclose(second, error + 2 * s * mean - s**2, rtol=1e-9, atol=1e-12)
    assert output_error(s, 2 * length) < error


def test_no_scores_and_one_token_are_exact():
    lengths = np.array([1, 2, 7, 1e12])
    np.testing.assert_array_equal(output_error(0, lengths), 1 / lengths)
    np.testing.assert_array_equal(sum_of_squared_weights(0, lengths), 1 / lengths)
    s = np.array([0, 0.3, 5, 12])
    np.testing.assert_array_equal(output_error(s, 1), 1 + s**2)
    np.testing.assert_array_equal(mean_output(s, 1), 0)
    np.testing.assert_array_equal(output_second_moment(s, 1), 1)


def test_nothing_jumps_where_scores_vanish():
    lengths = np.array([2, 50, 1e9])
    for narrow in (1e-300, 1e-9):
        np.testing.assert_allclose(
            np.array(prompt_moments(narrow, lengths)),
            np.array(prompt_moments(0, lengths)),
            rtol=1e-12,
            atol=2e-9,
        )
    below, above = (np.array(prompt_moments(s, lengths)) for s in (0.01, 0.01 * (1 + 1e-13)))
    np.testing.assert_allclose(below, above, rtol=1e-11)


@pytest.mark.parametrize("s", [0.3, 1.5, 3])
def test_long_prompts_follow_the_delta_rule(s):
    for length, tolerance in ((1e16, 1e-3), (1e60, 1e-12)):
        scale = np.exp(s**2) / length
        np.testing.assert_allclose(output_error(s, length), scale * (1 + s**2), rtol=tolerance)
        np.testing.assert_allclose(sum_of_squared_weights(s, length), scale, rtol=tolerance)


@pytest.mark.parametrize("s", [20, 40, 200])
def test_two_tokens_of_wide_scores_by_one_integral(s):
    d = np.concatenate([np.linspace(0, 40 / s, 4001), np.linspace(40 / s, 12, 4001)])
    normal = np.sqrt(2 / np.pi) * np.exp(-(d**2) / 2)
    tanh = np.tanh(s * d / np.sqrt(2))

    def mean(values):
        return sum(simpson(part, x=x) for part, x in zip(
            np.split(values * normal, [4001]), np.split(d, [4001]), strict=True
        ))  # fmt: skip

    output, square = mean(d * tanh) / np.sqrt(2), 0.5 + mean(d**2 * tanh**2) / 2
    expected = [square - 2 * s * output + s**2, output, square, (1 + mean(tanh**2)) / 2]
    np.testing.assert_allclose(prompt_moments(s, 2)[:4], expected, rtol=1e-9)


@pytest.mark.parametrize("longest", [2, 1e3, 1e12, 1e60])
def test_wide_scores_are_averaged_as_narrow_ones_are(longest, monkeypatch):
    lengths = np.array([1, 1.5, longest])
    s = 1.2501 * np.sqrt(2 * np.log(longest) + 80)
    found = np.array(prompt_moments(s, lengths))
    assert functions.is_frozen(s, lengths)
    monkeypatch.setattr(functions, "is_frozen", lambda s, lengths: False)
    np.testing.assert_allclose(found, prompt_moments(s, lengths), rtol=1e-11, atol=1e-14)


def test_scores_without_bound():
    lengths = np.array([1, 2, 3, 1e12])
    error, mean, square, weights, per_variance = prompt_moments(1e40, lengths)
    np.testing.assert_allclose(error, [1e80] * 4, rtol=1e-12)
    np.testing.assert_allclose([weights, per_variance], 1, rtol=1e-12)
    # the largest of 2 and 3 normal numbers
    largest = [0, 1 / np.sqrt(np.pi), 1.5 / np.sqrt(np.pi)]
    np.testing.assert_allclose(mean[:3], largest, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(square[:3], [1, 1, 1 + np.sqrt(3) / (2 * np.pi)], rtol=1e-12)


def test_frozen_prompts_return_the_largest_tokens():
    # With s -> infinity the output is the largest of L normal numbers: E max = 1 / sqrt(pi) at 2.
    np.testing.assert_allclose(mean_output(32, 2), 1 / np.sqrt(np.pi), rtol=2e-3)
    np.testing.assert_allclose(output_second_moment(32, 2), 1, rtol=2e-3)


def test_pairs_are_computed_like_single_values():
    s = np.array([[1.0], [0.0], [2.5]])
    lengths = np.array([3, 1, 100, 3])
    together = output_error(s, lengths)
    assert together.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            np.testing.assert_allclose(
                together[i, j], output_error(s[i, 0], lengths[j]), rtol=1e-13
            )
    assert output_error([], 3).shape == (0,)


@pytest.mark.parametrize(
    ("s", "length", "argument", "says"),
    [
        (-0.1, 10, "score_deviation", "negative"),
        (1e51, 10, "score_deviation", "1e\\+50"),
        (np.nan, 10, "score_deviation", "nan"),
        (1, 0.5, "length", "at least one token"),
        (1, 1e61, "length", "infinite length"),
        ([1, 2], [1, 2, 3], "length", "broadcast"),
    ],
)
def test_wrong_input_is_refused(s, length, argument, says):
    with pytest.raises(InvalidInputError, match=says) as raised:
        output_error(s, length)
    assert raised.value.argument == argument
