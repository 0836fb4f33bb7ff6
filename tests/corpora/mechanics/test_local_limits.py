import numpy as np
import pytest

from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics import local_limits, local_priority_graphs
from attractor.margin import MarginProblem, solve
from attractor.support.errors import InvalidInputError, Status

CORPUS = Corpus.from_samples([[0, 1, 2], [0, 3, 2], [1, 3, 0]], [4, 4, 4], list("abcde"))


def test_graphs_lead_from_tokens_that_keep_mass_to_all_others():
    graphs = local_priority_graphs(
        CORPUS, [[0.99, 0.005, 0.005], [0.5, 0.5, 0.0], [0.0095, 0.0005, 0.99]]
    )
    edges = {tuple(edge) for edge in graphs.edges.tolist()}
    assert edges == {
        (2, 0, 1), (2, 0, 2),  # the first sample keeps token 0
        (2, 0, 3), (2, 3, 0), (2, 3, 2),  # the second keeps 0 and 3, on a cycle
        (0, 0, 3),  # the third keeps token 0, and ignores token 1
    }  # fmt: skip
    assert graphs.cyclic.sum() == 2


def test_copies_of_a_token_share_their_mass():
    corpus = Corpus.from_samples([[0, 1, 0, 2]], [1], list("abc"))
    graphs = local_priority_graphs(corpus, [[0.008, 0.98, 0.008, 0.004]])
    assert {tuple(e) for e in graphs.edges.tolist()} == {
        (2, 0, 1), (2, 1, 0), (2, 0, 2), (2, 1, 2)
    }  # fmt: skip


def test_one_token_kept_in_each_row_gives_the_problem_of_that_selection(embeddings):
    """Without cycles the graphs ask for what Att-SVM asks of the selected tokens."""
    weights = np.array([[0.999, 0.0005, 0.0005], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    limits = local_limits(CORPUS, embeddings[:5], weights)
    left, right = [], []
    for sample, winner in enumerate(weights.argmax(1)):
        ids = CORPUS.context(sample)
        for token in set(ids.tolist()) - {int(ids[winner])}:
            left.append(embeddings[ids[winner]] - embeddings[token])
            right.append(embeddings[ids[-1]])
    # Query 2 keeps token 0 over 2 in one sample, and 2 over 0 in the other: a cycle.
    assert limits.subspace.dimension == 1 and limits.direction.status is Status.OPTIMAL
    weights[1] = [0.0, 1.0, 0.0]
    free = local_limits(CORPUS, embeddings[:5], weights)
    assert free.subspace.dimension == 0 and not free.ambiguous.any()
    left[2:4] = [embeddings[3] - embeddings[0], embeddings[3] - embeddings[2]]
    selected = solve(MarginProblem(np.array(left), np.array(right)))
    np.testing.assert_allclose(free.direction.W, selected.W, atol=1e-10)
    W = 3 * free.direction.W
    assert free.correlation(W) == pytest.approx(1) == free.correlation_outside(W)


def test_several_corpora_padded_beside_each_other(embeddings):
    short = Corpus.from_samples([[0, 1]], [1], list("abcde"))
    weights = np.zeros((2, 3, 3))
    weights[0] = [[0.99, 0.005, 0.005], [0.5, 0.5, 0.0], [0.0095, 0.0005, 0.99]]
    weights[1, 0] = [0.2, 0.8, 0.0]
    first, second = local_limits([CORPUS, short], embeddings[:5], weights)
    assert first.ambiguous.sum() == 1 and first.ambiguous[2, 1]
    assert second.subspace.dimension == 1 and not second.direction.W.any()
    assert "dimension 1" in repr(second)


def test_arguments_that_do_not_fit(embeddings):
    with pytest.raises(InvalidInputError, match=r"probabilities: the shape is \(3, 2\)"):
        local_priority_graphs(CORPUS, np.full((3, 2), 0.5))
    with pytest.raises(InvalidInputError, match="selected: no token of sample 1 has more mass"):
        local_priority_graphs(CORPUS, [[1, 0, 0], [0, 0, 0], [1, 0, 0]])
    with pytest.raises(InvalidInputError, match=r"selected: it is 0.1, with 0.2 negligible"):
        local_priority_graphs(CORPUS, np.full((3, 3), 1 / 3), selected=0.1, negligible=0.2)
    with pytest.raises(InvalidInputError, match=r"probabilities: .* for 2 corpora"):
        local_limits([CORPUS, CORPUS], embeddings[:5], np.full((3, 3), 1 / 3))
