"""Claims on regularization paths in narrow cones."""

import numpy as np
import pytest

from attractor.papers import Outcome, examine, get_claim
from attractor.papers.max_margin.claims import paths
from attractor.papers.max_margin.data import random_prompt_data


@pytest.mark.slow
def test_a_direction_that_attracts_in_a_wider_cone_is_no_counterexample():
    case = random_prompt_data(0, 4, 5, 6)
    turned = paths.turned(case.solution().W, 0.1, 0)
    radii = np.array(paths._FAR) * float(case.solution().value)
    assert paths._shares(case, 0, turned, 1e-3, radii).min() < 0.9
    assert examine(get_claim("max-margin/local-path-elsewhere"), case).outcome is Outcome.HOLDS
