"""How fast mixtures lose label margin: closed forms, and distances of hulls found otherwise."""

import numpy as np
import prompt_examples as examples
import pytest
import scipy.optimize

from attractor.analysis import label_margin_constant
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

PENALTY = 1e4


def hull_distance(points):
    """Distance of the origin from a convex hull: least squares with weights that sum to one."""
    system = np.vstack([points.T, PENALTY * np.ones(len(points))])
    weights, _ = scipy.optimize.nnls(system, np.append(np.zeros(points.shape[1]), PENALTY))
    return np.linalg.norm(weights @ points) / weights.sum()


def ratio(tokens, selection, weights, rows):
    """The loss of label margin for each unit of weight off the selected tokens."""
    signed = tokens.labels[..., None, None] * tokens.values[:, None]
    kept = signed[np.nonzero(selection.mask)[:2]][np.arange(len(signed)), selection.index]
    mixed = np.einsum("nkt,nktv->nv", weights, signed)
    leaks = np.where(selection.mask, 0, weights).sum(-1)
    return (hull_distance(kept) - hull_distance(mixed)) / leaks[rows].max()


@pytest.mark.parametrize(
    ("keys", "rows", "expected", "counted"),
    (
        # With (1, 1) and (-1, 1) at the margin a leak of one of them turns the head half as far.
        (examples.TIGHT, "all", 0.5, 3),
        (examples.TIGHT, "support", 0.5, 3),
        (examples.NOT_TIGHT, "all", 0.0, 3),
        (examples.NOT_TIGHT, "support", 0.5, 2),
    ),
)
def test_published_data_have_closed_forms(keys, rows, expected, counted):
    tokens, _ = examples.joint(keys)
    chosen = Selection.from_index(tokens, [1, 1, 1])
    found = label_margin_constant(tokens, chosen, rows=rows, samples=200)
    np.testing.assert_allclose(found.limit, expected, atol=1e-8)
    np.testing.assert_allclose(found.value, expected, atol=1e-8)
    assert found.value <= found.elsewhere
    np.testing.assert_allclose(found.elsewhere, expected, atol=1e-3)
    np.testing.assert_allclose(found.margin, 1)
    assert found.rows.sum() == counted
    again = ratio(tokens, chosen, found.weights, found.rows)
    np.testing.assert_allclose(again, found.elsewhere, atol=1e-6)
    for share in np.random.default_rng(0).uniform(size=(200, 3)):
        weights = np.stack([share, 1 - share], axis=-1)[:, None]
        assert ratio(tokens, chosen, weights, found.rows) >= expected - 1e-6


@pytest.mark.parametrize("seed", (0, 1, 4))
def test_no_mixture_of_random_data_is_lower(seed):
    rng = np.random.default_rng(seed)
    first = np.arange(3) == 0
    labels = rng.choice([-1.0, 1], size=4)
    values = rng.normal(size=(4, 3, 3)) + np.einsum("n,t,v->ntv", labels, first, [2, 0, 0])
    mask = np.ones((4, 3), bool)
    mask[0, 2] = False
    tokens = Tokens(values, np.ones((4, 1)), labels, mask)
    chosen = Selection.from_index(tokens, [0, 0, 0, 0])
    found = label_margin_constant(tokens, chosen, rows="support", samples=200)
    # With seeds 1 and 4 the lowest ratio is far off; with seed 4 mixtures are better than tokens.
    assert (found.value < 0) == (seed == 4)
    assert (found.elsewhere < 0.1 * found.limit) == (seed in (1, 4))

    def ratios(largest, count):
        others = np.where(mask & ~first, rng.exponential(size=(count, 4, 3)) ** 3, 0)
        others /= others.sum(-1, keepdims=True)
        leaks = largest * rng.uniform(size=(count, 4, 1)) * (rng.uniform(size=(count, 4, 1)) < 0.5)
        leaks = leaks[leaks[:, found.rows[:, 0]].any((1, 2))]
        mixtures = leaks * others[: len(leaks)] + (1 - leaks) * first
        return [ratio(tokens, chosen, weights[:, None], found.rows) for weights in mixtures]

    if found.value > 0:  # a negative one settles the matter, and its search is not finished
        assert min(ratios(1.0, 400)) >= found.value - 1e-3 * found.value
    np.testing.assert_allclose(min(ratios(1e-4, 400)), found.limit, rtol=0.01)
    again = ratio(tokens, chosen, found.weights, found.rows)
    np.testing.assert_allclose(again, found.elsewhere, atol=1e-6)


def test_what_has_no_constant_is_refused():
    tokens, _ = examples.joint(examples.TIGHT)
    chosen = Selection.from_index(tokens, [1, 1, 1])
    two = Tokens(tokens.keys[None], tokens.queries[None], tokens.labels[None])
    for given, selection, changed, message in (
        (two, Selection.from_index(two, [[1, 1, 1]]), {}, "tokens: there are 1 data sets"),
        (tokens, Selection.from_index(tokens, [0, 1, 1]), {}, "selection: the label problem"),
        (tokens, chosen, {"rows": "some"}, "rows: "),
        (tokens, chosen, {"samples": 0}, "samples: "),
        (tokens, Selection(tokens.mask, chosen.tied), {}, "selection: row"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            label_margin_constant(given, selection, **changed)
