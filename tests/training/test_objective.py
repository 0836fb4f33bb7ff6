import jax.numpy as jnp
import numpy as np
import pytest

from attractor.support.errors import InvalidInputError
from attractor.training.objective import Objective, check_condition


class Resting(Objective):
    def step(self, state, data):
        return state, jnp.int32(1)

    def record(self, state, data):
        return {"loss": state.sum(), "W": state}


def check(condition):
    check_condition(Resting(), condition, np.ones((2, 3)), np.ones(1))


@pytest.mark.parametrize(
    "condition",
    [
        lambda record: record["loss"] < 1e-3,
        lambda record: (record["loss"] < 1) | jnp.isnan(record["W"]).any(),
        lambda record: False,
    ],
)
def test_conditions_of_one_trial_are_taken(condition):
    check(condition)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (0.1, "not a function"),
        (lambda record: record["lss"] < 1, r"'lss', which is not recorded.*W.*loss"),
        (lambda record: record["loss"] < 1 and record["loss"] > 0, "branches on values.*& and"),
        (lambda record: np.asarray(record["loss"]) < 1, "hands them to NumPy"),
        (lambda record: record["W"] < 1, r"shape \(2, 3\).*one true or false"),
        (lambda record: record["loss"], "type float64"),
        (lambda record: None, "it fails: None is not"),
    ],
)
def test_others_are_refused(condition, message):
    with pytest.raises(InvalidInputError, match=message):
        check(condition)
