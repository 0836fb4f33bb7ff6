"""``InContextTask``, a random task, and ``TaskSample``, prompts of it with the risk of heads."""

from __future__ import annotations

import abc
import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.prompts.head import AttentionHead
from attractor.prompts.in_context.losses import SQUARED, Loss, summed
from attractor.prompts.measures import Empirical, Measure
from attractor.support.checks import (
    as_number,
    check_count,
    check_flag,
    check_kind,
    check_number,
    check_text,
    shown,
)
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for
from attractor.support.precision import as_float64, double_precision
from attractor.support.randomness import generator


class RiskEstimate(NamedTuple):
    """A risk averaged over tasks.

    Attributes:
        value: The average.
        standard_error: Over tasks, each of which has one prompt and one query.
    """

    value: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class TaskSample:
    """Tasks, each with a prompt, the law of its tokens, a query and a label.

    Prompts of length ``L`` are the first ``L`` tokens of the longest, so that lengths are compared
    on common random numbers.

    Attributes:
        prompts: The longest prompts.
        queries: A query a task.
        labels: Its label or labels.
        limit: The law of tokens, with an axis of tasks; ``Empirical`` where tokens stand for it.
        exact: Whether the limit is the law itself, not tokens in its place.
    """

    prompts: Float[np.ndarray, "task token dimension"]
    queries: Float[np.ndarray, "task dimension"]
    labels: Float[np.ndarray, "task output"]
    limit: Measure
    exact: bool

    @property
    def longest(self) -> int:
        """Tokens of the longest prompts."""
        return self.prompts.shape[1]

    def law(self, length: float) -> Measure:
        """The measure that attention is over on prompts of a length; infinity for the limit.

        Raises:
            InvalidInputError: If prompts are not that long.
        """
        number = as_number(length)
        if number == math.inf:
            return self.limit
        if not 1 <= number <= self.longest or number != int(number):
            raise InvalidInputError(
                "length", f"{shown(length)} is none of them", f"Give 1 to {self.longest} or inf"
            )
        return Empirical(self.prompts[:, : int(number)])

    def halves(self) -> list[Measure]:
        """The two halves of the tokens that stand for infinitely many; none where it is exact."""
        if self.exact or not isinstance(self.limit, Empirical):
            return []
        points = np.asarray(self.limit.points)
        middle = points.shape[1] // 2
        return [Empirical(points[:, :middle]), Empirical(points[:, middle : 2 * middle])]

    def risk(self, head: AttentionHead, loss: Loss, length: float = math.inf) -> RiskEstimate:
        """The average loss of a head over tasks.

        Args:
            head: The head, whose outputs are as many as labels of a query.
            loss: The loss.
            length: Tokens of each prompt, or infinity.

        Raises:
            InvalidInputError: If shapes do not fit, prompts are not that long, or attention over
                infinitely many tokens does not exist.
        """
        losses = self.losses_under(head, loss, self.law(length))
        return _estimate(losses)

    def limit_error(self, head: AttentionHead, loss: Loss) -> float:
        """How far tokens that stand for infinitely many are off, in the risk of a head.

        An estimate: the average risk of the two halves of them less that of all of them, which is
        as large as the error where that falls like one over their number. Zero where the law
        itself is known.
        """
        check_head(self, head, loss)
        halves = [self.losses_under(head, loss, half).mean() for half in self.halves()]
        if not halves:
            return 0.0
        return abs(float(np.mean(halves) - self.losses_under(head, loss, self.limit).mean()))

    def losses_under(
        self, head: AttentionHead, loss: Loss, law: Measure
    ) -> Float[np.ndarray, "task"]:
        """The loss of each task under a law of its tokens."""
        check_head(self, head, loss)
        with double_precision():
            # Converted by jnp.asarray each shape would be a program of its own.
            data = jax.device_put((law, self.queries, self.labels))
            matrices = jax.device_put((head.score_matrix, head.value_matrix))
            losses = np.asarray(_compiled_losses(loss)(*matrices, data))
        if not np.isfinite(losses).all():
            raise InvalidInputError(
                "head",
                f"the loss of task {int(np.argmin(np.isfinite(losses)))} is not finite",
                "Give smaller scores: attention over infinitely many tokens does not exist there",
            )
        return losses


