import sys
from subprocess import run

import mpmath
import numpy as np
import pytest

from attractor.prompts import row_concentration
from attractor.support.errors import InvalidInputError

RNG = np.random.default_rng(3)
ROWS = {
    "normal": RNG.normal(size=50),
    "heavy tails": RNG.standard_cauchy(50),
    "exponential": -RNG.exponential(size=50),
    "with ties below the top": np.r_[0, np.full(20, -1.5), -4, -4],
    "two": np.array([-3.0, 2.5]),
    "tiny": 1e-300 * RNG.normal(size=9),
    "huge": 1e299 * RNG.normal(size=9),
}


def rate_by_definition(row):
    """The supremum over every gap, counted anew for each in 40 digits, and where it is."""
    gaps = [mpmath.mpf(float(max(row))) - mpmath.mpf(float(s)) for s in row]
    counts = {t: sum(g <= t for g in gaps) for t in set(gaps) - {0}}
    return max((mpmath.log(count) / t, t, count) for t, count in counts.items())


@pytest.mark.parametrize("name", ROWS)
def test_the_rate_is_the_supremum_over_all_gaps(name):
    row = ROWS[name]
    with mpmath.workdps(40):
        rate, gap, count = rate_by_definition(row)
    found = row_concentration(RNG.permutation(row))
    assert float(found.rate) == pytest.approx(float(rate), rel=1e-13)
    assert float(found.gap) == pytest.approx(float(gap), rel=1e-13)
    assert found.count == count and found.tokens == len(row)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ratio", [0.05, 0.5, 0.99, 1.01, 1.5, 4, 30])
def test_attention_lies_between_the_bounds_at_every_temperature(name, ratio):
    row = ROWS[name]
    found = row_concentration(row)
    beta = ratio * float(found.rate)
    with mpmath.workdps(40):
        top = 1 / mpmath.fsum(mpmath.exp(beta * (mpmath.mpf(s) - max(row))) for s in row)
    assert found.top_probability_bound(beta) <= float(top) * (1 + 1e-12)
    assert found.top_probability_ceiling(beta) >= float(top) * (1 - 1e-12)
    if ratio > 1:
        assert found.bound(beta) == pytest.approx(ratio / (ratio - 1), rel=1e-10)
        assert found.sharp_bound(beta) < found.bound(beta)
    else:
        assert np.isinf(found.bound(beta))


@pytest.mark.parametrize("tokens", [1, 2, 31, 32, 33, 100, 10**5])
@pytest.mark.parametrize("ratio", [0.0, 0.03, 0.999999, 1.0, 1.0000001, 1.5, 10, 300, 1e9])
def test_the_sharp_bound_is_that_of_the_least_gaps(tokens, ratio):
    found = row_concentration(-np.log(np.arange(1, tokens + 1)))  # of rate 1, or 0 of one token
    expected = np.arange(1, tokens + 1) ** -float(ratio)
    assert found.sharp_bound(ratio) == pytest.approx(np.sum(expected), rel=1e-12)
    assert found.tokens == tokens


@pytest.mark.parametrize("ratio", [1.05, 1.2, 2.0, 5.0])
def test_gaps_that_grow_as_logarithms_reach_the_zeta_function_and_no_other_row_does(ratio):
    """Each of their gaps is the least that the rate allows."""
    k = np.arange(1, 200_001)
    found = row_concentration(-np.log(k) / 0.7)
    assert found.rate == pytest.approx(0.7, rel=1e-14)
    beta = 0.7 * ratio
    spread = np.exp(-beta * np.log(k) / 0.7).sum()
    assert found.sharp_bound(beta) == pytest.approx(spread, rel=1e-12)
    rest = mpmath.zeta(ratio, k[-1] + 1)  # of tokens that a longer row would have
    assert spread + float(rest) == pytest.approx(float(mpmath.zeta(ratio)), rel=1e-9)
    assert ratio / (ratio - 1) - 1 < float(mpmath.zeta(ratio)) < found.bound(beta)
    for _ in range(20):
        row = RNG.normal(size=RNG.integers(2, 300)) * RNG.exponential()
        other = row_concentration(row)
        spread = np.exp(ratio * other.rate * (row - row.max())).sum()
        assert spread <= other.sharp_bound(ratio * other.rate) * (1 + 1e-12)


def test_the_bound_is_sharp_as_the_temperature_comes_down_to_the_critical_one():
    ratios = [float(mpmath.zeta(r)) * (r - 1) / r for r in (2, 1.1, 1.01, 1.001)]
    np.testing.assert_allclose(ratios, [0.8225, 0.9622, 0.9958, 0.9996], atol=5e-5)


