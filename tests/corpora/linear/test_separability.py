import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.corpora.linear import (
    EmbeddedContexts,
    decoder_problem,
    random_contexts,
    separability,
)
from attractor.margin import solve
from attractor.support.errors import InvalidInputError, Status


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 3), st.integers(2, 5))
def test_answer_is_proved_and_that_of_the_margin_problem(seed, m, d, V):
    rng = np.random.default_rng(seed)
    support = rng.random((m, V)) < 0.5
    support[np.arange(m), rng.integers(0, V, m)] = True
    p = rng.random((m, V)) * support
    embeddings = rng.normal(size=(m, d)) * 10.0 ** rng.integers(-2, 3, (m, 1))
    contexts = EmbeddedContexts(embeddings, p / p.sum(-1, keepdims=True))
    found = separability(contexts)
    status = solve(decoder_problem(contexts)).status
    assert found.separable == (status is Status.OPTIMAL)
    assert found.inseparable == (status is Status.INFEASIBLE)

    best = p.argmax(-1)
    if found.separable:
        logits = embeddings @ found.W.T
        margins = logits[np.arange(m), best, None] - logits
        assert np.abs(margins[support]).max() < 1e-8 * np.abs(logits).max() + 1e-300
        assert margins[~support].min(initial=np.inf) >= 1 - 1e-8
        np.testing.assert_allclose(found.margins, margins, atol=1e-9)
    else:
        weights = found.multipliers
        assert weights[~support].min() >= 0
        assert weights[~support].sum() == pytest.approx(1)
        unit = np.eye(V)
        terms = [
            weights[j, v] * np.outer(unit[best[j]] - unit[v], embeddings[j])
            for j, v in np.ndindex(m, V)
        ]
        largest = max(np.linalg.norm(term) for term in terms)
        assert np.linalg.norm(sum(terms)) <= 1e-8 * largest


def test_embeddings_of_full_rank_are_separable():
    found = separability(random_contexts(2, contexts=8, dimension=10, classes=5, support=2))
    assert found.separable.all() and "2 of 2" in repr(found)


def test_same_embedding_with_other_supports_is_not_separable():
    found = separability(EmbeddedContexts([[1.0], [2.0]], [[1, 0], [0, 1]]))
    assert found.inseparable and not found.separable and np.isnan(found.W).all()
    assert "not separable: 2 constraints" in repr(found)
    zero = separability(EmbeddedContexts([[0.0]], [[1, 0]]))
    assert zero.inseparable


def test_nothing_outside_is_separable_by_zero():
    found = separability(EmbeddedContexts([[1.0]], [[0.4, 0.6]]))
    assert found.separable and not found.W.any() and "separable" in repr(found)


def test_programs_beyond_the_limit_are_refused():
    contexts = random_contexts(contexts=150, dimension=150, classes=50, support=5)
    with pytest.raises(InvalidInputError, match="2,205,000 nonzeros"):
        separability(contexts)
