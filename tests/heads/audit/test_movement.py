"""The movement of one head, against matrices of hidden space written out."""

import dataclasses

import numpy as np
import pytest
from made_checkpoints import HIDDEN, WIDTH, captured_heads, weights

from attractor.heads import CaptureStatus
from attractor.heads.audit.margin_solution import problem_of, rotation_about, solved
from attractor.heads.captured.rows import trained_factors
from attractor.heads.checkpoints._audit_checkpoints import GAP, Change, Factors, _End, movements
from attractor.support.randomness import generator

KEY = (0, 0, 0)
FACTORS = [Factors.of(captured_heads(*weights(seed)).layer(0), 0) for seed in (1, 2)]


def dense(factors, R=None):
    R = np.eye(len(factors.key)) if R is None else R
    return factors.key.T @ R @ factors.query


def cosine(one, other):
    return (one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other)


def tangential(W, V):
    return W - V - ((W - V) * V).sum() / (V * V).sum() * V


def moved(first, last, head=0, **options):
    asked = {"norms": ("frobenius",), "draws": 3, "key": KEY[:2]} | options
    return movements([first.layer(0)], last.layer(0), head, **asked)[0]


def test_products_and_cosines_are_those_of_hidden_space(rng):
    first, last = FACTORS
    layer = captured_heads(*weights(2)).layer(0)
    rows = _End.of(layer, 0, ("frobenius",), 0).rows
    np.testing.assert_allclose(rows.key @ rows.key.T, np.eye(WIDTH), atol=1e-12)
    np.testing.assert_allclose(rows.query @ rows.query.T, np.eye(WIDTH + 1), atol=1e-12)
    assert rows.query.shape == (WIDTH + 1, HIDDEN + 1)
    M = rng.normal(size=(WIDTH, WIDTH + 1))
    star, change = rows.key.T @ M @ rows.query, Change(first, last, rows)
    for R in (np.eye(WIDTH), rotation_about(rng, np.ones(WIDTH))):
        V, W = dense(first, R), dense(last, R)
        expected = [(W * W).sum(), (W * V).sum(), (V * V).sum()]
        np.testing.assert_allclose(change.products(R), expected)
        D = tangential(W, V)
        part = star - (star * V).sum() / (V * V).sum() * V
        assert change.cosine(M, R) == pytest.approx(cosine(D, part))


def test_a_turn_straight_to_the_solution_has_a_cosine_of_one_however_near_it_is():
    K, Q, b = weights(1)
    layer = captured_heads(K, Q, b).layer(0)
    end = _End.of(layer, 0, ("frobenius",), 0)
    left, right = end.selections.left, end.selections.right
    W, M = left.T @ right, end.solutions[0].W
    for share in (0.5, 0.01):  # from between both, or nearly from M
        V = share * W / np.linalg.norm(W) + (1 - share) * M / np.linalg.norm(M)
        U, S, T = np.linalg.svd(V, full_matrices=False)
        before = Factors((U * S).T @ end.rows.key, T @ end.rows.query)
        aim = M / np.linalg.norm(M)
        U, S, T = np.linalg.svd(V + 0.1 * aim, full_matrices=False)
        after = Factors((U * S).T @ end.rows.key, T @ end.rows.query)
        found = Change(before, after, end.rows).cosine(M, np.eye(len(S)))
        assert found == pytest.approx(1, abs=1e-6)


def test_variables_follow_from_matrices_and_draws_are_turned_alike():
    first, last = (captured_heads(*weights(seed)) for seed in (1, 2))
    found = moved(first, last)
    V, W = (dense(one) for one in FACTORS)
    assert found["norm_ratio"] == pytest.approx(np.linalg.norm(W) / np.linalg.norm(V))
    assert found["radial_cosine"] == pytest.approx(cosine(W - V, V))
    attention = [one.layer(0).attention[:, 0] for one in (first, last)]
    same = attention[0].argmax(-1) == attention[1].argmax(-1)
    assert found["agreement"] == same.mean() and found["queries"] == len(same)
    assert found["top_probability_after"] == np.median(attention[1].max(-1))
    tokens, left, right = trained_factors(last.layer(0), 0)
    rows = _End.of(last.layer(0), 0, ("frobenius",), 0).rows
    means = [one.layer(0).queries[:, 0].mean(0) for one in (last, first)]
    for draw, of_draw in enumerate(found["cosine_null"]):
        axes = [means[0], means[1] - means[1] @ means[0] / (means[0] @ means[0]) * means[0]]
        R = rotation_about(generator(*KEY, draw, purpose="rotation of checkpoints"), *axes)
        for mean in means:  # the part of scores without the query stays, at both
            np.testing.assert_allclose(R @ mean, mean, atol=1e-12)
        turned = left.T @ R @ right
        M = solved(problem_of(tokens, turned), turned, "frobenius", GAP).W
        V, W = (dense(one, R) for one in FACTORS)
        star = rows.key.T @ M @ rows.query
        part = star - (star * V).sum() / (V * V).sum() * V
        assert of_draw == pytest.approx(cosine(tangential(W, V), part), abs=1e-9)
    assert found["direction"] == "" and max(found["gap"]) < GAP and found["gap_null"] < GAP


@pytest.mark.parametrize("factor", [0.97, 1.2, 1.0])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_what_only_grew_or_shrank_is_not_asked_where_it_turned(factor, precision):
    K, Q, b = (one.astype(precision) for one in weights(1))
    factor = precision(factor)
    found = moved(captured_heads(K, Q, b), captured_heads(factor * K, factor * Q, factor * b))
    assert "cosine" not in found
    if factor != 1:
        assert found["radial_cosine"] == pytest.approx(np.sign(factor - 1), abs=1e-5)
    assert found["norm_ratio"] == pytest.approx(factor**2, rel=1e-6)
    assert found["agreement"] > 0.9
    assert found["direction"].startswith("not asked: ")
    assert ("nothing changed" in found["direction"]) == (factor == 1)


@pytest.mark.parametrize(
    "changed, why",
    [
        ({"projections": None}, "no linear projections"),
        ({"key": None}, "keys are rotated by position"),
        ({"status": ("not bilinear", "bilinear")}, "not bilinear"),
    ],
)
def test_heads_without_a_matrix_are_not_asked_and_why(changed, why):
    layers = [captured_heads(*weights(seed)).layer(0) for seed in (1, 2)]
    if "key" in changed:
        changed = {"projections": dataclasses.replace(layers[1].projections, key=None)}
    if "status" in changed:
        changed = {"status": tuple(map(CaptureStatus, changed["status"]))}
    layers[1] = dataclasses.replace(layers[1], **changed)
    found = movements([layers[0]], layers[1], 0, norms=("frobenius",), draws=3, key=KEY[:2])[0]
    assert found["direction"] == f"not asked: {why}" and "norm_ratio" not in found
    assert 0 <= found["agreement"] <= 1  # attention is known all the same


def test_degenerate_heads_are_not_asked():
    K, Q, b = weights(1)
    zero = captured_heads(K, 0 * Q, 0 * b)
    assert moved(zero, captured_heads(K, Q, b))["direction"] == "not asked: a matrix is zero"
    alike = {"keys": np.ones((32, 2, 6, WIDTH))}
    found = moved(captured_heads(K, 2 * Q, b), captured_heads(K, Q, b, **alike))
    assert found["direction"] == "not asked: nothing to choose among"
