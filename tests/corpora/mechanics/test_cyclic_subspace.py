import numpy as np

from attractor.analysis.measures import project_on_equalities
from attractor.corpora import QueryGraphs
from attractor.corpora.mechanics import cyclic_subspace


def written_out(graphs, E):
    """Every product ``(e_i - e_j) e_k^T`` of two tokens of one component, as a row."""
    rows = [np.zeros(E.shape[1] ** 2)]
    for a, (query, i) in enumerate(graphs.nodes):
        for b, (other, j) in enumerate(graphs.nodes):
            if query == other and graphs.components[a] == graphs.components[b]:
                rows.append(np.outer(E[i] - E[j], E[query]).ravel())
    return np.array(rows)


def test_it_spans_the_products_of_all_pairs(cyclic, rng):
    data, limits = cyclic
    for E, one in zip(data.embeddings, limits, strict=True):
        basis = one.subspace.basis.reshape(one.subspace.dimension, -1)
        np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-14)
        rows = written_out(one.graphs, E)
        assert np.linalg.matrix_rank(rows) == len(basis)
        np.testing.assert_allclose(rows @ basis.T @ basis, rows, atol=1e-14)
        W = rng.normal(size=(3, 8, 8))
        np.testing.assert_allclose(
            W - one.subspace.project(W),
            project_on_equalities(W, one.direction.problem),
            atol=1e-12,
        )


def test_the_direction_is_orthogonal_to_it(cyclic):
    _, limits = cyclic
    for one in limits:
        assert np.abs(one.subspace.coordinates(one.direction.W)).max() <= 1e-10


def test_queries_that_are_not_orthogonal_share_directions(rng):
    """Two queries with the same embedding and the same cycle: one dimension, not two."""
    E = rng.normal(size=(5, 8))
    E[4] = 2 * E[3]
    edges = np.array([[3, 0, 1], [3, 1, 0], [4, 0, 1], [4, 1, 0]])
    space = cyclic_subspace(QueryGraphs(edges, tuple("abcde")), E)
    assert space.dimension == 1
    product = np.outer(E[0] - E[1], E[3])
    np.testing.assert_allclose(space.project(product), product, atol=1e-14)
    assert "dimension 1 of 8 x 8" in repr(space)


def test_equal_tokens_cannot_be_told_apart(rng):
    E = rng.normal(size=(5, 8))
    E[1] = E[0]
    edges = np.array([[3, 0, 1], [3, 1, 0]])
    assert cyclic_subspace(QueryGraphs(edges, tuple("abcde")), E).dimension == 0


def test_without_cycles_it_is_zero(acyclic, rng):
    _, limits = acyclic
    W = rng.normal(size=(2, 8, 8))
    for one in limits:
        assert one.subspace.dimension == 0 and not one.subspace.project(W).any()
