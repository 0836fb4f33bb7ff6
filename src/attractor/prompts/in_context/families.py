"""Families of in-context tasks, some of which the theorem on long prompts does not admit."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from attractor.prompts.in_context.losses import LOGISTIC, SQUARED, Loss
from attractor.prompts.in_context.rectified import MEAN, Rectified
from attractor.prompts.in_context.single_index import LABELS, SingleIndex, draw_labels
from attractor.prompts.in_context.task import InContextTask, KnownLaw
from attractor.prompts.measures import Convolution, Gaussian, Measure
from attractor.prompts.measures.gaussian import centered
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import as_number, check_choice, check_count, check_kinds, check_number
from attractor.support.randomness import generator

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
