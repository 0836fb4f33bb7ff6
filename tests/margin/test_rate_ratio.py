import warnings

import cvxpy as cp
import numpy as np
import pytest
from conic_oracle import entrywise, frobenius, nuclear, spectral
from joint_examples import SLACK, TIGHT, published_joint, random_joint

from attractor.geometry import Frobenius, Lp, Nuclear, Spectral
from attractor.margin import (
    MarginProblem,
    label_problem,
    label_support,
    rate_ratio_direction,
    relaxed_problem,
    solve,
)
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError, Status
from attractor.tokens import Tokens

NORMS = {
    "frobenius": (Frobenius(), frobenius),
    "l_1": (Lp(1), entrywise(1)),
    "l_1.5": (Lp(1.5), entrywise(1.5)),
    "l_3": (Lp(3), entrywise(3)),
    "l_inf": (Lp(np.inf), entrywise("inf")),
    "nuclear": (Nuclear(), nuclear),
    "spectral": (Spectral(), spectral),
}


def slope(found):
    return found.direction[1, 0] / found.direction[0, 0]


def largest_smallest_margin(found, norm):
    """The maximum over unit matrices as a cone program, given the margins of the head."""
    problem = found.problem
    W, value = cp.Variable(problem.shape), cp.Variable()
    rows = (problem.left[:, :, None] * problem.right[:, None, :]).reshape(len(problem.left), -1)
    margins = rows @ cp.vec(W, order="C")
    terms = float(found.ratio) * found.label_margins[problem.sequence, problem.query]
    size, more = norm(W)
    model = cp.Problem(
        cp.Maximize(value), [value <= terms + margins, margins >= 0, size <= 1, *more]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is asked for more than it promises
        model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return model.value


def test_published_data_with_slack():
    tokens, selection = published_joint(SLACK)
    found = rate_ratio_direction(tokens, selection, 0.5)
    # The second and third example balance: x - y = x / 2 + 3 y / 2 + 1 / 4 on the circle.
    y = (-5 + np.sqrt(5**2 + 4 * 26 * 0.75)) / (2 * 26)
    x = 0.5 + 5 * y
    assert x**2 + y**2 == pytest.approx(1)
    assert slope(found) == pytest.approx(y / x, rel=1e-9)
    assert slope(found) == pytest.approx(0.0996, abs=1.5e-4)
    assert found.critical_ratio == pytest.approx(1, rel=1e-9)
    assert found.support_tokens[:, 0, 0].tolist() == [False, True, True]
    for ratio in (1, 1.5, 1e12):
        assert slope(rate_ratio_direction(tokens, selection, ratio)) == pytest.approx(0, abs=1e-9)
    assert slope(rate_ratio_direction(tokens, selection, 1e-9)) == pytest.approx(0.2, rel=1e-7)
    assert slope(rate_ratio_direction(tokens, selection, 0.999)) > 1e-4


def test_published_tight_data_do_not_depend_on_the_ratio():
    tokens, selection = published_joint(TIGHT)
    for ratio in (0, 0.3, 1e9):
        found = rate_ratio_direction(tokens, selection, ratio)
        assert slope(found) == pytest.approx(0.25, rel=1e-9)
        assert found.critical_ratio == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", NORMS)
def test_values_agree_with_a_conic_solver(name):
    geometry, norm = NORMS[name]
    for seed, ratio in ((1, 0.1), (2, 0.6), (3, 4.0)):
        found = rate_ratio_direction(*random_joint(seed), ratio, geometry)
        assert found.status is Status.OPTIMAL
        assert geometry.norm(found.direction) == pytest.approx(1, abs=1e-12)
        margins = found.problem.margins(found.direction)
        terms = ratio * found.label_margins[found.problem.sequence, found.problem.query]
        assert (terms + margins).min() == pytest.approx(found.value, rel=1e-12)
        assert margins.min() > -1e-12
        assert found.value == pytest.approx(largest_smallest_margin(found, norm), rel=1e-6)


@pytest.mark.parametrize("name", ["frobenius", "l_1.5", "nuclear"])
def test_multipliers_prove_the_value(name):
    geometry, _ = NORMS[name]
    barriers = 0
    for seed in range(12):
        found = rate_ratio_direction(*random_joint(seed, n=4, d=3), 2.0, geometry)
        if found.status is Status.INFEASIBLE:
            continue
        w, u = found.weights, found.barrier_weights
        assert (w >= 0).all() and (u >= 0).all()
        assert w.sum() == pytest.approx(1)
        terms = 2.0 * found.label_margins[found.problem.sequence, found.problem.query]
        bound = w @ terms + geometry.dual_norm(found.problem.apply_adjoint(w + u))
        assert bound >= found.value - 1e-12
        assert bound - found.value <= 1.01 * found.gap * (bound - terms.min()) + 1e-12
        assert found.gap <= 1e-9
        at_barrier = found.barrier_tokens[found.problem.sequence, 0, found.problem.token]
        assert (u[~at_barrier] < 1e-9).all()
        barriers += bool((u > 1e-6).any())
    assert barriers > 0


def test_the_ends_are_the_plain_and_the_relaxed_problem():
    seen = 0
    for seed in range(8):
        tokens, selection = random_joint(seed, n=4, d=5)
        label = solve(label_problem(tokens, selection))
        plain = solve(MarginProblem.from_selection(tokens, selection))
        relaxed = solve(relaxed_problem(tokens, selection, label_support(label)))
        first = rate_ratio_direction(tokens, selection, 0)
        np.testing.assert_allclose(first.direction, plain.W / plain.norm, atol=1e-9)
        assert first.value == pytest.approx(1 / plain.norm)
        critical = float(first.critical_ratio)
        beyond = rate_ratio_direction(tokens, selection, 1.001 * critical)
        np.testing.assert_allclose(beyond.direction, relaxed.W / relaxed.norm, atol=1e-9)
        if critical > 0:
            below = rate_ratio_direction(tokens, selection, 0.9 * critical)
            assert np.abs(below.direction - beyond.direction).max() > 1e-4
            seen += 1
    assert seen > 2


def test_batches_with_a_ratio_for_each_instance():
    keys, queries, labels, index = [], [], [], []
    for seed in range(5):
        tokens, selection = random_joint(seed)
        keys.append(tokens.keys)
        queries.append(tokens.queries)
        labels.append(tokens.labels)
        index.append(selection.index)
    keys[4] = np.repeat(keys[4][:, :1], 3, axis=1)  # copies, which no matrix tells apart
    tokens = Tokens(np.stack(keys), np.stack(queries), np.stack(labels))
    selection = Selection.from_index(tokens, np.stack(index))
    ratios = np.array([0, 0.2, 1, 5, 1])
    with pytest.warns(UserWarning, match="cannot be met"):
        together = rate_ratio_direction(tokens, selection, ratios)
    assert [*together.status] == [Status.OPTIMAL] * 4 + [Status.INFEASIBLE]
    assert np.isnan(together.direction[4]).all() and np.isnan(together.value[4])
    assert not together.support_tokens[4].any()
    for i in range(4):
        alone = rate_ratio_direction(tokens[i], selection[i], ratios[i])
        np.testing.assert_allclose(together.direction[i], alone.direction, atol=1e-10)
        np.testing.assert_array_equal(together.support_tokens[i], alone.support_tokens)
        assert together.value[i] == pytest.approx(alone.value)
        assert together.critical_ratio[i] == pytest.approx(alone.critical_ratio)
    assert "4 of them found" in repr(together)
    assert together.to_xarray()["direction"].dims == ("instance", "row", "column")


def test_what_has_no_direction_says_so():
    tokens, _ = published_joint(SLACK)
    same = Tokens.prompt_vector(tokens.keys[:, ::-1] * [[[1, 0]]], [1, -1, 1])
    found = rate_ratio_direction(same, Selection.from_index(same, [0, 0, 0]), 1.0)
    assert found.label.status is Status.INFEASIBLE
    assert found.status is Status.INFEASIBLE
    assert np.isnan(found.direction).all()
    assert "infeasible" in repr(found)


def test_rows_without_a_choice_count_for_the_head_alone():
    keys = np.concatenate([published_joint(SLACK)[0].keys, [[[0.0, 9], [0.0, 0.5]]]])
    mask = np.ones((4, 2), dtype=bool)
    mask[3, 0] = False
    tokens = Tokens.prompt_vector(keys, [1, -1, 1, 1], mask=mask)
    found = rate_ratio_direction(tokens, Selection.from_index(tokens, [1, 1, 1, 1]), 0.2)
    # Now only the last row supports the head, and what it leaves to others is compared.
    assert label_support(found.label)[:, 0].tolist() == [False, False, False, True]
    reference = largest_smallest_margin(found, frobenius)
    assert found.value == pytest.approx(reference, rel=1e-8)
    assert found.status is Status.OPTIMAL


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_scale_of_keys_scales_the_ratio(scale):
    tokens, selection = published_joint(SLACK)
    scaled = Tokens(tokens.keys * scale, tokens.queries, tokens.labels, values=tokens.values)
    found = rate_ratio_direction(scaled, selection, 0.5 * scale)
    expected = rate_ratio_direction(tokens, selection, 0.5)
    np.testing.assert_allclose(found.direction, expected.direction, rtol=1e-9)
    assert found.critical_ratio == pytest.approx(scale, rel=1e-9)
    assert found.status is Status.OPTIMAL


def test_the_head_may_have_a_norm_of_its_own():
    tokens, selection = random_joint(2)
    label = solve(label_problem(tokens, selection), Lp(np.inf))
    found = rate_ratio_direction(tokens, selection, 0.5, label=label)
    margins = label.problem.margins(label.W) / np.abs(label.W).max()
    np.testing.assert_allclose(found.label_margins.ravel(), margins, rtol=1e-6)
    assert found.value == pytest.approx(largest_smallest_margin(found, frobenius), rel=1e-8)


def test_bad_input_is_refused():
    tokens, selection = published_joint(SLACK)
    for ratio in (-1, np.nan, np.inf, [1, 2, 3], "a"):
        with pytest.raises(InvalidInputError, match="ratio"):
            rate_ratio_direction(tokens, selection, ratio)
    other = solve(label_problem(*published_joint(TIGHT)))
    with pytest.raises(InvalidInputError, match="label: it does not belong"):
        rate_ratio_direction(tokens, selection, 1.0, label=other)
    with pytest.raises(InvalidInputError, match="tolerance"):
        rate_ratio_direction(tokens, selection, 1.0, tolerance=2)
