"""Expansions against differences in high precision, at the points where they are delicate too."""

import mpmath as mp
import numpy as np
import pytest

from attractor.margin.smooth import norm_expansions
from attractor.margin.smooth.norm_expansions import EntrywiseExpansions, SingularValueExpansions

SHAPES = [(3, 3), (4, 2), (2, 4), (1, 3), (1, 1)]
EXPONENTS = [2.2, 3.0, 11.0, 101.0]


def half_square(sizes, exponent):
    """``||.||^2 / 2`` in the working precision of mpmath."""
    return sum(size ** mp.mpf(exponent) for size in sizes) ** (2 / mp.mpf(exponent)) / 2


def entries(Z):
    return [abs(Z[i, j]) for i in range(Z.rows) for j in range(Z.cols)]


def singular_values(Z):
    square = Z * Z.T if Z.rows <= Z.cols else Z.T * Z
    return [mp.sqrt(abs(v)) for v in mp.eigsy(square, eigvals_only=True)]


def differences(sizes_of, Z, E, exponent):
    """First and second derivative of ``||Z + t E||^2 / 2`` at t = 0."""
    with mp.workdps(120):
        Z, E, t = mp.matrix(Z.tolist()), mp.matrix(E.tolist()), mp.mpf(10) ** -25
        behind, here, ahead = (half_square(sizes_of(Z + s * t * E), exponent) for s in (-1, 0, 1))
        return float((ahead - behind) / (2 * t)), float((ahead - 2 * here + behind) / t**2)


def expansion_of(kind, Z, exponent):
    ones = np.ones((1, 1, Z.shape[0])), np.ones((1, 1, Z.shape[1]))
    return kind(*ones).at(Z[None], np.full((1, 1, 1), exponent))


def with_singular_values(values, shape, rng):
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in shape)
    Z = np.zeros(shape)
    np.fill_diagonal(Z, values)
    return U @ Z @ V.T


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("kind", "sizes_of"),
    [(EntrywiseExpansions, entries), (SingularValueExpansions, singular_values)],
)
def test_gradient_and_hessian(kind, sizes_of, shape, exponent):
    rng = np.random.default_rng(0)
    Z, E = rng.normal(size=shape), rng.normal(size=shape)
    expansion = expansion_of(kind, Z, exponent)
    slope, bend = differences(sizes_of, Z, E, exponent)
    assert (expansion.gradient[0] * E).sum() == pytest.approx(slope, rel=1e-11)
    assert second_order(expansion, E, exponent) == pytest.approx(bend, rel=1e-9)
    assert expansion.norm.item() ** 2 / 2 == pytest.approx(
        float(half_square(sizes_of(mp.matrix(Z.tolist())), exponent)), rel=1e-12
    )


def second_order(expansion, E, exponent):
    inside = expansion.frame.enter(E[None])
    straight = (expansion.curvature * inside**2).sum()
    return straight - (exponent - 2) * (expansion.normal * inside).sum() ** 2


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize(
    ("shape", "values"),
    [
        ((3, 3), (2.0, 2.0, 2.0)),
        ((3, 3), (2.0, 2.0, 1.0)),
        ((3, 3), (2.0, 2.0 * (1 - 1e-13), 1.0)),
        ((3, 3), (2.0, 1.0, 0.0)),
        ((3, 3), (1.0, 0.0, 0.0)),
        ((4, 2), (1.0, 1.0)),
        ((2, 4), (1.0, 0.0)),
        ((3, 3), (1.0, 1e-9, 1e-9)),
    ],
)
def test_hessian_at_equal_and_vanishing_singular_values(shape, values, exponent):
    rng = np.random.default_rng(1)
    Z, E = with_singular_values(values, shape, rng), rng.normal(size=shape)
    expansion = expansion_of(SingularValueExpansions, Z, exponent)
    slope, bend = differences(singular_values, Z, E, exponent)
    assert (expansion.gradient[0] * E).sum() == pytest.approx(slope, rel=1e-10)
    # The curvature at singular values of zero grows like size^(k - 2): 1e-16 is not quite zero.
    blur = 1e-9 + 1e-15 ** (exponent - 2) * (E**2).sum()
    assert second_order(expansion, E, exponent) == pytest.approx(bend, rel=1e-8, abs=blur)


@pytest.mark.parametrize("kind", [EntrywiseExpansions, SingularValueExpansions])
def test_zero_entries_and_the_zero_matrix_are_finite(kind):
    for Z in (np.zeros((2, 3)), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])):
        expansion = expansion_of(kind, Z, 3.0)
        for array in (expansion.norm, expansion.gradient, expansion.curvature):
            assert np.isfinite(array).all()
        np.testing.assert_allclose(expansion.gradient[0], Z, atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_frames_are_orthonormal(shape):
    rng = np.random.default_rng(2)
    Z, E, H = (rng.normal(size=shape) for _ in range(3))
    frame = expansion_of(SingularValueExpansions, Z, 3.0).frame
    inside = frame.enter(E[None])
    np.testing.assert_allclose(frame.leave(inside)[0], E, atol=1e-14)
    assert (inside * frame.enter(H[None])).sum() == pytest.approx((E * H).sum(), abs=1e-13)


@pytest.mark.parametrize("most_entries", [2**22, 20])
@pytest.mark.parametrize("kind", [EntrywiseExpansions, SingularValueExpansions])
def test_gram_weighs_the_coordinates_of_the_constraints(kind, most_entries, monkeypatch):
    monkeypatch.setattr(norm_expansions, "_MOST_ENTRIES", most_entries)
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 3))
    weights, Z = rng.random((2, 4, 3)), rng.normal(size=(2, 4, 3))
    frame = kind(left, right).at(Z, np.full((2, 1, 1), 4.0)).frame
    rows = np.stack(
        [frame.enter(left[:, j, :, None] * right[:, j, None, :]) for j in range(5)], axis=1
    )
    expected = np.einsum("kide,kjde,kde->kij", rows, rows, weights)
    np.testing.assert_allclose(frame.gram(weights), expected, atol=1e-13)
    chosen = frame.choose([1])
    np.testing.assert_allclose(chosen.gram(weights[[1]]), expected[[1]], atol=1e-13)


@pytest.mark.parametrize("kind", [EntrywiseExpansions, SingularValueExpansions])
def test_a_matrix_that_is_not_finite_harms_no_other(kind):
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(3, 2, 2))
    whole = kind(np.ones((3, 1, 2)), np.ones((3, 1, 2)))
    exponent = np.full((3, 1, 1), 3.0)
    expected = whole.at(Z, exponent).gradient[[0, 2]]
    Z[1] = np.nan
    with np.errstate(invalid="ignore"):
        gradient = whole.at(Z, exponent).gradient
    np.testing.assert_array_equal(gradient[[0, 2]], expected)
    assert np.isnan(gradient[1]).all()
