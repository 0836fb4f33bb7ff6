import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.corpora import QueryGraphs
from attractor.corpora.mechanics import graph_problem
from attractor.margin import MarginProblem, solve
from attractor.support.errors import InvalidInputError, Status

K = 5
NAMES = tuple("abcde")


def graphs_of(edges):
    edges = np.array(sorted(edges), dtype=np.int64).reshape(-1, 3)
    return QueryGraphs(edges, NAMES)


def reachable(graphs, query):
    """Whether a path leads from a token to another, by powers of the adjacency matrix."""
    paths = np.zeros((K, K), dtype=bool)
    if len(graphs.of(query)):
        paths[tuple(graphs.of(query).T)] = True
    for middle in range(K):
        paths |= paths[:, middle, None] & paths[middle]
    return paths


def all_pairs(graphs, E):
    """Every relation that the graphs state or imply, as a margin problem of its own."""
    left, right, equality = [], [], []
    for query in range(K):
        paths = reachable(graphs, query)
        for i, j in zip(*np.nonzero(paths), strict=True):
            if i != j:
                left.append(E[i] - E[j])
                right.append(E[query])
                equality.append(bool(paths[j, i]))
    bounds = np.where(equality, 0.0, 1.0)
    return MarginProblem(np.array(left), np.array(right), bounds, np.array(equality))


EDGES = st.sets(
    st.tuples(*[st.integers(0, K - 1)] * 3).filter(lambda edge: edge[1] != edge[2]),
    min_size=1,
    max_size=14,
)


@given(EDGES, st.integers(0, 10**6))
def test_edges_imply_everything_the_graphs_say(edges, seed):
    graphs, E = graphs_of(edges), np.random.default_rng(seed).normal(size=(K, 7))
    found, whole = solve(graph_problem(graphs, E)), all_pairs(graphs, E)
    assert found.status is Status.OPTIMAL
    margins, asked = whole.margins(found.W), whole.bounds
    size = 1 + np.linalg.norm(found.W) * np.abs(E).max() ** 2
    assert (np.abs(margins[whole.equality]) <= 1e-9 * size).all()
    assert (margins[~whole.equality] >= asked[~whole.equality] - 1e-8 * size).all()
    assert float(solve(whole).norm) == pytest.approx(float(found.norm), rel=1e-8)


def test_a_chain_and_a_cycle_by_hand():
    """Orthonormal embeddings: 0 -> 1 -> 2 asks for scores 1, 0, -1; a cycle for equal ones."""
    E = np.eye(K)
    chain = solve(graph_problem(graphs_of([(4, 0, 1), (4, 1, 2)]), E))
    np.testing.assert_allclose(chain.W, np.outer([1, 0, -1, 0, 0], E[4]), atol=1e-12)
    cycle = graph_problem(graphs_of([(4, 0, 1), (4, 1, 0), (4, 0, 3), (4, 1, 3)]), E)
    assert cycle.equality.sum() == 1 and len(cycle.bounds) == 3
    np.testing.assert_allclose(solve(cycle).W, np.outer([1, 1, 0, -2, 0], E[4]) / 3, atol=1e-12)


def test_more_tokens_than_dimensions_may_leave_no_solution():
    """Four tokens on a line: the middle ones cannot lie both above and below the outer ones."""
    E = np.array([[0.0, 1], [1, 1], [2, 1], [3, 1], [1, 0]])
    edges = [(4, 1, 0), (4, 1, 3)]
    answer = solve(graph_problem(graphs_of(edges), E))
    assert answer.status is Status.INFEASIBLE and len(answer.conflict) == 2
    assert solve(graph_problem(graphs_of(edges[:1]), E)).status is Status.OPTIMAL


def test_several_graphs_make_one_batch(rng):
    graphs = [graphs_of([(0, 1, 2)]), graphs_of([(0, 1, 2), (3, 2, 1), (3, 1, 2), (3, 2, 4)])]
    E = rng.normal(size=(2, K, 6))
    together = solve(graph_problem(graphs, E))
    for i, one in enumerate(graphs):
        np.testing.assert_allclose(together.W[i], solve(graph_problem(one, E[i])).W, atol=1e-12)


def test_graphs_without_edges_ask_for_nothing(rng):
    nothing = solve(graph_problem(graphs_of([]), rng.normal(size=(K, 6))))
    assert not nothing.W.any()


def test_embeddings_that_do_not_fit(rng):
    with pytest.raises(InvalidInputError, match=r"embeddings: the shape is \(4, 6\).*\[5\] tokens"):
        graph_problem(graphs_of([(0, 1, 2)]), rng.normal(size=(4, 6)))
