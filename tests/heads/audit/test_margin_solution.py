"""Heads beside the margin solutions of what they select."""

import numpy as np
import pytest
import xarray as xr
from made_heads import gaussian_heads

import attractor as at
from attractor.analysis.measures import measure_direction
from attractor.heads import Captured, Projections
from attractor.heads.audit import margin_solution as question_three
from attractor.heads.audit.margin_solution import MarginQuestion, margin_solution, margin_verdict

COUNT, TOKENS, HIDDEN, WIDTH = 12, 6, 14, 9
DRAWS = 19
ASKED = MarginQuestion(("frobenius", "nuclear"), DRAWS)


def head_of(W, X, Z):
    """A matrix of low rank as a captured head on hidden states, its other rows nearly zero."""
    U, S, V = np.linalg.svd(W)
    size = np.sqrt(np.maximum(S, 1e-8))[:WIDTH, None]
    query, key = size * V[:WIDTH], size * U.T[:WIDTH]
    projections = Projections(query=query[None], key=key[None])
    return Captured.from_arrays(X @ key.T, Z @ query.T, projections=projections)


@pytest.fixture(scope="module")
def states():
    random = np.random.default_rng(1)
    X, Z = (random.standard_normal(shape) for shape in ((COUNT, TOKENS, HIDDEN), (COUNT, HIDDEN)))
    return X / np.sqrt(HIDDEN), Z / np.sqrt(HIDDEN)


@pytest.fixture(scope="module")
def solution(states):
    """The nuclear margin solution of some selections, which is of low rank."""
    tokens = at.Tokens(*states)
    selection = at.Selection.from_index(tokens, np.arange(COUNT) % 2)
    found = at.solve(at.MarginProblem.from_selection(tokens, selection), "nuclear")
    assert np.linalg.matrix_rank(found.W, 1e-6) < WIDTH
    return found


def test_ratios_are_those_in_hidden_space(states, solution):
    tokens = at.Tokens(*states)
    problem = solution.problem
    found = margin_solution(head_of(solution.W, *states).layer(0), 0, ASKED, (0, 0, 0))
    frobenius = at.solve(problem, "frobenius")
    at_solution, other = found["margin_ratio"][1], found["margin_ratio"][0]
    assert at_solution == pytest.approx(1, abs=1e-5)
    # Among matrices of the head's own rows alone, no solution has a smaller norm.
    assert other >= measure_direction(solution.W[None], frobenius).margin_ratio[0] - 1e-6
    assert other < 0.95 and max(found["margin_gap"]) <= 1e-6
    assert found["margin_cosine"][1] == pytest.approx(1, abs=1e-3)
    assert found["margin_p"] == 1 / (DRAWS + 1) and found["margin_space"] == "K^T Q"
    assert found["margin_rows"] == COUNT * (TOKENS - 1) == len(problem.bounds)
    assert tokens.mask.sum() == COUNT * TOKENS


def test_a_head_has_no_margin_for_selections_of_other_texts(states, solution):
    """Its own come first; shuffled among the queries they make a problem that it is far from."""
    tokens = at.Tokens(*states)
    selected = at.attended_tokens(tokens, solution.W).index
    for index, least, most in ((selected, 0.99, 1.01), (np.roll(selected, 1), -np.inf, 0)):
        selection = at.Selection.from_index(tokens, index)
        problem = at.MarginProblem.from_selection(tokens, selection)
        ratio = question_three._ratio(solution.W, at.solve(problem, "nuclear"))
        assert least < ratio < most


def test_what_is_kept_of_a_head_is_what_was_found(states, solution, tmp_path):
    asked = {"draws": DRAWS, "training_texts": True, "store": tmp_path / "store"}
    captured = head_of(solution.W, *states)
    first, again = (at.audit_heads(captured, **asked).data for _ in range(2))
    xr.testing.assert_identical(first, again)
    with pytest.raises(at.InvalidInputError, match="holds another audit"):
        at.audit_heads(captured, **asked, norms=["spectral"])


@pytest.mark.long
def test_a_head_of_random_weights_is_elsewhere():
    audit = at.audit_heads(gaussian_heads(0, heads=2), draws=DRAWS, training_texts=True)
    assert audit.data["margin"].to_numpy().tolist() == [["elsewhere", "elsewhere"]]
    assert (audit.data["margin_space"] == "keys and queries as captured").all()
    assert audit.data["margin_queries"].to_numpy().tolist() == [[128, 128]]
    assert (audit.data["margin_ratio"] < 0.5).all() and "nuclear" in audit.data["norm"]


def test_a_trained_head_is_there_in_its_norm_and_on_its_texts_alone(states, solution):
    captured = head_of(solution.W, *states)
    asked = {"draws": DRAWS, "training_texts": True}
    found = at.audit_heads(captured, **asked)
    assert found.data["margin"].item() == "at the margin solution (nuclear)"
    assert found.data["margin_p_together"].item() == 1 / (DRAWS + 1)
    assert "1 at the margin solution (nuclear)" in str(found).replace("\n", " ")
    random = np.random.default_rng(2)
    others = (random.standard_normal(one.shape) / np.sqrt(HIDDEN) for one in states)
    assert at.audit_heads(head_of(solution.W, *others), **asked).data["margin"].item() != (
        "at the margin solution (nuclear)"
    )
    assert at.audit_heads(captured, draws=DRAWS).data["margin"].item() == "not asked"


