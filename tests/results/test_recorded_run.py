import numpy as np
import pytest
import runs
from sizes import USUAL, drawn

import attractor as at
from attractor.support.errors import InvalidInputError


def test_minus_one_is_a_logarithm_of_a_time():
    flow = at.gradient_flow(*drawn(USUAL), log_time=3.0, record=[-1.0, 0.0, 3.0], weights="all")
    place = int(np.flatnonzero(flow.steps == -1.0)[0])
    kept = flow.data["W"].transpose("instance", "seed", "logarithmic_time", "row", "column")
    np.testing.assert_array_equal(flow.W(-1), kept[:, :, place])
    with pytest.raises(InvalidInputError, match=r"step: logarithmic_time -1 was not recorded"):
        runs.logarithmic_flow().W(-1)


@pytest.mark.long
def test_blocks_of_a_step_that_was_not_recorded_name_the_nearest():
    run = runs.in_context()
    np.testing.assert_array_equal(
        run.blocks().key_query, run.data["key_query"].isel(step=-1).to_numpy()
    )
    with pytest.raises(InvalidInputError, match=r"step: step 7 .*nearest one recorded is 4"):
        run.blocks(7)
