"""The contract of a measure: the law of the tokens of a prompt."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float
from scipy.special import logsumexp

from attractor.prompts.measures.arithmetic import (
    Generated,
    ScoreLine,
    checked,
    checked_map,
    numpy_in_double,
    traced,
)
from attractor.results import Described, Rows
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for
from attractor.support.precision import LARGEST, as_float64
from attractor.support.randomness import generator

_DIRECTIONS = 64
_RATIO = 1.005
"""Of neighboring slopes on a line, so that a bound between two of them is 1 % off at most."""
_SLOPES_AT_ONCE = 256


class SubGaussianParameter(NamedTuple):
    """What is known of the least ``sigma`` with ``E exp(a^T (X - E X)) <= exp(sigma^2 |a|^2 / 2)``.

    The two are equal where the least ``sigma`` is known.

    Attributes:
        lower: No smaller number will do: some ``a`` needs it.
        upper: This one does for every ``a``, by proof; infinite where none is known.
    """

    lower: float
    upper: float


def witnessed_proxy(law: Measure) -> float:
    """The largest ``2 log E exp(a^T (X - E X)) / |a|^2`` found, a lower bound on ``sigma^2``.

    Small ``a`` give the largest variance; others are tried along principal axes, coordinates and
    random directions.
    """
    covariance = np.asarray(law.covariance)
    values, axes = np.linalg.eigh(covariance)
    largest = float(values[-1])
    if not 0 < largest < math.inf:
        return largest
    d = law.dimension
    random = generator(0, purpose="directions of exponential moments")
    tried = np.concatenate([axes.T, np.eye(d), random.normal(size=(_DIRECTIONS, d))])
    tried = np.concatenate([tried, -tried])
    tried /= np.linalg.norm(tried, axis=-1, keepdims=True)
    slopes = np.geomspace(0.05, 20, 24) / math.sqrt(largest)
    tilts = slopes[:, None, None] * tried
    tilts = tilts[np.asarray(law.exists(tilts))]
    if not len(tilts):
        return largest
    logs = np.asarray(law.log_normalizer(tilts)) - tilts @ np.asarray(law.mean)
    return max(largest, float((2 * logs / (tilts**2).sum(-1)).max()))


def bounded_proxy(
    points: Float[np.ndarray, "point d"], weights: Float[np.ndarray, "point"], mean: np.ndarray
) -> float:
    """A variance proxy of finitely many values, with a proof.

    By Hoeffding's lemma the square of half the width in a direction, which is at most the radius of
    any ball around all values; on a line within 1 % of the least.
    """
    if points.shape[1] == 1:
        on_line = points[:, 0] - float(mean[0])
        hoeffding = float(np.ptp(on_line)) ** 2 / 4
        return min(hoeffding, _proxy_on_line(on_line, weights / weights.sum()))
    center = (points.max(0) + points.min(0)) / 2
    for step in range(1, 200):  # toward the smallest such ball; every center gives a proof
        off = points - center
        center = center + off[(off**2).sum(-1).argmax()] / (step + 1)
    radii = [((points - one) ** 2).sum(-1).max() for one in (center, mean)]
    return float(min(radii))


def _proxy_on_line(
    points: Float[np.ndarray, "point"], weights: Float[np.ndarray, "point"]
) -> float:
    """``sup 2 log E exp(a X) / a^2`` of centered values, from above.

    ``log E exp(a X)`` is convex, zero with its slope at zero, and so grows to both sides: between
    two neighbors it is at most the value at the outer one. Near zero the variance grows by a factor
    ``exp(|a| width)`` at most; far out the logarithm is at most ``|a|`` times the largest value.
    """
    width = float(np.ptp(points))
    if width == 0:
        return 0.0
    variance = float(weights @ points**2)
    nearest, farthest = 1e-3 / width, 2e3 / width
    slopes = np.geomspace(nearest, farthest, math.ceil(math.log(2e6) / math.log(_RATIO)))
    bounds = [variance * math.exp(nearest * width), 2 * float(np.abs(points).max()) / farthest]
    for sign in (1.0, -1.0):
        logs = np.concatenate([
            np.asarray(logsumexp(sign * np.multiply.outer(part, points), axis=-1, b=weights))
            for part in np.array_split(slopes, math.ceil(len(slopes) / _SLOPES_AT_ONCE))
        ])  # fmt: skip
        bounds.append(float((2 * logs[1:] / slopes[:-1] ** 2).max()))
    return max(bounds)


def of_independent_parts(moments: Iterable[Float[np.ndarray, "5"]]) -> Float[np.ndarray, "5"]:
    """``E |x|^(2 j)`` for ``j`` up to 4 from those of independent parts of ``x``."""
    total = np.eye(1, 5)[0]
    for own in moments:
        total = np.array([
            sum(math.comb(j, i) * total[i] * own[j - i] for i in range(j + 1)) for j in range(5)
        ])  # fmt: skip
    return total


def of_sum(*moments: Float[np.ndarray, "5"]) -> Float[np.ndarray, "5"]:
    """Bounds on ``E |x|^(2 j)`` for a sum of tokens, by Minkowski's inequality."""
    powers = 2.0 * np.arange(1, 5)
    roots = sum(own[1:] ** (1 / powers) for own in moments)
    return np.concatenate([[1.0], roots**powers])


