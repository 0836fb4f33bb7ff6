"""Three contexts in the plane."""

import numpy as np

from attractor.corpora.linear import compatibility, separability
from attractor_further.linear_next_token.planar import planar_contexts


def test_planar_contexts_are_separable_and_say_how_many_were_not():
    """One token follows one context, the others two each, and two tokens the same two."""
    rejected = []
    for seed in range(6):
        contexts, misses = planar_contexts(seed=seed)
        rejected.append(misses)
        assert contexts.dimension == 2 and (contexts.support.sum(-1) == 3).all()
        assert sorted(contexts.support.sum(0)) == [1, 2, 2, 2, 2]
        patterns = {tuple(pattern) for pattern in contexts.support.T}
        assert len(patterns) == 4
        assert separability(contexts).separable and compatibility(contexts).compatible
    assert sum(rejected) > 0
    again = planar_contexts(seed=5)
    np.testing.assert_array_equal(again.contexts.embeddings, contexts.embeddings)
