"""Families of in-context tasks, some of which the theorem on long prompts does not admit."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from jaxtyping import Array, Float

from attractor.prompts.in_context.losses import LOGISTIC, SQUARED, Loss
from attractor.prompts.in_context.task import InContextTask, KnownLaw
from attractor.prompts.measures import Convolution, Gaussian, Measure
from attractor.prompts.measures.arithmetic import checked, checked_dimension
from attractor.prompts.measures.contract import as_numpy
from attractor.prompts.measures.gaussian import centered
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import as_number, check_choice, check_count, check_kinds, check_number
from attractor.support.randomness import generator

MEAN = 1 / math.sqrt(2 * math.pi)
"""Of the positive part of a standard normal number."""


class Rectified(Measure):
    """Independent coordinates ``max(g, 0) - E max(g, 0)`` of standard normal ``g``.

    ``E exp(a max(g, 0)) = 1/2 + exp(a^2 / 2) Phi(a)`` for each coordinate.
    """

    _dimension: int = eqx.field(static=True)

    def __init__(self, dimension: int) -> None:
        """Stores the number of coordinates.

        Raises:
            InvalidInputError: If it is not positive.
        """
        self._dimension = checked_dimension(dimension)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._dimension

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return (_log_moments(direction) - MEAN * direction).sum(-1)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return jax.grad(lambda a: self._log_normalizer(a).sum())(direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        slope = jax.grad(lambda a: self._tilted_mean(a).sum())
        return slope(direction)[..., None] * jnp.eye(self._dimension)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        return np.maximum(random.standard_normal((count, self._dimension)), 0) - MEAN


def _log_moments(a: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """``log E exp(a max(g, 0))``."""
    return jnp.logaddexp(-math.log(2), a**2 / 2 + log_ndtr(a))


_NODES, _REACH = 193, 9.0
"""Of the trapezoidal rule. Its error for labels with poles ``p`` away from the real line is about
``exp(-2 pi p / (|w| h))`` for a step ``h``: 1e-9 for ``tanh`` and ``|w| = 5``."""


def _tanh(c: Array, u: Array) -> Array:
    return c * jnp.tanh(u)


def _binary(c: Array, u: Array) -> Array:
    return jnp.logaddexp(c + jax.nn.log_sigmoid(u), -c + jax.nn.log_sigmoid(-u))


LABELS: dict[str, Callable[[Array, Array], Array]] = {"tanh": _tanh, "binary": _binary}
"""``log E[exp(c y) | w.x = u]`` by kind of label: ``y = tanh(w.x)``, and ``y = +-1`` with
``P(y = 1) = sigmoid(w.x)``."""


class SingleIndex(Measure):
    """Tokens ``(x, y)`` with ``x ~ N(0, I)`` and a label that depends on ``w.x`` alone.

    ``Lambda(a, c) = |a|^2 / 2 + log E M(c, w.a + |w| g)`` with ``M(c, u) = E[exp(c y) | w.x = u]``
    and a standard normal ``g``: one integral, by the trapezoidal rule with 193 nodes.

    Attributes:
        weights: ``w``.
        label: ``"tanh"`` or ``"binary"``, see ``LABELS``.
    """

    weights: Float[Any, "d"]
    label: str = eqx.field(static=True)

    def __init__(self, weights: Float[Any, "d"] | Any, label: str) -> None:
        """Checks and stores the direction and the kind of label.

        Raises:
            InvalidInputError: If the weights are no vector of finite numbers, or the kind of label
                is not known.
        """
        self.weights = checked("weights", weights, ("d",))
        self.label = check_choice("label", label, LABELS)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.weights.shape[-1] + 1

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        a, c = direction[..., :-1], direction[..., -1]
        w = jnp.asarray(self.weights)
        nodes = np.linspace(-_REACH, _REACH, _NODES)
        masses = np.exp(-(nodes**2) / 2)
        # At w = 0 the norm has no derivative; its square does.
        norm = jnp.sqrt(jnp.where(w @ w > 0, w @ w, 1)) * (w @ w > 0)
        points = (a @ w)[..., None] + norm * nodes
        exponents = LABELS[self.label](c[..., None], points) + np.log(masses / masses.sum())
        return (a**2).sum(-1) / 2 + logsumexp(exponents, axis=-1)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return jax.grad(lambda a: self._log_normalizer(a).sum())(direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        flat = direction.reshape(-1, self.dimension)
        found = jax.vmap(jax.hessian(self._log_normalizer))(flat)
        return found.reshape(*direction.shape, self.dimension)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        w = as_numpy(self.weights)
        inputs = random.standard_normal((count, len(w)))
        return np.column_stack([inputs, draw_labels(self.label, inputs @ w, random)])


def draw_labels(
    label: str, index: Float[np.ndarray, "*batch"], random: np.random.Generator
) -> Float[np.ndarray, "*batch"]:
    """Labels of inputs whose product with the weights is given."""
    if label == "tanh":
        return np.tanh(index)
    return np.where(random.random(index.shape) < 1 / (1 + np.exp(-index)), 1.0, -1.0)


INPUTS = ("normal", "laplace", "student-t")
_FREEDOM = 5.0
"""Degrees of freedom of inputs of Student's law."""


