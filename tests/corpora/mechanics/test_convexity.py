import numpy as np
import pytest

from attractor.corpora.mechanics import (
    chord_test,
    label_mass_tokens,
    squared_miss,
    vocabulary_tokens,
)
from attractor.support.errors import InvalidInputError


def test_label_mass_is_convex_and_strictly_so_along_cycles(cyclic):
    data, limits = cyclic
    tokens, head = label_mass_tokens(data.corpora, data.embeddings)
    anywhere = chord_test(tokens, head)
    assert anywhere.heights.shape == (4, 400) and anywhere.violations.sum() == 0
    along = chord_test(tokens, head, along=[one.subspace for one in limits])
    assert along.violations.sum() == 0 and along.strict.sum() == 1600
    for one, curvatures in zip(limits, along.curvatures, strict=True):
        # Samples outside the cycles add to the curvature that the cyclic ones have at W_fin.
        assert curvatures.max() > one.finite.curvature / 2 and curvatures.min() > 0
    assert "0 violations in 1,600 chords" in repr(along)


def test_the_general_head_is_not_convex(cyclic):
    data, _ = cyclic
    tokens, head = vocabulary_tokens(data.corpora, data.embeddings)
    found = chord_test(tokens, head, squared_miss)
    assert (found.violations > 40).all()


def test_a_chord_is_the_same_alone_and_among_others(cyclic):
    data, _ = cyclic
    tokens, head = label_mass_tokens(data.corpora, data.embeddings)
    together = chord_test(tokens, head, seed=3)
    np.testing.assert_allclose(
        chord_test(tokens[2:3], head, seed=3).heights[0], together.heights[2], rtol=1e-12
    )
    one, _ = label_mass_tokens(data.corpora[0], data.embeddings[0])
    np.testing.assert_allclose(
        chord_test(one, head, seed=3).heights[0], together.heights[0], rtol=1e-12
    )


def test_arguments_that_do_not_fit(cyclic, acyclic):
    tokens, head = label_mass_tokens(cyclic[0].corpora, cyclic[0].embeddings)
    with pytest.raises(InvalidInputError, match="along: there are 4 for 4 instances, or one is"):
        chord_test(tokens, head, along=[one.subspace for one in acyclic[1]])
    with pytest.raises(InvalidInputError, match="chords: 0 is not a count"):
        chord_test(tokens, head, chords=0)
    with pytest.raises(InvalidInputError, match=r"size: -1\.0 is not a number"):
        chord_test(tokens, head, size=-1.0)