def test_from_the_temperature_for_a_probability_on_the_top_token_has_it():
    scores = RNG.normal(size=(4, 3, 80))
    found = row_concentration(scores)
    for p in (0.0, 0.3, 0.9):
        beta = found.inverse_temperature_for(p)
        weights = np.exp(beta[..., None] * (scores - scores.max(-1, keepdims=True)))
        assert (1 / weights.sum(-1) >= p).all()
        np.testing.assert_allclose(1 / found.bound(beta), p, atol=1e-12)
        assert (found.top_probability_bound(beta) >= p).all()
    np.testing.assert_array_equal(
        found.inverse_temperature_for([[0.5], [0.5], [0.5], [0.5]]), 2 * found.rate
    )


def test_leading_axes_and_masks_are_rows_of_their_own():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(4, 5, 30))
    mask = rng.random((5, 30)) < 0.6
    mask[2] = np.arange(30) == 7
    held = np.where(mask, scores, np.nan)
    found = row_concentration(held, mask)
    assert found.rate.shape == (4, 5)
    for i, j in np.ndindex(4, 5):
        one = row_concentration(scores[i, j, mask[j]])
        for name in ("rate", "gap", "count", "tokens"):
            assert getattr(one, name) == getattr(found, name)[i, j]
    assert found.to_xarray()["rate"].dims == ("row_0", "row_1")
    assert row_concentration(scores[0]).to_xarray()["count"].dims == ("row",)
    moved, rate = row_concentration(4 * scores + 3), row_concentration(scores).rate
    # Rates are inverse gaps of scores near 10, whose last digits the shift rounds away.
    assert (np.abs(4 * moved.rate / rate - 1) <= 1e-13 + 1e-14 * rate).all()


def test_a_token_alone_has_all_attention_and_tied_ones_share_it():
    alone = row_concentration([2.0])
    assert alone.rate == 0 and alone.count == 1 and np.isinf(alone.gap)
    assert alone.bound(0) == alone.bound(5) == alone.top_probability_ceiling(0) == 1
    assert alone.inverse_temperature_for(0.99) == 0
    tied = row_concentration([1.0, 1, 1, -5])
    assert np.isinf(tied.rate) and tied.gap == 0 and tied.count == 3
    assert tied.top_probability_bound(1e9) == 1 / 4 and np.isinf(tied.bound(1e9))
    assert np.isinf(tied.inverse_temperature_for(0.1))
    assert tied.top_probability_ceiling(1e9) == pytest.approx(1 / 3)
    equal = row_concentration(np.zeros((2, 6)))
    np.testing.assert_allclose(equal.top_probability_ceiling([1, 7]), 1 / 6)
    assert "2, which never concentrate" in repr(equal)


def test_says_what_it_found():
    words = repr(row_concentration([0.0, -1, -1, -1]))
    assert "Concentration of a row of scores" in words and "inverse temperature 2.773" in words
    words = repr(row_concentration([[0.0, -1], [0, -2]], [[True, True], [True, False]]))
    assert "2 rows" in words and "1 to 2" in words and "0 to 0.6931" in words
    assert "no rows" in repr(row_concentration(np.zeros((0, 3))))


@pytest.mark.parametrize(
    ("scores", "mask", "named"),
    [
        (3.0, None, "scores: the shape"),
        (np.zeros((3, 0)), None, "scores: the shape"),
        ([1.0, np.nan], None, "scores: the entry at"),
        ([1.0, 1e301], None, "scores: the entry at"),
        ([1.0, np.inf], [True, True], "scores: the entry at"),
        ([1.0, 2.0], [1, 0], "mask: the data type"),
        ([1.0, 2.0], [True], "mask: the shape"),
        ([1.0, 2.0], True, "mask: the shape"),
        (np.zeros((3, 2)), np.ones((2, 2), bool), "mask: the shape"),
        ([1.0, 2.0], [True, False, True], "mask: the shape"),
        ([1.0, 2.0], [[True, False]], "mask: the shape"),
        ([1.0, 2.0], [False, False], "mask: a row has no token"),
    ],
)
def test_what_does_not_fit_is_named(scores, mask, named):
    with pytest.raises(InvalidInputError, match=rf"^{named}"):
        row_concentration(scores, mask)


@pytest.mark.parametrize(
    "method", ["bound", "sharp_bound", "top_probability_bound", "top_probability_ceiling"]
)
def test_temperatures_are_checked(method):
    found = row_concentration(np.zeros((2, 3)))
    for value in (-1, np.nan, [1.0, 2, 3]):
        with pytest.raises(InvalidInputError, match=r"^inverse_temperature: "):
            getattr(found, method)(value)
    for value in (1, -0.1, [0.1] * 3):
        with pytest.raises(InvalidInputError, match=r"^probability: "):
            found.inverse_temperature_for(value)


@pytest.mark.processes
def test_it_needs_no_jax():
    code = (
        "import sys; from attractor.prompts import row_concentration; "
        "repr(row_concentration([1., 2.])); sys.exit('jax' in sys.modules)"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0
