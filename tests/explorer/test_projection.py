"""Tokens of more than two numbers: the plane, what it hides, and solutions in all dimensions."""

import numpy as np
import pytest

import attractor as at
from attractor.explorer import Explorer, state_of
from attractor.support.errors import InvalidInputError


@pytest.fixture
def prompt(deep):
    """The tokens for a prompt, of which two selections are locally optimal."""
    tokens, head = deep
    return at.Tokens.prompt_vector(tokens.keys, tokens.labels), head


def plane_of(state):
    plane = state["projection"]
    axes = np.array(plane["axes"])
    np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
    return plane, axes


def test_solutions_are_those_of_every_locally_optimal_selection(prompt):
    tokens, head = prompt
    explorer = Explorer(state_of(tokens, head, steps=2))
    solutions = explorer.state["solutions"]
    for name in ("frobenius", "l_1", "l_inf"):
        census = at.locally_optimal_selections(tokens, head, name)
        found = {tuple(one["selection"]): one for one in solutions if one["norm"] == name}
        wanted = census.locally_optimal_selections.index.tolist()
        best = at.optimal_tokens(tokens, head).index.tolist()
        reached = [explorer.train().data.attended[0, 0, -1, :, 0].values.tolist()]
        wanted += reached if name == "frobenius" else []
        assert set(found) == set(map(tuple, [*wanted, best]))
        for selection, one in found.items():
            kept = at.Selection.from_index(tokens, list(selection))
            solution = at.solve(at.MarginProblem.from_selection(tokens, kept), name)
            assert one["value"] == pytest.approx(solution.value, rel=1e-8)
            assert one["lower"] <= one["value"] and one["status"] == "solved"
            w = np.array(one["w"])
            assert np.linalg.norm(w, {"frobenius": 2, "l_1": 1, "l_inf": np.inf}[name]) == (
                pytest.approx(solution.value, rel=1e-8)
            )


def test_the_plane_holds_the_solutions_that_span_it(prompt):
    tokens, head = prompt
    state = state_of(tokens, head, steps=2)
    plane, axes = plane_of(state)
    first, second = (np.array(one["w"]) for one in state["solutions"][:2])
    for w in (first, second):
        np.testing.assert_allclose(axes.T @ (axes @ w), w, atol=1e-9)
    np.testing.assert_allclose(axes @ first, [np.linalg.norm(first), 0], atol=1e-9)
    assert (axes @ second)[1] > 0 and plane["origin"] == [0] * 4
    points = tokens.keys.reshape(-1, 4)
    gone = points - points @ axes.T @ axes
    pairs = [(i, j) for i in range(len(points)) for j in range(i)]
    distances, hidden = (sum(((a[i] - a[j]) ** 2).sum() for i, j in pairs) for a in (points, gone))
    assert plane["hidden"] == pytest.approx(hidden / distances)


def test_principal_directions_hide_least(prompt):
    tokens, head = prompt
    plane, _ = plane_of(state_of(tokens, head, steps=2, projection="principal"))
    points = tokens.keys.reshape(-1, 4)
    centered = points - points.mean(0)
    values = np.linalg.eigvalsh(centered.T @ centered)
    assert plane["hidden"] == pytest.approx(values[:2].sum() / values.sum())
    np.testing.assert_allclose(plane["origin"], points.mean(0))
    assert plane["hidden"] <= plane_of(state_of(tokens, head, steps=2))[0]["hidden"]


@pytest.mark.long
def test_a_matrix_is_seen_where_it_moves_queries(deep):
    tokens, head = deep
    state = state_of(tokens, head, "spectral descent", steps=2)
    plane, axes = plane_of(state)
    assert {one["norm"] for one in state["solutions"]} >= {"spectral", "nuclear", "l_1"}
    W = Explorer(state).solution().W
    assert state["solutions"][0]["norm"] == "spectral"
    np.testing.assert_allclose(np.reshape(state["solutions"][0]["w"], W.shape), W)
    seen = axes @ W @ tokens.queries[:, 0].T
    assert seen[0, 0] > 0 and abs(seen[1, 0]) < 1e-9  # the first sequence's is to the right
    assert "spectral" in plane["words"]


def test_chosen_solutions_and_those_that_span_no_plane(prompt):
    tokens, head = prompt
    u, v = np.eye(4)[1], np.eye(4)[3]
    plane, axes = plane_of(state_of(tokens, head, steps=2, projection=(2 * u, u - 5 * v)))
    np.testing.assert_allclose(axes, [u, -v], atol=1e-12)
    assert plane["words"] == "the plane of the two solutions given"
    plane, axes = plane_of(state_of(tokens, head, steps=2, projection=(u, -3 * u)))
    np.testing.assert_allclose(axes[0], u, atol=1e-12)
    assert "span a line" in plane["words"]
    plane, _ = plane_of(state_of(tokens, head, steps=2, projection=(0 * u, 0 * u)))
    assert plane["kind"] == "principal" and "no solution" in plane["words"]
    solution = at.solve(at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head)))
    plane, axes = plane_of(state_of(tokens, head, steps=2, projection=(solution, v)))
    np.testing.assert_allclose(axes.T @ (axes @ v), v, atol=1e-9)


@pytest.mark.parametrize("wrong", ["plane", 3, (np.ones(4),), (np.ones(3), np.ones(4)), [None, 1]])
def test_other_projections_are_refused(prompt, wrong):
    with pytest.raises(InvalidInputError, match=r"^projection: "):
        state_of(*prompt, steps=2, projection=wrong)


def test_tokens_on_a_line_and_all_alike():
    keys = np.zeros((1, 3, 3))
    keys[0, :, 2] = [1, 0, -1]
    for scale in (1, 0):
        tokens = at.Tokens.prompt_vector(scale * keys, labels=[1])
        for projection in ("solutions", "principal"):
            head = at.LinearHead([0, 0, 1])
            plane, _ = plane_of(state_of(tokens, head, steps=2, projection=projection))
            assert plane["hidden"] == pytest.approx(0, abs=1e-12)


def test_too_many_selections_leave_the_best_one():
    tokens, head = at.datasets.unit_tokens(6, 8, 3, seeds=1)
    state = state_of(tokens, head, steps=2, parameterization="p")
    best = at.optimal_tokens(tokens, head).index[0].tolist()
    *kept, reached = [one["selection"] for one in state["solutions"]]
    assert kept == [best] * 3 and reached != best
