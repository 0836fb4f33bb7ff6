import numpy as np
from made_audit import made_audit

from attractor.heads import Captured
from attractor.heads.audit.examples import attention_examples

DOCUMENT = [4, 4, 2, 7, 9]


def captured(mask):
    random = np.random.default_rng(0)
    shape = mask.shape
    special = np.zeros(shape, dtype=bool)
    special[:, -1] = True
    return Captured.from_arrays(
        random.normal(size=(shape[0], 2, shape[1], 3)), random.normal(size=(shape[0], 2, 3)),
        mask=mask, document=DOCUMENT, position=np.arange(1, 6), special=special,
    )  # fmt: skip


def test_the_first_documents_of_those_long_enough_with_the_query_in_the_middle():
    mask = np.arange(6) < np.array([6, 6, 6, 6, 4])[:, None]
    heads = captured(mask)
    found = attention_examples(heads, made_audit(1, 2, queries=5).data, [(0, 1), (0, 0)])
    assert found["head"].values.tolist() == [1, 1, 0, 0]
    # Document 9 has four tokens. Of the others 4 has its query at the beginning.
    assert found["document"].values.tolist() == [2, 7, 2, 7]
    np.testing.assert_array_equal(found["attention"][0], heads.layer(0).attention[2, 1])
    np.testing.assert_array_equal(found["allowed"][1], mask[3])
    everything = attention_examples(heads, made_audit(1, 2, queries=5).data, [(0, 1)], queries=9)
    assert everything["document"].values.tolist() == [4, 2, 7, 9]


def test_selections_are_those_of_the_audit():
    data = made_audit(1, 2, queries=5).data
    found = attention_examples(captured(np.ones((5, 6), dtype=bool)), data, [(0, 1)], queries=3)
    one = data.sel(layer=0, head=1)
    np.testing.assert_array_equal(found["selected"], one["selected"][[0, 2, 3]])
    np.testing.assert_array_equal(
        found["selected_probability"], one["selected_probability"][[0, 2, 3]]
    )


def test_first_tokens_are_content_as_the_audit_says():
    causal, whole = np.tri(5, 6, 1, dtype=bool), np.ones((5, 6), dtype=bool)
    data = made_audit(1, 2, queries=5).data
    content = [True] * 5 + [False]
    for mask, settings, first in (
        (whole, {}, True), (causal, {}, False), (whole, {"sink_positions": 1}, False)
    ):  # fmt: skip
        found = attention_examples(captured(mask), data.assign_attrs(settings), [(0, 0)])
        assert found["content"][0].values.tolist() == [first, *content[1:]]
