import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.attention import Exponential, Linear, Logistic, get_loss
from attractor.errors import InvalidInputError
from attractor.precision import double_precision

LOSSES = [Logistic(), Exponential(), Linear()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_cotangent_is_the_derivative_of_the_value(loss, label):
    with double_precision():
        for prediction in (-3.0, 0.0, 0.5, 4.0):
            mantissa, log = loss.cotangent(jnp.asarray(prediction), jnp.asarray(label))
            derivative = jax.grad(lambda f: loss.value(f, jnp.asarray(label)))(prediction)
            np.testing.assert_allclose(mantissa * np.exp(log), derivative, rtol=1e-14)


def test_logistic_cotangent_keeps_its_digits_at_every_margin():
    with double_precision():
        for margin in (-1e4, -40.0, -1.0, 1.0, 40.0, 1e4):
            _, log = Logistic().cotangent(jnp.asarray(margin), jnp.asarray(1.0))
            with mpmath.workdps(60 + int(abs(margin) / 2)):
                exact = -mpmath.log(1 + mpmath.exp(mpmath.mpf(margin)))
            assert abs(float(log) - float(exact)) <= 4e-16 * abs(float(exact))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_labels_that_do_not_suit_are_refused_by_name(loss):
    loss.validate(np.array([1.0, -1.0]))
    with pytest.raises(InvalidInputError, match=r"labels: the label at \(1,\) is 0.*2 \* labels"):
        loss.validate(np.array([1.0, 0.0]))
    with pytest.raises(InvalidInputError, match="is 2"):
        loss.validate(np.array([2.0, 1.0]))


def test_losses_are_found_by_name():
    assert get_loss("linear") == Linear()
    assert get_loss(Logistic()) == get_loss("logistic")
    with pytest.raises(InvalidInputError, match="Known losses: logistic, exponential, linear"):
        get_loss("hinge")
