import numpy as np
import pytest

from attractor.heads import planted_heads
from attractor.heads.example import PLANTED
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def captured():
    return planted_heads(60, seed=3)


def selected(captured, layer, head):
    """The place of the content token with the largest attention, for each query."""
    found = captured.layer(layer)
    content = found.allowed & ~captured.special
    return np.where(content, found.attention[:, head], -1).argmax(-1)


def test_heads_follow_their_rules(captured):
    subject = selected(captured, 1, 0)
    verbs = captured.token[np.arange(60), captured.position]
    nouns = captured.token[np.arange(60), subject]
    follows = {"barks": "dog", "sings": "bird", "ploughs": "farmer", "shines": "star"}
    known = [(verb, noun) for verb, noun in zip(verbs, nouns, strict=True) if verb in follows]
    assert len(known) > 8
    assert np.mean([follows[verb] == noun for verb, noun in known]) > 0.8
    assert np.mean(selected(captured, 0, 0) == captured.position - 1) > 0.6
    assert np.mean(selected(captured, 2, 3) == captured.position + 1) > 0.6
    for layer, head in ((0, 1), (1, 2)):
        assert PLANTED[layer][head] == "sink"
        assert np.mean(captured.layer(layer).attention[:, head].argmax(-1) == 0) > 0.9


def test_sentences_are_whole(captured):
    for row, position in zip(captured.token, captured.position, strict=True):
        words = [word for word in row if word != "[PAD]"]
        assert words[0] == "[CLS]" and words[-1] == "[SEP]" and words[-2] == "."
        assert words[position].endswith("s") and "until one" in " ".join(words)
    padding = captured.token == "[PAD]"
    assert padding.any() and not captured.layer(0).allowed[padding].any()
    assert captured.special[padding].all()


def test_the_seed_names_everything():
    first, same, other = (planted_heads(4, seed=seed) for seed in (0, 0, 1))
    assert (first.token == same.token).all()
    np.testing.assert_array_equal(first.layer(2).keys, same.layer(2).keys)
    assert not np.array_equal(first.layer(2).queries, other.layer(2).queries)


@pytest.mark.parametrize("given", [{"documents": 0}, {"seed": -1}])
def test_other_arguments_are_refused(given):
    with pytest.raises(InvalidInputError):
        planted_heads(**given)
