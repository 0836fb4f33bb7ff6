"""Norms of blocks: what they are, how they are written, and how matrices are cut."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.geometry import Block, BlockMaximum, BlockSum, Lp, Nuclear, Spectral, get_geometry
from attractor.support.errors import InvalidInputError

MIXED = "max(2 spectral[0:3, 0:4], l_inf[3:4, 0:4], 0.5 l_1.5[:, 4:])"


def test_each_block_has_its_norm_and_weight():
    W = np.random.default_rng(0).normal(size=(3, 4, 6))
    parts = [(2, "spectral", W[:, :3, :4]), (1, "l_inf", W[:, 3:, :4]), (0.5, "l_1.5", W[..., 4:])]
    norms = [c * get_geometry(name).norm(part) for c, name, part in parts]
    duals = [get_geometry(name).dual_norm(part) / c for c, name, part in parts]
    largest, total = get_geometry(MIXED), get_geometry(MIXED.replace("max", "sum"))
    np.testing.assert_allclose(largest.norm(W), np.max(norms, 0), rtol=1e-15)
    np.testing.assert_allclose(largest.dual_norm(W), np.sum(duals, 0), rtol=1e-15)
    np.testing.assert_allclose(total.norm(W), np.sum(norms, 0), rtol=1e-15)
    np.testing.assert_allclose(total.dual_norm(W), np.max(duals, 0), rtol=1e-15)


def test_heads_stand_in_rows_or_columns_or_both():
    W = np.random.default_rng(1).normal(size=(6, 8))
    heads = [np.linalg.norm(W[i : i + 2], 2) for i in (0, 2, 4)]
    # LAPACK decomposes a block and its transpose by different operations.
    for found in (
        BlockMaximum.each("spectral", rows=2).norm(W),
        BlockMaximum.each("spectral", columns=2).norm(W.T),
    ):
        assert found == pytest.approx(max(heads), rel=1e-14)
    tiles = [abs(W[i : i + 3, k : k + 4]).sum() for i in (0, 3) for k in (0, 4)]
    assert BlockSum.each("l_1", rows=3, columns=4).norm(W) == pytest.approx(sum(tiles))


def test_the_steepest_direction_moves_each_block_or_the_best_one():
    G = np.random.default_rng(2).normal(size=(4, 6))
    largest, total = get_geometry(MIXED), get_geometry(MIXED.replace("max", "sum"))
    D = largest.steepest_descent_direction(G)
    np.testing.assert_allclose(2 * D[:3, :4], Spectral().steepest_descent_direction(G[:3, :4]))
    np.testing.assert_array_equal(D[3, :4], np.sign(G[3, :4]))
    alone = total.steepest_descent_direction(G)
    moved = [alone[piece.rows, piece.columns].any() for piece in total.pieces(G.shape)]
    duals = [p.geometry.dual_norm(G[p[:2]]) / p.weight for p in total.pieces(G.shape)]
    assert moved == [size == max(duals) for size in duals]
    same = np.where(alone != 0, D, 0)
    np.testing.assert_array_equal(alone, same)
    with jax.enable_x64(True):
        for geometry, wanted in ((largest, D), (total, alone)):
            found = jax.jit(geometry.steepest_descent_direction)(jnp.asarray(G))
            np.testing.assert_allclose(found, wanted, atol=1e-14)


def test_blocks_of_very_different_sizes_keep_their_digits():
    norm = BlockMaximum("spectral[0:2]", "1e-8 l_3[2:4]", "1e8 nuclear[4:6]")
    G = np.random.default_rng(3).normal(size=(6, 4))
    wanted = norm.steepest_descent_direction(G)
    sizes = np.repeat([1e-300, 1e300, 0.0], 2)[:, None]
    found = norm.steepest_descent_direction(sizes * G)
    np.testing.assert_allclose(found[:4], wanted[:4], rtol=1e-12)
    assert not found[4:].any()


def test_names_say_what_the_norm_is_and_lead_back():
    norm = BlockMaximum("l_inf[3:4]", Block(Spectral(), rows=(0, 3), weight=2))
    assert norm.name == "max(2 spectral[0:3], l_inf[3:4])"
    assert get_geometry(" max( l_inf[3:4] ,2 * spectral[:3] ) ".strip()) == norm
    assert repr(norm) == "BlockMaximum('2 spectral[0:3]', 'l_inf[3:4]')"
    assert BlockMaximum.each(Nuclear(), columns=2).name == "max(nuclear[:, : by 2])"
    assert get_geometry("sum(nuclear[: by 3, 1:])").blocks[0].columns == (1, None, None)
    assert BlockMaximum("l_2[:]").unique
    assert not BlockMaximum("l_2[0:1]", "l_2[1:]").unique
    assert BlockSum("spectral[:]").unitarily_invariant


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("max()", "no block.*2 spectral"),
        ("max(spectral)", "'spectral' is no block"),
        ("max(2 spectrl[0:3])", "Did you mean spectral"),
        ("max(spectral[3:3])", "3:3 is empty"),
        ("max(spectral[0:4 by 0])", "0:4 by 0 is empty"),
        ("max(spectral[1,2,3])", "no place"),
        ("sum(1e spectral[:])", "'1e' is no number"),
        ("sum(0 spectral[:])", "weight: it is 0.0"),
        ("max(0.5l_1[:])", "no block"),
    ],
)
def test_what_is_written_otherwise_is_refused_with_the_right_way(text, told):
    with pytest.raises(InvalidInputError, match=told):
        get_geometry(text)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: BlockMaximum(), "blocks: there are none"),
        (lambda: BlockMaximum(3), "blocks: 3 is none"),
        (lambda: Block("l_1", rows=(0.5, 2)), "rows: they are"),
        (lambda: Block("l_1", columns=3), "columns: they are 3"),
        (lambda: Block("l_1", weight=np.inf), "weight: it is inf"),
        (lambda: Block(BlockSum("l_1[:]")), "itself in blocks"),
        (lambda: BlockSum.each("l_1", rows=0), "is empty"),
    ],
)
def test_arguments_that_make_no_block_are_refused(make, told):
    with pytest.raises(InvalidInputError, match=told):
        make()


@pytest.mark.parametrize(
    ("norm", "told"),
    [
        (BlockMaximum("l_1[0:3]"), r"row 3, column 0 of a 4 x 5 matrix lies in no block"),
        (BlockMaximum("l_1[0:3]", "l_1[2:4]"), r"row 2, column 0 .* lies in 2 blocks"),
        (BlockMaximum("l_1[0:4]", "l_1[4:6]"), r"l_1\[4:6\] does not fit a matrix of 4 rows"),
        (BlockMaximum.each("l_1", columns=2), r"l_1\[:, : by 2\] does not fit .* 5 columns"),
    ],
)
def test_blocks_that_do_not_cover_a_matrix_once_are_refused(norm, told):
    for method in (norm.norm, norm.dual_norm, norm.steepest_descent_direction):
        with pytest.raises(InvalidInputError, match=told):
            method(np.ones((4, 5)))


def test_one_block_is_the_norm_itself():
    W = np.random.default_rng(4).normal(size=(3, 4))
    for norm in (Lp(1.5), Spectral()):
        for kind in (BlockMaximum, BlockSum):
            one = kind(Block(norm))
            for name in ("norm", "dual_norm", "steepest_descent_direction"):
                np.testing.assert_array_equal(getattr(one, name)(W), getattr(norm, name)(W))
            assert one.norm_rounding(3, 4) == norm.norm_rounding(3, 4)


@pytest.mark.parametrize("make", [BlockMaximum, BlockSum])
def test_norms_of_blocks_are_exact_within_a_rounding_that_is_small(make):
    norm = make(Block("l_1", weight=0.3, rows=(0, 2)), Block("l_1", weight=7.0, rows=(2, 4)))
    allowed = norm.norm_rounding(4, 3)
    assert allowed < 1e-13
    for W in np.random.default_rng(5).normal(size=(50, 4, 3)):
        exact = [Fraction(weight) * sum(abs(Fraction(x)) for x in part.ravel().tolist())
                 for weight, part in ((0.3, W[:2]), (7.0, W[2:]))]  # fmt: skip
        truth = max(exact) if make is BlockMaximum else sum(exact)
        assert abs(Fraction(float(norm.norm(W))) - truth) <= Fraction(allowed) * truth
