"""Which tokens and queries an audit uses, and on which side documents are."""

import numpy as np
from made_heads import gaussian_heads, rows_of

from attractor.heads.captured.rows import (
    LEAST_CANDIDATES,
    content_tokens,
    head_rows,
    learned_documents,
)


def test_a_document_is_on_one_side_whatever_others_there_are():
    document = np.repeat(np.arange(200), 3)
    learned = learned_documents(document, 0)
    assert (learned.reshape(200, 3) == learned[::3, None]).all()
    assert 70 < learned[::3].sum() < 130
    np.testing.assert_array_equal(learned_documents(document[300:], 0), learned[300:])
    assert (learned_documents(document, 1) != learned).any()


def test_content_is_allowed_not_special_and_not_among_the_first():
    mask, special = np.ones((128, 6), bool), np.zeros((128, 6), bool)
    mask[:, 5] = False
    special[:, 3] = True
    captured = gaussian_heads(0, mask=mask, special=special)
    content = content_tokens(captured, captured.layer(0), 1)
    np.testing.assert_array_equal(content, np.tile([0, 1, 1, 0, 1, 0], (128, 1)).astype(bool))


def test_queries_with_few_tokens_to_choose_among_are_left_out():
    mask = np.ones((128, 6), bool)
    mask[:7, LEAST_CANDIDATES - 1 :] = False
    captured = gaussian_heads(0, mask=mask)
    layer = captured.layer(0)
    rows = head_rows(captured, layer, 0, content_tokens(captured, layer, 0), 0)
    np.testing.assert_array_equal(rows.row, np.arange(7, 128))


def test_keys_and_queries_are_centered_on_documents_to_learn_from():
    rows = rows_of(gaussian_heads(1))
    np.testing.assert_allclose(rows.queries[rows.learned].mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(rows.keys[rows.learned].mean((0, 1)), 0, atol=1e-12)
    raw = gaussian_heads(1).layer(0)
    scores = np.einsum("qtw,qw->qt", raw.keys[:, 0], raw.queries[:, 0])
    own = np.einsum("qtw,qw->qt", rows.keys, rows.queries + rows.mean_query)
    shift = scores - own
    np.testing.assert_allclose(shift, np.broadcast_to(shift[:, :1], shift.shape), atol=1e-9)


def test_padding_may_hold_anything():
    mask = np.ones((128, 6), bool)
    mask[:, 5] = False
    clean = gaussian_heads(2, mask=mask)
    keys = np.array(clean.layer(0).keys)
    keys[:, :, 5] = 1e30
    spoiled = rows_of(gaussian_heads(2, mask=mask, keys=keys))
    np.testing.assert_array_equal(spoiled.keys, rows_of(clean).keys)


def test_few_documents_are_not_enough():
    assert rows_of(gaussian_heads(1)).enough
    assert not rows_of(gaussian_heads(1, document=np.arange(128) % 60)).enough
