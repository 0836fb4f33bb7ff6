import dataclasses
import math

import numpy as np
import pytest

from attractor.prompts.regression import RegressionTask, infinite_flow, train_in_context
from attractor.prompts.regression.flows.block_flows import limit_flow

TASK = RegressionTask.official(as_run=True)


@pytest.fixture(scope="module")
def balanced():
    return train_in_context(
        TASK, length=math.inf, initialization="balanced", scale=0.6, steps=800, record=[0, 400, 800]
    )


@pytest.mark.long
def test_small_steps_on_infinite_prompts_follow_it(balanced):
    flow = limit_flow(balanced)
    assert float(flow["time"][-1]) == pytest.approx(800 * 0.001 * 2)
    followed(balanced, flow)


@pytest.mark.slow
@pytest.mark.parametrize("parameterization", ["factors", "all_blocks"])
def test_small_steps_from_the_default_start_follow_it(parameterization):
    run = train_in_context(
        RegressionTask(np.diag([1.0, 0.6])), length=math.inf, parameterization=parameterization,
        learning_rate=0.004, steps=500, batch=512, seed=3, record=[0, 250, 500],
    )  # fmt: skip
    followed(run, limit_flow(run))


def followed(run, flow):
    at = flow.interp(time=run.steps * run.time_of_step)
    data = run.data.isel(seed=0)
    np.testing.assert_allclose(data["risk"], at["risk"], rtol=0.05, atol=0.01)
    for name in ("value_label", "key_query_norm", "balance"):
        np.testing.assert_allclose(data[name].isel(head=0), at[name], atol=0.05)
    assert abs(float(data["value_label"][-1, 0] - data["value_label"][0, 0])) > 0.1


def test_it_starts_where_the_first_seed_did():
    run = train_in_context(TASK, length=math.inf, seeds=2, seed=3, steps=2, record=[0, 2])
    first, start = run.data.isel(seed=0, step=0), limit_flow(run).isel(time=0)
    for name in ("risk", "value_label", "key_query_norm", "balance"):
        np.testing.assert_allclose(np.squeeze(first[name]), start[name], rtol=1e-12)
    assert limit_flow(train_in_context(TASK, length=math.inf, steps=2, record=[2])) is None


def test_of_balanced_blocks_it_is_the_flow_of_blocks(balanced):
    changed = {"parameterization": "blocks", "half": True}
    found = limit_flow(dataclasses.replace(balanced, settings=balanced.settings | changed))
    assert float(found["time"][-1]) == pytest.approx(800 * 0.001)
    expected = infinite_flow(TASK, 0.6, found["time"].values)
    np.testing.assert_allclose(found["risk"], expected.risk, atol=1e-7)
    np.testing.assert_allclose(found["value_label"], expected.blocks.value_label, atol=1e-7)
