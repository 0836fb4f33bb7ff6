import math

import numpy as np
import pytest

from attractor.prompt.regression import RegressionTask, infinite_flow, train_in_context
from attractor.prompt.regression.limit_flow import limit_flow

TASK = RegressionTask(np.diag([1.0, 0.6]))


@pytest.mark.parametrize("parameterization", ["factors", "all_blocks"])
def test_small_steps_on_infinite_prompts_follow_it(parameterization):
    run = train_in_context(
        TASK, length=math.inf, parameterization=parameterization, learning_rate=0.004, steps=500,
        batch=512, seed=3, record=[0, 250, 500],
    )  # fmt: skip
    flow = limit_flow(run)
    assert float(flow["time"][-1]) == pytest.approx(500 * 0.004 * 2)
    at = flow.interp(time=run.steps * run.time_of_step)
    data = run.data.isel(seed=0)
    np.testing.assert_allclose(data["risk"], at["risk"], rtol=0.05, atol=0.01)
    for name in ("value_label", "key_query_norm", "balance"):
        np.testing.assert_allclose(data[name].isel(head=0), at[name], atol=0.05)
    assert abs(float(data["value_label"][-1, 0] - data["value_label"][0, 0])) > 0.1


def test_from_the_balanced_start_it_is_the_flow_of_blocks():
    run = train_in_context(
        TASK, length=math.inf, parameterization="blocks", initialization="balanced", scale=0.4,
        steps=300, learning_rate=0.01, record=[0, 300],
    )  # fmt: skip
    found = limit_flow(run)
    expected = infinite_flow(TASK, 0.4, found["time"].values)
    np.testing.assert_allclose(found["risk"], expected.risk, atol=1e-7)
    np.testing.assert_allclose(found["value_label"], expected.blocks.value_label, atol=1e-7)


def test_without_the_start_there_is_none():
    run = train_in_context(TASK, length=math.inf, steps=2, record=[2])
    assert limit_flow(run) is None
