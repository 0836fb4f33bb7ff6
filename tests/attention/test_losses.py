import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.attention import (
    CrossEntropy,
    Exponential,
    Linear,
    Logistic,
    Loss,
    Squared,
    UserLoss,
    get_loss,
)
from attractor.attention.labels import is_margin_loss
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

MARGIN_LOSSES = [Logistic(), Exponential(), Linear()]


@functools.partial(jax.jit, static_argnums=0)
def compute(loss, prediction, target):
    """Value, mantissa and log scale."""
    return loss.value(prediction, target), *loss.cotangent(prediction, target)


def hinge(prediction, target):
    return jnp.maximum(0, 1 - target * prediction) ** 2


@pytest.mark.parametrize(
    "loss", [*MARGIN_LOSSES, Squared(), UserLoss(hinge)], ids=lambda loss: loss.name
)
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


@pytest.mark.parametrize("margin", [0.0, 5.0, 40.0, 600.0, 5000.0, -600.0])
def test_cross_entropy_keeps_its_digits_at_every_margin(rng, margin):
    for _ in range(5):
        logits = rng.normal(size=4)
        logits[2] += margin
        with mpmath.workdps(60 + int(abs(margin))):
            weights = [mpmath.exp(mpmath.mpf(z)) for z in logits]
            p = [w / sum(weights) for w in weights]
            value = -mpmath.log(p[2])
            slope = [p[0], p[1], -(p[0] + p[1] + p[3]), p[3]]
            size = max(abs(s) for s in slope)
            expected = np.array([float(s / size) for s in slope])
            log_size = float(mpmath.log(size))
        with double_precision():
            found, mantissa, log = map(np.asarray, compute(CrossEntropy(), logits, 2.0))
            assert log.shape == ()
            largest = np.abs(mantissa).max()
            np.testing.assert_allclose(mantissa / largest, expected, rtol=5e-13, atol=1e-300)
            assert abs(float(log) + np.log(largest) - log_size) <= 1e-12
            assert mantissa.sum() == pytest.approx(0, abs=1e-15 * largest)
        np.testing.assert_allclose(found, float(value), rtol=1e-12)


def test_cross_entropy_of_two_classes_is_the_logistic_loss_of_their_difference(rng):
    logits = rng.normal(size=(5, 2)) * 10
    with double_precision():
        pairs, zero = jnp.asarray(logits), jnp.zeros(5)
        found, mantissa, log = compute(CrossEntropy(), pairs, zero)
        value, expected, expected_log = compute(Logistic(), pairs[:, 0] - pairs[:, 1], zero + 1)
    np.testing.assert_allclose(found, value, rtol=1e-13)
    np.testing.assert_allclose(mantissa[:, 0], expected)
    np.testing.assert_allclose(log, expected_log, atol=1e-14)


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=lambda loss: loss.name)
def test_labels_that_do_not_suit_are_refused_by_name(loss):
    loss.validate(np.array([1.0, -1.0]))
    with pytest.raises(InvalidInputError, match=r"labels: the label at \(1,\) is 0.*2 \* labels"):
        loss.validate(np.array([1.0, 0.0]))
    with pytest.raises(InvalidInputError, match="is 2"):
        loss.validate(np.array([2.0, 1.0]))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0.0, 4.0], r"at \(1,\) is 4.*from 0 to 3"),
        ([-1.0, 1.0], r"at \(0,\) is -1"),
        ([0.0, 1.5], r"at \(1,\) is 1.5"),
    ],
)
def test_class_numbers_are_integers_in_range(labels, words):
    CrossEntropy().validate(np.array([0.0, 3.0]), 4)
    with pytest.raises(InvalidInputError, match=words):
        CrossEntropy().validate(np.array(labels), 4)


def test_class_numbers_without_a_known_number_of_classes():
    CrossEntropy().validate(np.array([0.0, 300.0]))
    with pytest.raises(InvalidInputError, match="integers 0, 1, 2"):
        CrossEntropy().validate(np.array([-1.0]))


def test_a_loss_and_a_head_have_to_fit():
    for loss in (*MARGIN_LOSSES, Squared()):
        loss.check_classes(None)
        with pytest.raises(InvalidInputError, match=r"head: it gives 3 logits.*cross_entropy"):
            loss.check_classes(3)
    CrossEntropy().check_classes(3)
    with pytest.raises(InvalidInputError, match=r"head: it gives one number.*VocabularyHead"):
        CrossEntropy().check_classes(None)


def test_a_function_is_a_loss():
    loss = get_loss(hinge)
    assert loss.name == "user:hinge" and loss == get_loss(hinge) and hash(loss) == hash(loss)
    loss.check_classes(None)
    loss.validate(np.array([0.3, 7.0]))
    with double_precision():
        value = loss.value(jnp.array([[0.5, 3.0]]), jnp.array([[1.0, -1.0]]))
    np.testing.assert_allclose(value, [[0.25, 16.0]])
    with pytest.raises(InvalidInputError, match=r"user:hinge gives float64 of shape \(3,\)"):
        loss.check_classes(3)
    with pytest.raises(InvalidInputError, match="fails for a number and a target"):
        get_loss(lambda prediction: prediction).check_classes(None)


def test_a_function_of_logits_is_a_loss(rng):
    loss = get_loss(lambda logits, y: -jax.nn.log_softmax(logits)[y.astype(int)])
    loss.check_classes(3)
    with double_precision():
        logits, y = jnp.asarray(rng.normal(size=(2, 4, 3))), jnp.ones((2, 4))
        _, mantissa, log = compute(loss, logits, y)
        _, expected, scale = map(np.asarray, compute(CrossEntropy(), logits, y))
    assert log.shape == (2, 4)
    np.testing.assert_allclose(mantissa, expected * np.exp(scale)[..., None], rtol=1e-12)


def test_a_new_loss_needs_a_value_alone():
    @dataclass(frozen=True)
    class Cubic(Loss):
        name = "cubic"

        def value(self, prediction, target):
            return (prediction - target) ** 3

    assert get_loss(Cubic()) == Cubic()
    with double_precision():
        mantissa, log = Cubic().cotangent(jnp.array([3.0, 1.0]), jnp.array([1.0, 1.0]))
    assert mantissa.tolist() == [12.0, 0.0] and log.tolist() == [0.0, 0.0]


def test_losses_are_found_by_name():
    assert get_loss("linear") == Linear() and get_loss("cross_entropy") == CrossEntropy()
    assert get_loss(Logistic()) == get_loss("logistic") and get_loss("squared") == Squared()
    names = "logistic, exponential, linear, cross_entropy, squared"
    with pytest.raises(InvalidInputError, match=f"'hinge'.*Known losses: {names}"):
        get_loss("hinge")
    for wrong in (3, Logistic):
        with pytest.raises(InvalidInputError, match="neither a name nor a loss"):
            get_loss(wrong)
    assert is_margin_loss("logistic") and not is_margin_loss("squared")
    assert not is_margin_loss("user:hinge")
