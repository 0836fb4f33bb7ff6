import math

import jax.numpy as jnp
import numpy as np
import pytest

from attractor.prompts.regression.flows.flow import CompiledRisk, follow_risk
from attractor.support.errors import InvalidInputError

RATES = np.array([1e-2, 1.0, 1e4])  # stiff


@pytest.fixture(scope="module")
def decay():
    def risk(parameters, rates):
        return jnp.sum(rates * parameters["x"] ** 2) / 2

    return CompiledRisk.of(risk, {"x": np.zeros(3)})


def test_linear_flow_is_exponential(decay):
    times = np.array([0.0, 1e-4, 0.1, 1.0, 100.0])
    flow = follow_risk(decay.on(RATES), {"x": np.ones(3)}, times, 1e-12)
    exact = np.exp(-RATES * times[:, None])
    np.testing.assert_allclose(flow.parameters["x"], exact, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(flow.risk, np.sum(RATES * exact**2, axis=1) / 2, rtol=1e-9)


def test_the_time_to_a_risk(decay):
    flow = follow_risk(decay.on(np.full(3, 2.0)), {"x": np.ones(3)}, [5.0], 1e-12)
    assert flow.time_to_risk(3e-4) == pytest.approx(math.log(1e4) / 4, rel=1e-9)
    assert flow.time_to_risk(3.0) == 0
    assert flow.time_to_risk(1e-9) == math.inf
    with pytest.raises(InvalidInputError, match="level"):
        flow.time_to_risk(0.0)


def test_a_flow_at_rest_stays(decay):
    flow = follow_risk(decay.on(RATES * 10), {"x": np.ones(3)}, [1.0, 1e6, 1e12], 1e-12)
    assert np.abs(flow.parameters["x"][1:]).max() < 1e-14
    still = follow_risk(decay.on(RATES), {"x": np.zeros(3)}, [0.0, 1.0], 1e-12)
    assert not still.parameters["x"].any()


@pytest.mark.parametrize("times", [[], [-1.0, 1.0], [1.0, 1.0], [[1.0]]])
def test_times_must_increase(decay, times):
    with pytest.raises(InvalidInputError, match="times"):
        follow_risk(decay.on(RATES), {"x": np.ones(3)}, times, 1e-12)


def test_a_flow_that_explodes_is_refused():
    upward = CompiledRisk.of(lambda x, rate: -rate * x**4, np.zeros(()))
    with pytest.raises(InvalidInputError, match="beyond time"):
        follow_risk(upward.on(1.0), np.array(1.0), [10.0], 1e-10)
