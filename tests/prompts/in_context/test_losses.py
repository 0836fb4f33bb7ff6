"""Which losses the theorem admits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.prompts.in_context import HUBER, LOGISTIC, LOSSES, SQUARED, Loss, State, check_loss
from attractor.prompts.in_context.losses import summed
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

LABELS = np.random.default_rng(0).normal(size=200)
SIGNS = np.sign(LABELS)


@pytest.mark.parametrize(
    ("loss", "labels", "state"),
    [
        (SQUARED, LABELS, State.MET),
        (HUBER, LABELS, State.MET),
        (LOGISTIC, SIGNS, State.MET),
        (LOGISTIC, 3 * SIGNS, State.NOT_MET),
        (Loss("own", SQUARED.value), LABELS, State.MET),
        (Loss("own", HUBER.value), LABELS, State.MET),
        (Loss("own", LOGISTIC.value), SIGNS, State.MET),
        (Loss("twice", lambda p, y: (p - y) ** 2), LABELS, State.NOT_MET),
        (Loss("absolute", lambda p, y: jnp.abs(p - y)), LABELS, State.NOT_MET),
        (Loss("hinge", lambda p, y: jnp.maximum(0, 1 - y * p)), SIGNS, State.NOT_MET),
        (Loss("shifted", lambda p, y: (p - y - 1) ** 2 / 2), LABELS, State.NOT_MET),
        (Loss("fourth", lambda p, y: (p - y) ** 4 / 4), LABELS, State.NOT_MET),
    ],
)
def test_smoothness_and_the_origin_decide(loss, labels, state):
    found = check_loss(loss, labels)
    assert found.state is state
    assert ("on a grid" in found.found) == (loss.curvature is None)


def test_losses_of_several_predictions_add_up():
    predictions, labels = np.array([[0.5, 3.0], [1.0, -2.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    with double_precision():
        found = np.asarray(summed(HUBER, predictions, labels))
    np.testing.assert_allclose(found, [0.125 + 1.5, 1.5])


@pytest.mark.parametrize(
    "value", [None, lambda p, y: "no", lambda p: p, lambda p, y: p / 0 * jnp.inf]
)
def test_what_is_no_loss_is_refused(value):
    with pytest.raises(InvalidInputError, match="value"):
        Loss("wrong", value)


def test_the_librarys_own_are_made_without_differentiating_them(monkeypatch):
    monkeypatch.setattr(jax, "grad", None)
    for loss in LOSSES:
        assert Loss(loss.name, loss.value, loss.curvature) == loss