_LISTED = 6
"""Numbers of an array that a summary lists."""


class Tilt(NamedTuple):
    """A measure tilted by ``exp(a^T x)``, whose mean attention with the scores ``a^T x`` returns.

    Attributes:
        log_normalizer: ``Lambda(a) = log E exp(a^T X)``.
        mean: The mean of the tilted measure, the gradient of ``Lambda``.
        covariance: Its covariance, the Hessian of ``Lambda``.
    """

    log_normalizer: Float[Any, "*batch"]
    mean: Float[Any, "*batch d"]
    covariance: Float[Any, "*batch d d"]


class Measure(Described, eqx.Module):
    """The law ``mu`` of the tokens of a prompt, a probability measure on ``R^d``.

    Attention over infinitely many tokens drawn from it returns the mean of ``mu`` tilted by its
    scores (*Softmax as Linear Attention in the Large-Prompt Regime*, arXiv 2512.11784, attention as
    an operator on measures). Measures are JAX pytrees: methods work under ``jit``, ``grad`` and
    ``vmap``, in the precision in force, and give NumPy float64 where everything is NumPy.

    A new measure is a class with ``dimension`` and the four methods that are abstract here; one
    whose exponential moments are infinite somewhere overrides ``_exists`` and ``_refusal``, and
    returns NaN there.
    """

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Number of coordinates of a token."""

    @property
    def mean(self) -> Float[Any, "*rows d"]:
        """The mean of a token."""
        return _tilt(self, np.zeros(self.dimension)).mean

    @property
    def covariance(self) -> Float[Any, "*rows d d"]:
        """The covariance of a token."""
        return _tilt(self, np.zeros(self.dimension)).covariance

    def tilt(self, direction: Float[Any, "*batch d"] | Any) -> Tilt:
        """``mu`` reweighted by ``exp(a^T x)``: normalizer, mean and covariance.

        Args:
            direction: The vector ``a`` with any leading axes; ``U z`` for a head with score matrix
                ``U`` and a query ``z``.

        Raises:
            InvalidInputError: If the last axis is not the dimension, an entry is not finite, or
                ``E exp(a^T X)`` is infinite. Under ``jit`` the latter gives NaN.
        """
        return _tilt(self, self.admissible(direction))

    def log_normalizer(self, direction: Float[Any, "*batch d"] | Any) -> Float[Any, "*rows"]:
        """``Lambda(a) = log E exp(a^T X)``; arguments and errors are those of ``tilt``."""
        return _log_normalizer(self, self.admissible(direction))

    def tilted_mean(self, direction: Float[Any, "*batch d"] | Any) -> Float[Any, "*rows d"]:
        """``grad Lambda(a)``, the mean alone; arguments and errors are those of ``tilt``."""
        return _tilted_mean(self, self.admissible(direction))

    def covariance_product(
        self, direction: Float[Any, "*batch d"] | Any, vector: Float[Any, "*#batch d"] | Any
    ) -> Float[Any, "*rows d"]:
        """The tilted covariance times a vector, ``C_a g``, without forming ``C_a``.

        Arguments and errors are those of ``tilt``; leading axes of the vector broadcast.
        """
        vector = checked("vector", vector, ("d",), batched=True)
        if vector.shape[-1] != self.dimension:
            raise _wrong_axis("vector", vector.shape, self.dimension)
        return _covariance_product(self, self.admissible(direction), vector)

    def exists(self, direction: Float[Any, "*batch d"] | Any) -> Bool[Any, "*batch"]:
        """Whether ``E exp(a^T X)`` is finite, and with it attention over infinitely many tokens."""
        return _exists(self, self._in_shape(direction))

    def sample(self, count: int, *, seed: int) -> Float[np.ndarray, "*batch count d"]:
        """Draws tokens independently.

        Args:
            count: Number of tokens.
            seed: Same seed, same tokens.

        Raises:
            InvalidInputError: If the count is not an integer >= 0, or the seed not one in
                [0, 2^63).
        """
        count = check_count("count", count, 0)
        require_memory_for(
            "count", count, "tokens", each=16.0 * self.dimension, otherwise="Draw none"
        )
        return self._draw(count, generator(seed, purpose="tokens of a measure"))

    def sub_gaussian_parameter(self) -> SubGaussianParameter:
        """The least ``sigma`` with ``E exp(a^T (X - E X)) <= exp(sigma^2 |a|^2 / 2)``, any ``a``.

        Known for Gaussian laws, signs, uniform laws and spheres, of which it is the largest
        standard deviation, and for products of these; for others between two bounds. Empirical laws
        have the upper bound of Hoeffding's lemma, within 1 % of the least on a line; sums and
        mixtures that of their parts. It is infinite where some exponential moment is.
        """
        upper = self._variance_proxy()
        lower = witnessed_proxy(self) if upper < math.inf else math.inf
        return SubGaussianParameter(math.sqrt(min(lower, upper)), math.sqrt(upper))

    def tilted_norm_moments(self, direction: Float[Any, "d"] | Any) -> Float[np.ndarray, "5"]:
        """``E_a |X|^p`` for ``p = 0, 2, 4, 6, 8`` under the law tilted by ``exp(a^T x)``.

        They are exact, but for sums of independent tokens and images under matrices, where they are
        upper bounds by Minkowski's inequality. Infinite where nothing is known.

        Args:
            direction: ``a``, one direction.

        Raises:
            InvalidInputError: As ``tilt``, or if there are several directions.
        """
        direction = np.asarray(self.admissible(direction), dtype=np.float64)
        if direction.ndim != 1:
            wanted = f"Give one direction, ({self.dimension},)"
            raise InvalidInputError("direction", f"the shape is {direction.shape}", wanted)
        return self._norm_moments(direction)

    def with_noise(self, variance: Float[Any, ""] | Any) -> Measure:
        """The law of ``X + N(0, t^2 I)`` for noise of variance ``t^2`` in every coordinate.

        Raises:
            InvalidInputError: If the variance is not a number >= 0.
        """
        from attractor.prompts.measures.gaussian import Gaussian

        return Convolution(self, Gaussian.isotropic(self.dimension, variance))

    def pushforward(
        self, matrix: Float[Any, "k d"] | Any, shift: Float[Any, "k"] | Any | None = None
    ) -> Measure:
        """The law of ``A X + b`` for a matrix ``A`` and a shift ``b``, zero if left out.

        Raises:
            InvalidInputError: If shapes do not fit, or an entry is not finite.
        """
        return Pushforward(self, matrix, shift)

    def admissible(self, direction: Float[Any, "*batch d"] | Any) -> Any:
        """The direction, checked as ``tilt`` says."""
        direction = self._in_shape(direction)
        if not traced((self, direction)):
            refusal = self._refusal(np.asarray(direction, dtype=np.float64))
            if refusal is not None:
                raise refusal
        return direction

    def _in_shape(self, direction: Float[Any, "*batch d"] | Any) -> Any:
        direction = checked("direction", direction, ("d",), batched=True)
        if direction.shape[-1] != self.dimension:
            raise _wrong_axis("direction", direction.shape, self.dimension)
        return direction

    def _summary(self) -> tuple[str, Rows]:
        parts = [
            (field.name.strip("_").replace("_", " "), _in_words(getattr(self, field.name)))
            for field in dataclasses.fields(self)
            if getattr(self, field.name) is not None
        ]
        return type(self).__name__, [("tokens", f"in R^{self.dimension}"), *parts]

    @abc.abstractmethod
    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        """``Lambda(a)``."""

    @abc.abstractmethod
    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        """``grad Lambda(a)``, with a JAX derivative that is exact."""

    @abc.abstractmethod
    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        """``Hess Lambda(a)``."""

    @abc.abstractmethod
    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        """Independent tokens."""

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return jnp.ones(direction.shape[:-1], dtype=bool)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        return None

    def _generated(
        self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]
    ) -> Generated | None:
        """Moments of tokens beside their scores at complex tilts; None where there is no formula.

        Args:
            line: Direction of the scores, projection and center of the tokens.
            q: Complex multiples of the direction, of one slope in a row and one frequency in a
                column. Exponential moments exist at all slopes.
        """
        return None

    def _variance_proxy(self) -> float:
        """An upper bound on the square of the sub-Gaussian parameter, with a proof."""
        return math.inf

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        return np.array([1.0, *[math.inf] * 4])

    def _covariance_product(
        self, direction: Float[Array, "*batch d"], vector: Float[Array, "*batch d"]
    ) -> Float[Array, "*rows d"]:
        # The covariance is the derivative of the mean, so that this is one pass through the mean.
        return jax.jvp(self._tilted_mean, (direction,), (vector,))[1]


def as_numpy(leaf: Any) -> Float[np.ndarray, "..."]:
    """A leaf of a measure as NumPy float64, for drawing."""
    return as_float64("measure", leaf, largest=LARGEST)


def _in_words(part: Any) -> str:
    """An attribute of a measure: few numbers as they are, more by their shape."""
    if isinstance(part, Measure):
        title, rows = part._summary()
        return f"{title}: {'; '.join(f'{name} {value}' for name, value in rows[1:])}"
    if isinstance(part, tuple | list):
        return ", ".join(map(_in_words, part))
    shape = np.shape(part)
    if math.prod(shape) > _LISTED or not hasattr(part, "shape"):
        return f"{' x '.join(map(str, shape))} numbers" if shape else str(part)
    return ", ".join(f"{number:.4g}" for number in np.asarray(part).ravel())


def _wrong_axis(argument: str, shape: tuple[int, ...], dimension: int) -> InvalidInputError:
    return InvalidInputError(
        argument,
        f"the shape is {shape}",
        f"Give (..., {dimension}): tokens have {dimension} entries",
    )


@numpy_in_double
def _tilt(measure: Measure, direction: Any) -> Tilt:
    direction = jnp.asarray(direction)
    return Tilt(
        measure._log_normalizer(direction),
        measure._tilted_mean(direction),
        measure._tilted_covariance(direction),
    )


@numpy_in_double
def _log_normalizer(measure: Measure, direction: Any) -> Any:
    return measure._log_normalizer(jnp.asarray(direction))


@numpy_in_double
def _tilted_mean(measure: Measure, direction: Any) -> Any:
    return measure._tilted_mean(jnp.asarray(direction))


@numpy_in_double
def _covariance_product(measure: Measure, direction: Any, vector: Any) -> Any:
    direction, vector = jnp.broadcast_arrays(jnp.asarray(direction), jnp.asarray(vector))
    dtype = jnp.result_type(direction, vector)
    return measure._covariance_product(direction.astype(dtype), vector.astype(dtype))


@numpy_in_double
def _exists(measure: Measure, direction: Any) -> Any:
    return measure._exists(jnp.asarray(direction))


class Convolution(Measure):
    """The law of ``X + Y`` for independent ``X`` and ``Y``: normalizers add up, and so do tilts.

    Attributes:
        first: The law of ``X``.
        second: The law of ``Y``.
    """

    first: Measure
    second: Measure

    def __init__(self, first: Measure, second: Measure) -> None:
        """Stores the two laws.

        Raises:
            InvalidInputError: If their dimensions differ.
        """
        check_kinds(first=(first, Measure), second=(second, Measure))
        if first.dimension != second.dimension:
            raise InvalidInputError(
                "second", f"the dimension is {second.dimension}", f"Give {first.dimension}"
            )
        self.first, self.second = first, second

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.first.dimension

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return self.first._log_normalizer(direction) + self.second._log_normalizer(direction)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self.first._tilted_mean(direction) + self.second._tilted_mean(direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        return self.first._tilted_covariance(direction) + self.second._tilted_covariance(direction)

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return jnp.logical_and(self.first._exists(direction), self.second._exists(direction))

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        return self.first._refusal(direction) or self.second._refusal(direction)

    def _generated(
        self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]
    ) -> Generated | None:
        first = self.first._generated(line, q)
        second = self.second._generated(line._replace(center=np.zeros(self.dimension)), q)
        return None if first is None or second is None else first.plus_independent(second)

    def _variance_proxy(self) -> float:
        return self.first._variance_proxy() + self.second._variance_proxy()

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        return of_sum(*(part._norm_moments(direction) for part in (self.first, self.second)))

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        return self.first._draw(count, random) + self.second._draw(count, random)


class Pushforward(Measure):
    """The law of ``A X + b``, with ``Lambda(a) = b^T a + Lambda_X(A^T a)``.

    Tilted, it has mean ``A m + b`` and covariance ``A C A^T``, where ``m`` and ``C`` are those that
    ``X`` has at ``A^T a``.

    Attributes:
        source: The law of ``X``.
        matrix: ``A``, ``(k, d)``.
        shift: ``b``, ``(k,)``.
    """

    source: Measure
    matrix: Float[Any, "k d"]
    shift: Float[Any, "k"]

    def __init__(
        self,
        source: Measure,
        matrix: Float[Any, "k d"] | Any,
        shift: Float[Any, "k"] | Any | None = None,
    ) -> None:
        """Checks and stores the law and the map.

        Raises:
            InvalidInputError: If shapes do not fit, or an entry is not finite.
        """
        check_kinds(source=(source, Measure))
        self.source = source
        self.matrix, self.shift = checked_map(source.dimension, matrix, shift)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.matrix.shape[-2]

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return direction @ self.shift + self.source._log_normalizer(direction @ self.matrix)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self.source._tilted_mean(direction @ self.matrix) @ self.matrix.T + self.shift

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        inner = self.source._tilted_covariance(direction @ self.matrix)
        return jnp.asarray(self.matrix) @ inner @ self.matrix.T

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return self.source._exists(direction @ self.matrix)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        return self.source._refusal(direction @ as_numpy(self.matrix))

    def _generated(
        self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]
    ) -> Generated | None:
        matrix, center = as_numpy(self.matrix), as_numpy(self.source.mean)
        inner = ScoreLine(line.direction @ matrix, line.projection @ matrix, center)
        found = self.source._generated(inner, q)
        if found is None:
            return None
        rest = matrix @ center + as_numpy(self.shift) - line.center
        return found.moved(q, float(line.direction @ rest), line.projection @ rest)

    def _variance_proxy(self) -> float:
        return float(np.linalg.norm(as_numpy(self.matrix), 2)) ** 2 * self.source._variance_proxy()

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        matrix, powers = as_numpy(self.matrix), 2.0 * np.arange(5)
        moved = np.linalg.norm(matrix, 2) ** powers * self.source._norm_moments(direction @ matrix)
        return of_sum(moved, float(np.linalg.norm(as_numpy(self.shift))) ** powers)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        drawn = self.source._draw(count, random)
        return drawn @ as_numpy(self.matrix).T + as_numpy(self.shift)
