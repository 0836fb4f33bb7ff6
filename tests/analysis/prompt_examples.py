"""Published data sets for a prompt vector, as keys and token scores.

*Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596), the demonstrations of its
code: keys in the plane, and a third coordinate that carries the score.
"""

import numpy as np

from attractor.attention import LinearHead
from attractor.tokens import Tokens

ONE_SEQUENCE = np.array([[[-0.1, 1], [1, 0], [0, 0]]])
EQUAL_SCORES = np.array([[1, 0.9, 0.9]])
UNEQUAL_SCORES = np.array([[1, 0.9, 0.0]])

_THREE_SEQUENCES = (
    (0.7748320103, -0.2304720432, -1.0867757797, 1.1697421074, -1.0632025003, 0.5769561529,
     -1.2526669502, 1.0699965954, -0.4760316908, -0.2524684072, -0.5494556427, -0.7705307603,
     -0.3866698742, -0.3412983418),
    (0.6889809370, -0.0682720765, -0.8499621153, 0.8829004765, -0.9633044004, 1.2778732777,
     -0.8107403517, 0.8312646151, -0.4936814606, -0.5985354185, -0.4120608270, -0.4775177538,
     -0.4117687345, -0.5204619169),
    (0.9420664310, 0.0105014974, -0.5395588875, 0.7062212229, -1.1138496399, 1.1839942932,
     -0.7420251369, 0.7043651938, -0.5946239829, -0.2349450290, -0.6099487543, -0.5959668756,
     -0.7133960724, -0.2770120800),
)  # fmt: skip
# Drawn in single precision, which ten digits identify.
THREE_SEQUENCES = np.array(_THREE_SEQUENCES, np.float32).astype(float).reshape(3, 7, 2)
THREE_SCORES = np.where(np.arange(7) == 0, 1.0, 0.5) * np.ones((3, 1))

TIGHT = np.array([[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, 1]]])
NOT_TIGHT = np.array([[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, 1.5]]])
JOINT_LABELS = np.array([1, -1, 1])


def scored(keys, scores):
    """Tokens whose values are their scores, labels +1, and the head that reads them."""
    sequences = len(keys)
    ones = np.ones(sequences)
    return Tokens(keys, ones[:, None], ones, values=np.asarray(scores)[..., None]), LinearHead([1])


def two_losses(gap):
    """Two sequences of two tokens, the score of one of which is ``gap`` and of the other one."""
    return scored([[[0, 0], [1, 1]], [[0, 0], [1, -1]]], [[0, gap], [0, 1]])


def joint(keys):
    """Tokens that are their own values, for a head and a prompt vector trained together."""
    return Tokens(keys, np.ones((3, 1)), JOINT_LABELS), LinearHead([0, 1])
