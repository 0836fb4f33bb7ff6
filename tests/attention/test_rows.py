import numpy as np

from attractor.attention import attention_rows
from attractor.tokens import Tokens


def test_rows_carry_the_precision_asked_for(rng):
    tokens = Tokens(rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 5)), np.ones((2, 3)))
    rows = attention_rows(tokens, np.float32)
    assert {leaf.dtype for leaf in rows if leaf is not None and leaf is not rows.mask} == {
        np.dtype("float32")
    }
    assert rows.values is not None and rows.mask.shape == (2, 3, 1, 4)
    np.testing.assert_allclose(rows.value_norms, np.linalg.norm(tokens.values, axis=-1), rtol=1e-6)
