"""The limit that linear attention is trained to, in units of any size."""

import numpy as np
import pytest

from attractor.papers import Outcome, RegressionCase, examine, get_claim
from attractor.prompts.regression import RegressionTask


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_training_is_followed_until_it_rests_in_every_unit(unit):
    task = RegressionTask(unit * np.diag([1.0, 2.0]))
    case = RegressionCase(task, (20,), 0.1 / unit)
    claim = get_claim("trained-linear-models/linear-attention-limit")
    assert examine(claim, case).outcome is Outcome.HOLDS
