"""The margin problem of several attention heads, against problems solved by head and by cvxpy."""

import cvxpy as cp
import numpy as np
import pytest

import attractor as at
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(0)
    tokens = at.Tokens(
        draw.normal(size=(3, 4, 4)), draw.normal(size=(3, 3)), labels=draw.choice([-1.0, 1.0], 3)
    )
    heads = at.PredictionHeads([at.LinearHead(v) for v in draw.normal(size=(2, 4))])
    return tokens, at.optimal_tokens(tokens, heads)


def test_optimal_tokens_of_prediction_heads_are_those_of_each(data):
    draw = np.random.default_rng(1)
    keys, queries = draw.normal(size=(5, 3, 4, 4)), draw.normal(size=(5, 3, 2, 2))
    tokens = at.Tokens(keys, queries, labels=draw.choice([-1.0, 1.0], (5, 3, 2)))
    each = [at.LinearHead(draw.normal(size=(5, 4))), at.ReLUHead(draw.normal(size=(4, 3)))]
    found = at.optimal_tokens(tokens, at.PredictionHeads(each))
    scores = at.token_scores(tokens, at.PredictionHeads(each))
    for head, own in enumerate(each):
        assert found[head] == at.optimal_tokens(tokens, own)
        assert np.array_equal(scores[head], at.token_scores(tokens, own))


@pytest.mark.parametrize(
    ("geometry", "arrangement", "together"),
    [
        ("frobenius", "stacked", np.linalg.norm),
        ("frobenius", "side by side", np.linalg.norm),
        ("l_1", "stacked", np.sum),
        ("l_inf", "stacked", np.max),
        ("spectral", "block diagonal", np.max),
        ("nuclear", "block diagonal", np.sum),
    ],
)
def test_what_descends_in_every_head_by_itself_is_solved_by_head(
    data, geometry, arrangement, together
):
    tokens, selection = data
    problem = at.MarginProblem.from_heads(tokens, selection, arrangement=arrangement)
    solution = at.solve(problem, geometry)
    alone = [
        at.solve(at.MarginProblem.from_selection(tokens, selection[h]), geometry) for h in (0, 1)
    ]
    assert solution.value == pytest.approx(together([one.value for one in alone]), rel=1e-7)
    assert solution.gap < 1e-6
    own = at.split_heads(solution.W, 2, arrangement)
    for head, one in enumerate(alone):
        assert one.problem.margins(own[head]).min() == pytest.approx(1, abs=1e-7) or geometry in (
            "l_inf", "spectral",
        )  # fmt: skip
        if geometry == "frobenius":
            assert own[head] == pytest.approx(one.W, abs=1e-7)


@pytest.mark.parametrize("geometry", ["spectral", "nuclear"])
def test_heads_side_by_side_are_coupled_as_cvxpy_finds(data, geometry):
    tokens, selection = data
    problem = at.MarginProblem.from_heads(tokens, selection, arrangement="side by side")
    solution = at.solve(problem, geometry)
    Ws = [cp.Variable((4, 3)) for _ in range(2)]
    constraints = []
    for head, own in enumerate(Ws):
        for i, t in enumerate(selection[head].index):
            x, z = tokens.keys[i], tokens.queries[i, 0]
            constraints += [(x[t] - x[s]) @ own @ z >= 1 for s in range(4) if s != t]
    norm = cp.sigma_max if geometry == "spectral" else cp.normNuc
    value = cp.Problem(cp.Minimize(norm(cp.hstack(Ws))), constraints).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9
    )
    assert solution.value == pytest.approx(value, rel=1e-6) and solution.gap < 1e-6
    apart = at.solve(at.MarginProblem.from_heads(
        tokens, selection, arrangement="block diagonal"), geometry)  # fmt: skip
    larger, smaller = sorted([solution.value, apart.value], reverse=True)
    assert larger > 1.001 * smaller  # it is another problem than that of heads apart


def test_constraints_name_the_sequence_of_their_head(data):
    tokens, selection = data
    problem = at.MarginProblem.from_heads(tokens, [selection[0], selection[1]])
    assert problem.shape == (8, 3)
    own = problem.sequence < 3
    assert not problem.left[own, 4:].any() and not problem.left[~own, :4].any()
    with pytest.raises(InvalidInputError, match="selections"):
        at.MarginProblem.from_heads(tokens, selection[0])
    with pytest.raises(InvalidInputError, match="arrangement"):
        at.MarginProblem.from_heads(tokens, selection, arrangement="above")
