import numpy as np

from attractor.papers import get_claim
from attractor.papers.measurements.near_misses import faint_length
from attractor.tokens import Tokens


def test_masked_tokens_change_no_length():
    case = get_claim("transformers-as-svms/large-start").example()
    tokens = case.tokens
    rows = tokens.keys.shape[0]
    keys = np.concatenate([tokens.keys, np.full((rows, 1, tokens.key_dimension), 7.0)], axis=1)
    values = np.concatenate([tokens.values, 7 * np.ones_like(tokens.values[:, :1])], axis=1)
    mask = np.concatenate([tokens.mask, np.zeros((*tokens.mask.shape[:-1], 1), bool)], axis=-1)
    padded = Tokens(keys, tokens.queries, tokens.labels, mask, values)
    assert faint_length(case.replace(tokens=padded)) == faint_length(case)
