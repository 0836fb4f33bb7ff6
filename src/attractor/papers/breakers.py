"""Small made-up data that break hypotheses which several papers share."""

from __future__ import annotations

import numpy as np

from attractor.attention import LinearHead
from attractor.files.case import Case
from attractor.margin.selection import Selection
from attractor.papers.max_margin.data import joint_training
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.tokens import Tokens


def selected(*index: int) -> Case:
    """Random unit tokens with one token of each sequence selected."""
    case = random_unit_tokens(0)
    return case.replace(chosen=Selection.from_index(case.tokens, index))


def several_selected() -> Case:
    """Random unit tokens with the first two of each sequence selected."""
    case = random_unit_tokens(0)
    mask = np.zeros(case.tokens.mask.shape, dtype=bool)
    mask[..., :2] = True
    return case.replace(chosen=Selection(mask, np.zeros(mask.shape[:-1], dtype=bool)))


def equal_scores() -> Case:
    """One sequence of tokens of one score, the first of them selected."""
    tokens = [[[1.0, 0], [0, 1], [0, 0]]]
    first = Selection(np.array([[[True, False, False]]]), np.zeros((1, 1), dtype=bool))
    return Case.from_scores(tokens, [[1.0, 1, 1]], chosen=first)


def labeled(*keys: list[list[float]]) -> Case:
    """Two sequences of tokens in the plane, labels 1 and -1, the first tokens selected."""
    tokens = Tokens(np.array(keys, float), np.eye(2), np.array([1.0, -1.0]))
    chosen = Selection.from_index(tokens, [0, 0])
    return Case(tokens, LinearHead(np.zeros(2)), "v, W", chosen=chosen)


def better_mixture(*, all_labels_support: bool) -> Case:
    """Joint training with a token beside the first selected one that the label margin gains from.

    Args:
        all_labels_support: Whether all labels lie at the margin.
    """
    case = joint_training(all_labels_support=all_labels_support)
    keys = case.tokens.keys.copy()
    keys[0, 0] = 0.0, 2.0
    tokens = Tokens(keys, case.tokens.queries, case.tokens.labels)
    return case.replace(tokens=tokens, chosen=Selection.from_index(tokens, [1, 1, 1]))