def check_head(sample: TaskSample, head: AttentionHead, loss: Loss) -> None:
    """Refuses heads that are not for these tokens and labels."""
    check_kind("head", head, AttentionHead, "Give one")
    check_kind("loss", loss, Loss, "Give one of attractor.prompts.in_context.LOSSES")
    d, k = sample.queries.shape[1], sample.labels.shape[1]
    if np.shape(head.score_matrix) != (d, d) or np.shape(head.value_matrix) != (k, d):
        raise InvalidInputError(
            "head",
            f"U has the shape {np.shape(head.score_matrix)}, V {np.shape(head.value_matrix)}",
            f"Give ({d}, {d}) and ({k}, {d})",
        )


def _estimate(losses: Float[np.ndarray, "task"]) -> RiskEstimate:
    count = len(losses)
    error = float(losses.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf
    return RiskEstimate(float(losses.mean()), error)


def attended(
    law: Measure, score_matrix: Float[Array, "d d"], queries: Float[Array, "task d"]
) -> Float[Array, "task d"]:
    """The mean of the tokens of each task, tilted by ``exp(x^T U z)`` for its query ``z``."""
    directions = queries @ score_matrix.T
    if isinstance(law, Empirical):  # has axes of prompts of its own
        if law.weights is not None:
            return law.tilted_mean(directions)
        # A third of the time of its tilted mean, whose derivative is exact at any gap of scores.
        weights = jax.nn.softmax(jnp.einsum("tld,td->tl", law.points, directions), axis=-1)
        return jnp.einsum("tl,tld->td", weights, law.points)
    return jax.vmap(lambda one, direction: one.tilted_mean(direction))(law, directions)


def losses_of(
    score_matrix: Float[Array, "d d"],
    value_matrix: Float[Array, "output d"],
    data: Any,
    loss: Loss,
) -> Float[Array, "task"]:
    """The loss of each task; data are the law, the queries and the labels."""
    law, queries, labels = data
    return summed(loss, attended(law, score_matrix, queries) @ value_matrix.T, labels)


@functools.lru_cache(maxsize=64)
def _compiled_losses(loss: Loss) -> Any:
    return jax.jit(functools.partial(losses_of, loss=loss))


@dataclass(frozen=True)
class KnownLaw:
    """What is proven of the law of a task, so that nothing of it has to be measured.

    Attributes:
        tail_index: ``E sigma^k`` is finite for ``k`` below it, and infinite above, where ``sigma``
            is the sub-Gaussian parameter of tokens given the task; infinity for every moment.
        tilted_moments: Whether moments of tokens and queries tilted by the scores of a head are
            bounded by a polynomial in ``sigma``, the same for all heads in a ball.
        query_parameter: The least sub-Gaussian parameter of queries, or any one that is at most 1.
        reason: Why, in words.
    """

    tail_index: float
    tilted_moments: bool
    query_parameter: float
    reason: str

    def __post_init__(self) -> None:
        """Validates.

        Raises:
            InvalidInputError: If a number is negative or none, or the reason no text.
        """
        if as_number(self.tail_index) != math.inf:
            check_number("tail_index", self.tail_index, least=0.0, example=math.inf)
        check_flag("tilted_moments", self.tilted_moments)
        check_number("query_parameter", self.query_parameter, least=0.0, example=1.0)
        check_text("reason", self.reason)


class InContextTask(abc.ABC):
    """A law of tasks ``xi``: given one, tokens are independent, and a query has a label.

    The prediction is ``T[mu](z) = V m``, with ``m`` the mean of the tokens of law ``mu`` tilted by
    ``exp(x^T U z)``. A task of one's own derives from this class; functions are given arrays of
    many tasks at once, and draw from the generator that they are handed alone::

        class SparseRegression(InContextTask):
            dimension = 6

            def draw(self, random, count):
                return random.standard_normal((count, 5)) * (random.random((count, 5)) < 0.3)

            def tokens(self, parameters, random, length):
                x = random.standard_normal((len(parameters), length, 5))
                return np.concatenate([x, x @ parameters[:, :, None]], axis=-1)

            def queries(self, parameters, random):
                x = random.standard_normal((len(parameters), 5))
                return np.pad(x, ((0, 0), (0, 1))), (x * parameters).sum(-1)

    Attributes:
        dimension: Entries of a token, and of a query.
        loss: The loss of a prediction and a label.
        about: The task in words; the name of the class if empty.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784), general in-context learning.
    """

    dimension: int
    loss: Loss = SQUARED
    about: str = ""
    law: ClassVar[KnownLaw | None] | KnownLaw | None = None
    """What is proven of the law of tasks, or None where that is to be measured."""

    @abc.abstractmethod
    def draw(self, random: np.random.Generator, count: int) -> Float[np.ndarray, "task *own"]:
        """Parameters of independent tasks, one row each."""

    @abc.abstractmethod
    def tokens(
        self, parameters: Float[np.ndarray, "task *own"], random: np.random.Generator, length: int
    ) -> Float[np.ndarray, "task length dimension"]:
        """A prompt of each task: tokens that are independent given its parameters."""

    @abc.abstractmethod
    def queries(
        self, parameters: Float[np.ndarray, "task *own"], random: np.random.Generator
    ) -> tuple[Float[np.ndarray, "task dimension"], Float[np.ndarray, "task *output"]]:
        """A query of each task, and its label or labels."""

    def measure(self, parameters: Float[np.ndarray, "*own"]) -> Measure | None:
        """The law of the tokens of one task; None where its tilted mean is no closed form."""
        return None

    def sub_gaussian(self, parameters: Float[np.ndarray, "task *own"]) -> Any:
        """A sub-Gaussian parameter ``sigma`` of the tokens of each task; None if not known."""
        return None

    @property
    def name(self) -> str:
        """The task in words."""
        return self.about or type(self).__name__

    def parameters(self, count: int, *, seed: int) -> Float[np.ndarray, "task *own"]:
        """Parameters of tasks by their seed; ``draw``, checked.

        Raises:
            InvalidInputError: If ``draw`` gives anything but finite numbers, a row a task.
        """
        count = check_count("count", count)
        return _rows("draw", self.draw(generator(seed, purpose="tasks"), count), count)

    def sub_gaussian_parameters(self, count: int, *, seed: int) -> Float[np.ndarray, "task"] | None:
        """``sigma`` of tasks by their seed; ``sub_gaussian``, checked.

        Raises:
            InvalidInputError: If it gives anything but a positive number a task.
        """
        found = self.sub_gaussian(self.parameters(count, seed=seed))
        if found is None:
            return None
        sigma = _rows("sub_gaussian", found, count, axes=1)
        if not (sigma > 0).all():
            raise InvalidInputError(
                "sub_gaussian", f"it gives {sigma.min():.3g} for a task", "Give positive numbers"
            )
        return sigma

    def sample(
        self, count: int, longest: int, *, seed: int = 0, limit_tokens: int = 4096
    ) -> TaskSample:
        """Draws tasks, each with a prompt, the law of its tokens, a query and a label.

        Args:
            count: Number of tasks.
            longest: Tokens of each prompt; shorter prompts are its first tokens.
            seed: Same seed, same sample.
            limit_tokens: Tokens that stand for infinitely many where ``measure`` gives no law.

        Raises:
            InvalidInputError: If a function of the task gives arrays of wrong shapes, numbers that
                are not finite, or other ones when called again with the same generator; or if the
                sample does not fit into memory.
        """
        longest = check_count("longest", longest)
        limit_tokens = check_count("limit_tokens", limit_tokens, 2)
        m = check_count("dimension", self.dimension)
        check_kind("loss", self.loss, Loss, "Give one of attractor.prompts.in_context.LOSSES")
        parameters = self.parameters(count, seed=seed)
        limit = self._limit(parameters)
        exact = limit is not None
        each = 24.0 * m * (longest + (0 if exact else limit_tokens))
        require_memory_for("count", count, "tasks", each=each, otherwise="Give fewer tasks")
        self._check_repeatable(parameters[:2], seed)
        random = generator(seed, purpose="tokens of tasks")
        prompts = self._tokens(parameters, random, longest)
        random = generator(seed, purpose="queries of tasks")
        queries, labels = self._queries(parameters, random)
        if limit is None:
            random = generator(seed, purpose="tokens of infinite prompts")
            limit = Empirical(self._tokens(parameters, random, limit_tokens))
        return TaskSample(prompts, queries, labels, limit, exact)

    def _limit(self, parameters: np.ndarray) -> Measure | None:
        """The laws of the tokens of many tasks as one; None where one has no closed form."""
        laws = [self.measure(one) for one in parameters]
        return None if any(law is None for law in laws) else _stacked(laws, self.dimension)

    def _tokens(
        self, parameters: np.ndarray, random: np.random.Generator, length: int
    ) -> Float[np.ndarray, "task length dimension"]:
        found = _rows("tokens", self.tokens(parameters, random, length), len(parameters))
        return _shaped("tokens", found, (len(parameters), length, self.dimension))

    def _queries(
        self, parameters: np.ndarray, random: np.random.Generator
    ) -> tuple[Float[np.ndarray, "task dimension"], Float[np.ndarray, "task output"]]:
        pair = self.queries(parameters, random)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidInputError("queries", f"it gives {shown(pair)}", "Give queries and labels")
        count = len(parameters)
        queries = _shaped("queries", _rows("queries", pair[0], count), (count, self.dimension))
        labels = _rows("labels", pair[1], count)
        labels = labels[:, None] if labels.ndim == 1 else labels
        return queries, _shaped("labels", labels, (count, math.prod(labels.shape[1:])))

    def _check_repeatable(self, parameters: np.ndarray, seed: int) -> None:
        """Refuses functions that draw from elsewhere than the generator handed to them."""

        def once() -> tuple[np.ndarray, ...]:
            random = generator(seed, purpose="whether a task repeats itself")
            drawn = _rows("draw", self.draw(random, 2), 2)
            return drawn, self._tokens(parameters, random, 2), *self._queries(parameters, random)

        for name, first, second in zip(
            ("draw", "tokens", "queries", "labels"), once(), once(), strict=True
        ):
            if not np.array_equal(first, second):
                raise InvalidInputError(
                    name,
                    "called again with the same generator, it gives other numbers",
                    "Draw from the generator that it is given, and from nothing else",
                )


def _rows(name: str, value: Any, count: int, *, axes: int | None = None) -> np.ndarray:
    """What a function of a task gives, as float64, one row a task."""
    array = as_float64(name, value)
    if array.ndim < 1 or len(array) != count or 0 in array.shape or axes not in (None, array.ndim):
        raise InvalidInputError(
            name, f"for {count} tasks it gives the shape {array.shape}", f"Give {count} rows"
        )
    return array


def _shaped(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape != shape:
        raise InvalidInputError(name, f"it gives the shape {array.shape}", f"Give {shape}")
    return array


def _stacked(laws: list[Any], dimension: int) -> Measure:
    """The laws of many tasks as one whose arrays have an axis of tasks."""
    for law in laws:
        check_kind(
            "measure", law, Measure, "Give a law of attractor.prompts, or None for every one"
        )
        if law.dimension != dimension:
            raise InvalidInputError(
                "measure", f"its tokens have {law.dimension} entries", f"Give {dimension}"
            )
    structures = {jax.tree.structure(law) for law in laws}
    shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(law)) for law in laws}
    if len(structures) > 1 or len(shapes) > 1:
        raise InvalidInputError(
            "measure",
            "laws of two tasks differ in kind or in shape",
            "Give laws of one kind, with as many components and points",
        )
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(x) for x in leaves]), *laws)
