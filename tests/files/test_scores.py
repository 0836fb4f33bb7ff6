import numpy as np
import pytest
from scipy.special import softmax

from attractor.files import load
from attractor.margin.selection import token_scores
from attractor.support.errors import InvalidInputError


@pytest.fixture
def scored(make, rng):
    """Arrays with scores in place of labels and head."""

    def arrays(lead=(), **changes):
        given = make(lead) | {"labels": None, "head": None}
        return given | {"scores": rng.normal(size=(*lead, 3, 4))} | changes

    return arrays


@pytest.mark.parametrize("lead", [(), (2,)])
def test_the_token_scores_are_those_of_the_file(scored, write, suffix, lead):
    given = scored(lead)
    loaded = load(write(given, suffix))
    assert loaded.from_scores
    found = token_scores(loaded.tokens, loaded.head)[..., 0, :]
    np.testing.assert_array_equal(found, np.where(given["mask"], given["scores"], -np.inf))


def test_padding_needs_no_score(scored, write):
    given = scored()
    given["mask"] = np.arange(4) < np.array([[4], [2], [3]])
    given["scores"][~given["mask"]] = np.nan
    scores = token_scores(*tokens_and_head(load(write(given))))
    np.testing.assert_array_equal(scores[:, 0][given["mask"]], given["scores"][given["mask"]])


def tokens_and_head(loaded):
    return loaded.tokens, loaded.head


def several_queries(given, rng):
    given = given | {"queries": rng.normal(size=(3, 2, 2))}
    given["mask"] = np.broadcast_to(given["mask"][:, None], (3, 2, 4)).copy()
    given["mask"][1, 0, 0] = False
    return given


def test_queries_share_scores(scored, write, rng):
    given = several_queries(scored(), rng)
    tokens, head = tokens_and_head(load(write(given)))
    assert tokens.queries_per_sequence == 2
    wanted = np.where(given["mask"], given["scores"][:, None], -np.inf)
    np.testing.assert_array_equal(token_scores(tokens, head), wanted)


def test_scores_for_each_query(scored, write, rng):
    own = rng.normal(size=(3, 2, 4))
    chosen = np.array([[0, 1], [1, 0], [0, 0]])
    given = several_queries(scored(scores=own, selection=chosen), rng)
    loaded = load(write(given))
    tokens, head = tokens_and_head(loaded)
    assert tokens.mask.shape == (6, 1, 4)
    wanted = np.where(given["mask"], own, -np.inf)
    np.testing.assert_array_equal(token_scores(tokens, head).reshape(3, 2, 4), wanted)
    assert loaded.selection.index.tolist() == chosen.ravel().tolist()
    # The rows are those of the file, and with them what attention predicts.
    W = rng.normal(size=(5, 2))
    shared = load(write(given | {"scores": own[:, 0]})).tokens
    weights = softmax(shared.scores(W), axis=-1)
    outputs = softmax(tokens.scores(W), axis=-1) @ tokens.values
    predictions = np.where(given["mask"], weights * own, 0).sum(-1)
    np.testing.assert_allclose(head(outputs).ravel(), predictions.ravel(), rtol=1e-12)


def spoiled(value):
    scores = np.ones((3, 4))
    scores[1, 0] = value
    return scores


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.ones(3)}, "^scores: it stands in the place of labels, but both"),
        ({"head": np.ones(5)}, "^scores: it stands in the place of head, but both"),
        ({"values": np.ones((3, 4, 1))}, "^scores: it stands in the place of values"),
        ({"scores": spoiled(np.nan)}, r"^scores: the entry at \(1, 0\) is nan"),
        ({"scores": spoiled(np.inf)}, r"^scores: the entry at \(1, 0\) is inf"),
        ({"scores": np.ones((3, 3))}, r"^scores: the shape is \(3, 3\).*Give \(3, 4\)"),
        ({"scores": np.ones((3, 2, 4))}, r"^scores: the shape is \(3, 2, 4\)"),
    ],
)
def test_scores_that_cannot_be_used(scored, write, suffix, changes, message):
    with pytest.raises(InvalidInputError, match=message):
        load(write(scored(**changes), suffix))


def test_a_head_that_is_trained_has_no_fixed_scores(scored, write):
    with pytest.raises(InvalidInputError, match=r"^scores: .*'v, p' trains the head"):
        load(write(scored(), parameterization="(v, p)"))
