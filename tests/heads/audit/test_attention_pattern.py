"""What a head attends to, by cases of which it is plain."""

import numpy as np
import pytest

from attractor.heads.audit._audit_heads import attention_pattern

ROWS, TOKENS = 40, 8


def pattern(place, weight=0.9, special=(), **changed):
    """Attention of so much on one place of every row, the rest alike."""
    place = np.broadcast_to(place, ROWS)
    attention = np.full((ROWS, TOKENS), (1 - weight) / (TOKENS - 1))
    attention[np.arange(ROWS), place] = weight
    content = np.ones((ROWS, TOKENS), bool)
    content[:, list(special)] = False
    given = {
        "attention": attention,
        "allowed": np.ones((ROWS, TOKENS), bool),
        "content": content,
        "position": np.arange(ROWS) % 5 + 2,
    }
    return attention_pattern(**(given | changed))


POSITION = np.arange(ROWS) % 5 + 2


@pytest.mark.parametrize(
    ("place", "special", "words"),
    [
        (0, (0,), "sink"),
        (0, (), "mixed"),
        (POSITION - 1, (), "offset -1"),
        (POSITION + 1, (), "offset +1"),
        (POSITION, (), "self"),
    ],
)
def test_heads_are_named_by_what_they_select(place, special, words):
    assert pattern(place, special=special)["selection"] == words


def test_attention_on_all_alike_is_diffuse():
    found = pattern(np.arange(ROWS) % TOKENS, weight=1 / TOKENS + 1e-9)
    assert found["selection"] == "diffuse"
    assert found["effective_size"] == pytest.approx(TOKENS)


def test_shares_and_sizes():
    found = pattern(0, weight=0.6, special=(0,))
    assert found["sink_mass"] == pytest.approx(0.6)
    assert found["sink_share"] == 1.0
    assert found["top_probability"] == pytest.approx(0.6)
    assert found["top_content_probability"] == pytest.approx(1 / 7)
    assert found["effective_size"] == pytest.approx(1 / (0.36 + 7 * (0.4 / 7) ** 2))
    assert found["effective_content_size"] == pytest.approx(7)
    assert found["content_size"] == 7


@pytest.mark.parametrize("share", [1e-30, 1e-3, 0.08, 0.3, 0.9, 1.0])
def test_what_is_missing_from_one_is_taken_by_a_sink(share):
    """Sizes are those of tokens alone, and a sink is one where it takes more than each of them."""
    found = pattern(POSITION, attention=np.full((ROWS, TOKENS), share / TOKENS))
    assert found["effective_size"] == pytest.approx(TOKENS)
    assert found["sink_mass"] == pytest.approx(1 - share)
    assert found["sink_share"] == float(1 - share > share / TOKENS)
    special = pattern(POSITION, special=(0,), attention=np.full((ROWS, TOKENS), share / TOKENS))
    assert special["sink_mass"] == pytest.approx(1 - share * (TOKENS - 1) / TOKENS)


def test_attention_that_is_zero_on_content_is_spread():
    attention = np.zeros((ROWS, TOKENS))
    attention[:, 0] = 1.0
    found = pattern(0, special=(0,), attention=attention)
    assert found["selection"] == "sink"
    assert np.isfinite([value for value in found.values() if isinstance(value, float)]).all()