def test_draws_keep_the_part_without_the_query(rng):
    W, mean = rng.normal(size=(4, 6)), rng.normal(size=6)
    turn = question_three.rotation_about(rng, mean)
    np.testing.assert_allclose(turn @ turn.T, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(turn @ mean, mean, atol=1e-12)
    assert not np.allclose(W @ turn, W, atol=0.1)
    whole = question_three.rotation_about(rng, np.zeros(3))
    np.testing.assert_allclose(whole @ whole.T, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(question_three.rotation_about(rng, np.ones(1)), [[1]])


def test_logistic_fits_are_stationary(states, solution):
    X, Z = states
    tokens = at.Tokens(X, Z)
    selected = at.attended_tokens(tokens, solution.W).mask[:, 0]
    keys = X / np.sqrt(np.mean((X - X.mean((0, 1))) ** 2))
    queries = Z / np.sqrt(np.mean(Z**2))
    fits = question_three._logistic(tokens, solution.W)
    for weight, M in zip(question_three._REGULARIZATION, fits, strict=True):
        powers = np.exp(np.einsum("ntd,de,ne->nt", keys, M, queries))
        residual = powers / powers.sum(-1, keepdims=True) - selected
        gradient = np.einsum("nt,ntd,ne->de", residual, keys, queries) / COUNT
        assert np.abs(gradient + weight * M).max() < 1e-3 * weight * np.abs(M).max()


def test_ridge_fits_solve_their_normal_equations(solution):
    problem = solution.problem
    design = np.einsum("jd,je->jde", problem.left, problem.right).reshape(len(problem.bounds), -1)
    for weight, M in zip(question_three._RIDGE, question_three._ridge(problem), strict=True):
        square = weight * np.sum(design**2) / design.shape[1]
        expected = np.linalg.solve(
            design.T @ design + square * np.eye(design.shape[1]), design.sum(0)
        )
        np.testing.assert_allclose(M.reshape(-1), expected, rtol=1e-3, atol=1e-3)


def test_copies_of_the_selected_token_make_no_constraint(states, solution):
    X, Z = states
    twice = np.concatenate([X, X[:, :1]], 1)
    once = margin_solution(head_of(solution.W, X, Z).layer(0), 0, ASKED, (0, 0, 0))
    found = margin_solution(head_of(solution.W, twice, Z).layer(0), 0, ASKED, (0, 0, 0))
    assert found["margin_rows"] == COUNT * TOKENS - COUNT // 2
    np.testing.assert_allclose(found["margin_ratio"], once["margin_ratio"], rtol=1e-5)


@pytest.mark.parametrize(
    "keys, queries",
    [
        (np.ones((4, 1, 3)), np.ones((4, 3))),  # one token
        (np.ones((4, 3, 3)), np.ones((4, 3))),  # all alike
        (np.eye(3)[None].repeat(4, 0), np.zeros((4, 3))),  # no queries
    ],
)
def test_nothing_is_said_where_there_is_nothing_to_choose(keys, queries):
    layer = Captured.from_arrays(keys, queries).layer(0)
    assert margin_solution(layer, 0, ASKED, (0, 0, 0)) == {}


def test_one_number_a_key(rng):
    layer = Captured.from_arrays(rng.normal(size=(9, 4, 1)), rng.normal(size=(9, 1))).layer(0)
    found = margin_solution(layer, 0, ASKED, (0, 0, 0))
    np.testing.assert_allclose(found["margin_ratio"], 1, rtol=1e-6)
    assert found["margin_p"] == 1  # there is one pairing alone


@pytest.mark.parametrize(
    "changed, words",
    [
        ({}, "at the margin solution (nuclear)"),
        ({"ratio": {"frobenius": 0.8, "nuclear": 0.85}}, "on the way (nuclear)"),
        ({"cosine": {"frobenius": 0.8, "nuclear": 0.9, "ridge": 0.95}}, "on the way (nuclear)"),
        ({"p_together": 0.1}, "elsewhere"),
        ({"p_together": np.nan}, "elsewhere"),
        ({"gap": {"frobenius": 1e-9, "nuclear": 1e-3}}, "certificate open"),
        ({"gap": {"frobenius": np.nan, "nuclear": 0.0}}, "certificate open"),
        (
            {
                "ratio": {"frobenius": 1.0, "nuclear": 1.0},
                "cosine": {"frobenius": 1.0, "nuclear": 1.0, "ridge": 0.9},
            },
            "at the margin solution (frobenius, nuclear)",
        ),
    ],
)
def test_verdicts(changed, words):
    given = {
        "ratio": {"frobenius": 0.8, "nuclear": 0.97},
        "gap": {"frobenius": 1e-9, "nuclear": 1e-8},
        "cosine": {"frobenius": 0.8, "nuclear": 0.98, "ridge": 0.7},
        "p_together": 0.05,
    }
    assert margin_verdict(**(given | changed), alpha=0.05) == words


@pytest.mark.parametrize(
    "given, message",
    [
        ({"norms": ["l2"]}, "norms: .*l2"),
        ({"norms": "nuclear"}, "norms"),
        ({"margin_draws": 18}, "margin_draws: of 18 no p-value can be below"),
        ({"training_texts": "yes"}, "training_texts"),
    ],
)
def test_bad_input_is_refused(given, message):
    with pytest.raises(at.InvalidInputError, match=message):
        at.audit_heads(gaussian_heads(0), draws=DRAWS, **({"training_texts": True} | given))
