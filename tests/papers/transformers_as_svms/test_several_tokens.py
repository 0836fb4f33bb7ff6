"""Data with nonlinear heads, and where attention under a ReLU head can keep several tokens."""

import numpy as np
import pytest
import scipy.optimize

from attractor.attention import ReLUHead
from attractor.datasets.torch_stream import TorchNormalStream
from attractor.papers import Outcome, examine, get_claim
from attractor.papers.transformers_as_svms.claims import solutions
from attractor.papers.transformers_as_svms.figures.several_tokens import at_nonsmooth_points
from attractor.papers.transformers_as_svms.several_tokens_data import (
    orthonormal_tokens,
    relu_data_sets,
)
from attractor.tokens import Tokens


def test_relu_data_are_drawn_in_the_published_order_with_labels_of_both_signs():
    tokens, head = relu_data_sets(3, 4, 6, 12)
    kept = []
    for seed in range(1, int(tokens.instance_numbers[-1]) + 1):
        stream = TorchNormalStream(seed)
        hidden, keys = stream.normal(6, 6), stream.normal(3, 4, 6)
        signs, queries = stream.normal(3), stream.normal(3, 6)
        if (signs > 0).all():
            continue
        place = len(kept)
        kept.append(seed)
        for ours, theirs in (
            (head.hidden[place], hidden / np.linalg.norm(hidden)),
            (tokens.keys[place], keys / np.linalg.norm(keys, axis=-1, keepdims=True)),
            (tokens.queries[place, :, 0], queries / np.linalg.norm(queries, axis=-1)[:, None]),
            (tokens.labels[place, :, 0], np.sign(signs)),
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert kept == tokens.instance_numbers.tolist() and len(kept) == 12 < kept[-1]


def test_orthonormal_tokens_span_what_they_are_drawn_from():
    tokens, head = orthonormal_tokens(5, [3, 8], [0.0, 0.5, 1.0])
    keys = tokens.keys[:, 0]
    np.testing.assert_allclose(keys @ keys.swapaxes(-1, -2), [np.eye(5)] * 6, atol=1e-14)
    np.testing.assert_array_equal(head.penalty, np.repeat([0.0, 0.5, 1.0], 2))
    np.testing.assert_array_equal(keys[:2], keys[2:4])
    assert not np.allclose(keys[0], keys[1])
    np.testing.assert_allclose(np.linalg.norm(head.weight, axis=-1), 1, atol=1e-6)


def _best_weights(values, head, label):
    """The weights that maximize ``label * h`` for a concave ``-h``, by linear programming."""
    units, T = head.hidden.shape[-1], len(values)
    cost = np.concatenate([np.zeros(T), np.ones(units)])
    above = np.hstack([(values @ head.hidden).T, -np.eye(units)])  # V^T X^T s <= r
    simplex = np.concatenate([np.ones(T), np.zeros(units)])[None]
    found = scipy.optimize.linprog(cost, above, np.zeros(units), simplex, [1.0])
    return found.x[:T]


@pytest.mark.parametrize("d", [4, 10])
def test_best_averages_under_a_relu_head_lie_at_kinks_or_where_it_is_flat(d):
    tokens, heads = relu_data_sets(3, 4, d, 40)
    several = 0
    for place, row in np.argwhere(tokens.labels[..., 0] < 0):
        values, head = tokens.values[place, row], ReLUHead(heads.hidden[place])
        weights = _best_weights(values, head, -1)
        before = weights @ values @ head.hidden
        if (weights > 1e-9).sum() > 1:
            several += 1
            assert np.abs(before).min() < 1e-9 or (before < 0).all()
    assert several > 20


def test_tells_kinks_and_flat_places_from_smooth_ones():
    # One unit that reads the first coordinate; two tokens with equal weights under W = 0.
    head = ReLUHead(np.array([[[1.0], [0.0]]]))
    query = [[1.0, 0.0]]
    keys = {
        "active": [[1.0, 0], [0.5, 1]],
        "flat": [[-1.0, 0], [-0.5, 1]],
        "kink": [[1.0, 0], [-1, 0]],
    }
    swing = np.zeros((1, 2, 2, 2))
    swing[0, :, 0, 0] = (0.1, -0.1)  # the average moves across the origin and back
    found = {
        name: bool(at_nonsmooth_points(Tokens([[pair]], [query]), head, swing)[0, 0])
        for name, pair in keys.items()
    }
    assert found == {"active": False, "flat": True, "kink": True}


SEVERAL = get_claim("transformers-as-svms/several-tokens")


def sized(case, keys=1.0, queries=1.0, offset=0.0):
    """The case with all scores as they are, in other units, or keys away from the origin."""
    tokens, head = case.tokens, case.head
    moved = Tokens(
        keys * (tokens.keys + offset),
        queries * tokens.queries,
        tokens.labels,
        tokens.mask,
        values=tokens.values,
    )
    return case.replace(tokens=moved, head=head)


@pytest.mark.parametrize("keys", [1e-7, 1e-3, 0.1, 30.0, 1e5])
@pytest.mark.parametrize("queries", [1e-4, 1.0, 1e3])
def test_units_of_keys_and_queries_leave_the_flow_and_its_tokens_as_they_are(keys, queries):
    case = SEVERAL.example()
    expected = SEVERAL.measured(case, 0)
    found = SEVERAL.measured(sized(case, keys, queries), 0)
    assert found.checked == expected.checked == 1
    assert found.value == pytest.approx(expected.value, rel=1e-3)
    assert found.details["tokens kept"] == expected.details["tokens kept"]
    norm = found.details["norm"] * keys * queries
    assert norm == pytest.approx(expected.details["norm"], rel=1e-5)


@pytest.mark.parametrize("offset", [3.0, 100.0])
def test_what_all_keys_share_is_no_length_of_them(offset):
    case = SEVERAL.example()
    expected = SEVERAL.measured(case, 0).value
    assert SEVERAL.measured(sized(case, offset=offset), 0).value == pytest.approx(
        expected, rel=1e-3
    )


def test_a_flow_that_cannot_be_followed_says_so(monkeypatch):
    monkeypatch.setattr(solutions, "flow", lambda case, times: np.full((2, 4, 4), np.nan))
    found = examine(SEVERAL, SEVERAL.example())
    assert found.outcome is Outcome.VACUOUS
    assert "could not be followed" in found.measured.details["gradient flow"]
    assert SEVERAL.exchanged().measured(SEVERAL.example(), 0).checked == 0