@dataclass(frozen=True)
class LinearRegression(InContextTask):
    """Linear regression: tokens ``(x, w.x + noise)``, the query ``(x_q, 0)``, the label ``w.x_q``.

    Attributes:
        regression: Covariances and variances, as in ``attractor.prompts.regression``.
        freedom: Degrees of freedom of the weights' law, multivariate Student's t of the scale that
            the variance gives; infinity for normal weights.
        inputs: ``"normal"``, or of the same covariance with independent ``"laplace"`` or
            ``"student-t"`` coordinates (five degrees of freedom) before they are correlated.
        loss: The loss.
        about: The task in words.
    """

    regression: RegressionTask
    freedom: float = math.inf
    inputs: str = "normal"
    loss: Loss = SQUARED
    about: str = "linear regression"

    def __post_init__(self) -> None:
        """Validates.

        Raises:
            InvalidInputError: If there is no task, the degrees of freedom are not positive, or the
                kind of inputs is not known.
        """
        check_kinds(regression=(self.regression, RegressionTask))
        check_kinds(loss=(self.loss, Loss), about=(self.about, str))
        if as_number(self.freedom) != math.inf:
            check_number("freedom", self.freedom, above=0.0, example=5.0)
        check_choice("inputs", self.inputs, INPUTS)

    @property
    def dimension(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Entries of a token."""
        return self.regression.dimension + 1

    @property
    def law(self) -> KnownLaw:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What is proven of it."""
        largest = float(np.linalg.eigvalsh(self.regression.query_covariance)[-1])
        weights = "normal weights" if self.freedom == math.inf else f"t weights, {self.freedom:g}"
        normal = self.inputs == "normal"
        tokens = (
            "tokens are Gaussian given the task, with moments polynomial in scores"
            if normal
            else f"inputs are {self.inputs}, whose exponential moments are infinite"
        )
        index = self.freedom if normal else 0.0  # none of them has a finite sigma
        return KnownLaw(index, normal, math.sqrt(max(largest, 0.0)), f"{weights}; {tokens}")

    def draw(self, random: np.random.Generator, count: int) -> Float[np.ndarray, "task d"]:
        """Weights."""
        scale = math.sqrt(self.regression.weight_variance)
        weights = scale * random.standard_normal((count, self.regression.dimension))
        if self.freedom == math.inf:
            return weights
        return weights * np.sqrt(self.freedom / random.chisquare(self.freedom, (count, 1)))

    def tokens(
        self, parameters: Float[np.ndarray, "task d"], random: np.random.Generator, length: int
    ) -> Float[np.ndarray, "task length m"]:
        """Inputs with their labels."""
        task, shape = self.regression, (*parameters.shape[:1], length, parameters.shape[1])
        if self.inputs == "laplace":
            white = random.laplace(scale=math.sqrt(0.5), size=shape)
        elif self.inputs == "student-t":
            white = random.standard_t(_FREEDOM, shape) * math.sqrt(1 - 2 / _FREEDOM)
        else:
            white = random.standard_normal(shape)
        x = white @ np.linalg.cholesky(task.covariance).T
        noise = math.sqrt(task.label_noise) * random.standard_normal(shape[:2])
        y = np.einsum("tld,td->tl", x, parameters) + noise
        return np.concatenate([x, y[..., None]], axis=-1)

    def queries(
        self, parameters: Float[np.ndarray, "task d"], random: np.random.Generator
    ) -> tuple[Float[np.ndarray, "task m"], Float[np.ndarray, "task"]]:
        """Inputs to predict at, and their labels."""
        x = random.standard_normal(parameters.shape) @ self.regression.query_factor.T
        noise = math.sqrt(self.regression.query_noise) * random.standard_normal(len(x))
        return _with_zero(x), (x * parameters).sum(-1) + noise

    def measure(self, parameters: Float[np.ndarray, "d"]) -> Measure | None:
        """``N(0, Gamma_w)``; none for inputs that are not normal."""
        if self.inputs != "normal":
            return None
        covariance = self.regression.token_covariance(parameters)
        return Gaussian(np.zeros(self.dimension), covariance)

    def _limit(self, parameters: np.ndarray) -> Measure | None:
        """The laws of all tasks at once, which one by one takes longer than to draw them."""
        if type(self).measure is not LinearRegression.measure:
            return super()._limit(parameters)
        if self.inputs != "normal":
            return None
        return centered(self.regression.token_covariance(parameters))

    def sub_gaussian(
        self, parameters: Float[np.ndarray, "task d"]
    ) -> Float[np.ndarray, "task"] | None:
        """The root of the largest eigenvalue of the covariance, 1 at least."""
        if self.inputs != "normal":
            return None
        variance = np.linalg.eigvalsh(self.regression.token_covariance(parameters))[:, -1]
        return np.sqrt(np.maximum(variance, 1.0))


@dataclass(frozen=True)
class SingleIndexRegression(InContextTask):
    """Labels that depend on ``w.x`` alone, ``x ~ N(0, I)`` and ``w ~ N(0, scale^2 I)``.

    Attributes:
        inputs: Number of inputs.
        label: ``"binary"``: -1 or 1 with ``P(y = 1) = sigmoid(w.x)``; ``"tanh"``: ``tanh(w.x)``.
        scale: Of the weights.
        loss: The loss; logistic for binary labels.
        about: The task in words.
    """

    inputs: int = 5
    label: str = "binary"
    scale: float = 1.0
    loss: Loss = LOGISTIC
    about: str = ""
    law = KnownLaw(
        math.inf, True, 1.0, "inputs are standard normal and labels at most 1, so sigma^2 = 2"
    )

    def __post_init__(self) -> None:
        """Validates.

        Raises:
            InvalidInputError: If there is no input, the scale is not positive, or the kind of label
                is not known.
        """
        check_kinds(loss=(self.loss, Loss), about=(self.about, str))
        check_count("inputs", self.inputs)
        check_choice("label", self.label, LABELS)
        check_number("scale", self.scale, above=0.0, example=1.0)

    @property
    def dimension(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Entries of a token."""
        return self.inputs + 1

    @property
    def name(self) -> str:
        """The task in words."""
        return self.about or f"{self.label} labels of w.x"

    def draw(self, random: np.random.Generator, count: int) -> Float[np.ndarray, "task d"]:
        """Weights."""
        return self.scale * random.standard_normal((count, self.inputs))

    def tokens(
        self, parameters: Float[np.ndarray, "task d"], random: np.random.Generator, length: int
    ) -> Float[np.ndarray, "task length m"]:
        """Inputs with their labels."""
        x = random.standard_normal((len(parameters), length, self.inputs))
        y = draw_labels(self.label, np.einsum("tld,td->tl", x, parameters), random)
        return np.concatenate([x, y[..., None]], axis=-1)

    def queries(
        self, parameters: Float[np.ndarray, "task d"], random: np.random.Generator
    ) -> tuple[Float[np.ndarray, "task m"], Float[np.ndarray, "task"]]:
        """Inputs to predict at, and their labels."""
        x = random.standard_normal(parameters.shape)
        return _with_zero(x), draw_labels(self.label, (x * parameters).sum(-1), random)

    def measure(self, parameters: Float[np.ndarray, "d"]) -> Measure:
        """The law of pairs, whose normalizer is one integral."""
        return SingleIndex(parameters, self.label)

    def sub_gaussian(self, parameters: Float[np.ndarray, "task d"]) -> Float[np.ndarray, "task"]:
        """``sqrt(2)``, as ``(E exp(a.x + c y))^2 <= E exp(2 a.x) E exp(2 c y)``, ``|y| <= 1``."""
        return np.full(len(parameters), math.sqrt(2))


@dataclass(frozen=True)
class FeatureRegression(InContextTask):
    """A nonlinear teacher: tokens ``(phi(x), w.phi(x) + noise)`` with fixed ReLU features.

    ``phi_j(x) = relu(r_j.x) - E relu(r_j.x)`` for ``x ~ N(0, I)`` and random orthonormal ``r_j``.
    So features are independent, and ``phi`` has the Lipschitz constant 1 and is 1-sub-Gaussian.

    Attributes:
        features: Number of features.
        inputs: Number of inputs below them.
        scale: Of the weights.
        noise: Variance of the noise in labels of the prompt and of the query.
        seed: Of the features.
        loss: The loss.
        about: The task in words.
    """

    features: int = 4
    inputs: int = 8
    scale: float = 0.6
    noise: float = 0.1
    seed: int = 0
    loss: Loss = SQUARED
    about: str = "ReLU features"
    _rows: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Draws the features.

        Raises:
            InvalidInputError: If there are none or more than inputs, the scale is not positive, or
                the variance is negative.
        """
        check_kinds(loss=(self.loss, Loss), about=(self.about, str))
        check_count("features", self.features, 1, check_count("inputs", self.inputs))
        check_number("scale", self.scale, above=0.0, example=1.0)
        check_number("noise", self.noise, least=0.0, example=0.1)
        random = generator(self.seed, purpose="features of a task")
        columns, _ = np.linalg.qr(random.standard_normal((self.inputs, self.features)))
        object.__setattr__(self, "_rows", columns.T)

    @property
    def dimension(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Entries of a token."""
        return self.features + 1

    @property
    def law(self) -> KnownLaw:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What is proven of it."""
        reason = "tokens are a Lipschitz function of a Gaussian vector, of constant sigma"
        return KnownLaw(math.inf, True, 1.0, reason)

    def draw(self, random: np.random.Generator, count: int) -> Float[np.ndarray, "task d"]:
        """Weights of the features, of variance ``scale^2``."""
        return self.scale * random.standard_normal((count, self.features))

    def tokens(
        self, parameters: Float[np.ndarray, "task d"], random: np.random.Generator, length: int
    ) -> Float[np.ndarray, "task length m"]:
        """Features with their labels."""
        found = self._features(random, (len(parameters), length))
        noise = math.sqrt(self.noise) * random.standard_normal(found.shape[:2])
        y = np.einsum("tlf,tf->tl", found, parameters) + noise
        return np.concatenate([found, y[..., None]], axis=-1)

    def queries(
        self, parameters: Float[np.ndarray, "task d"], random: np.random.Generator
    ) -> tuple[Float[np.ndarray, "task m"], Float[np.ndarray, "task"]]:
        """Features to predict at, and their labels."""
        found = self._features(random, (len(parameters),))
        noise = math.sqrt(self.noise) * random.standard_normal(len(found))
        return _with_zero(found), (found * parameters).sum(-1) + noise

    def measure(self, parameters: Float[np.ndarray, "d"]) -> Measure:
        """Rectified normal numbers under a linear map, and noise."""
        labels = np.vstack([np.eye(self.features), parameters])
        rectified, noise = _parts(self.features, self.noise)
        return Convolution(rectified.pushforward(labels), noise)

    def sub_gaussian(self, parameters: Float[np.ndarray, "task d"]) -> Float[np.ndarray, "task"]:
        """The Lipschitz constant of a token in ``(x, noise)`` bounds it: that of ``phi`` is 1."""
        return np.sqrt(1 + (parameters**2).sum(-1) + self.noise)

    def _features(
        self, random: np.random.Generator, shape: tuple[int, ...]
    ) -> Float[np.ndarray, "*shape feature"]:
        x = random.standard_normal((*shape, self.inputs)) @ self._rows.T
        return np.maximum(x, 0) - MEAN


@functools.lru_cache(maxsize=16)
def _parts(features: int, noise: float) -> tuple[Rectified, Gaussian]:
    """The laws of features and of noise in the label, which all tasks share."""
    covariance = np.zeros((features + 1, features + 1))
    covariance[-1, -1] = noise
    return Rectified(features), Gaussian(np.zeros(features + 1), covariance)


def _with_zero(x: Float[np.ndarray, "task d"]) -> Float[np.ndarray, "task d+1"]:
    """The query ``(x, 0)``, without a label."""
    return np.pad(x, ((0, 0), (0, 1)))


def built_in(dimension: int = 4) -> dict[str, InContextTask]:
    """Families that meet the hypotheses of the theorem, by name.

    Args:
        dimension: Inputs, or features, of each.

    Raises:
        InvalidInputError: If it is not positive.
    """
    d = check_count("dimension", dimension, 1, 1000)
    plain = RegressionTask(np.eye(d), weight_variance=1 / d)
    noisy = RegressionTask(np.eye(d), weight_variance=1 / d, label_noise=0.2, query_noise=0.2)
    return {
        "linear": LinearRegression(plain),
        "noisy": LinearRegression(noisy, about="noisy labels"),
        "logistic": SingleIndexRegression(d, "binary", 2 / math.sqrt(d), about="logistic"),
        "features": FeatureRegression(d, 2 * d),
        "index": SingleIndexRegression(d, "tanh", 2 / math.sqrt(d), SQUARED, "tanh teacher"),
    }


def negative_controls(dimension: int = 4) -> dict[str, InContextTask]:
    """Tasks that do not meet the assumption on sub-Gaussian parameters, by what is wrong.

    Args:
        dimension: Inputs of each.

    Raises:
        InvalidInputError: If it is not positive.
    """
    task = RegressionTask(np.eye(check_count("dimension", dimension, 1, 1000)))
    return {
        "Cauchy weights": LinearRegression(task, 1.0, about="Cauchy weights"),
        "Student weights": LinearRegression(task, 4.0, about="weights of 4 degrees of freedom"),
        "Laplace inputs": LinearRegression(task, inputs="laplace", about="Laplace inputs"),
        "Student inputs": LinearRegression(task, inputs="student-t", about="Student inputs"),
    }
