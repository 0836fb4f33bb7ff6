"""What cycles of token-priority graphs decide: margin problem, subspace, finite part, convexity."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.special import logsumexp, softmax

from attractor.attention import (
    Head,
    Loss,
    Rows,
    attention_rows,
    get_parameterization as parameterization_named,
    mean_loss,
)
from attractor.corpora.embeddings import check_embeddings
from attractor.corpora.mechanics.labels import PaddedContexts
from attractor.corpora.structures.orders import QueryGraphs
from attractor.margin import MarginProblem
from attractor.support.checks import check_count, check_kinds, check_number, one_or_several
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_shaped, double_precision
from attractor.support.randomness import generator
from attractor.tokens import Tokens
from attractor.training.inputs import check_inputs


def graph_problem(graphs: QueryGraphs | Sequence[QueryGraphs], embeddings: Any) -> MarginProblem:
    """The smallest matrix that scores tokens as the graphs order them (Graph-SVM).

        min ||W||   subject to   (e_i - e_j)^T W e_k  = 0   for i, j in one component,
                                 (e_i - e_j)^T W e_k >= 1   for edges i -> j across components

    in the graph of every query k. Equalities tie one token of a component to every other,
    which makes all its tokens equal; edges make paths, so that a token that reaches another one
    through several edges is ahead of it by one at least. Source: *Mechanics of Next Token
    Prediction with Self-Attention* (arXiv 2403.08081), Graph-SVM.

    Linearly independent embeddings, which take ``K <= d``, always leave a solution. Without them
    the constraints may contradict each other: ``solve`` then answers *infeasible*, and says which.

    Args:
        graphs: The graphs, or one set of them for each instance.
        embeddings: ``(K, d)``, or ``(instances, K, d)``.

    Raises:
        InvalidInputError: If the embeddings do not fit the graphs.
    """
    listed, several = one_or_several("graphs", graphs, QueryGraphs)
    vectors = _vectors(listed, embeddings)
    parts = [_constraints(one) for one in listed]
    most = max(1, *(len(better) for better, *_ in parts))
    shape = (len(listed), most, vectors.shape[-1])
    left, right = np.zeros(shape), np.zeros(shape)
    equality, present = np.zeros(shape[:2], dtype=bool), np.zeros(shape[:2], dtype=bool)
    for i, (better, worse, query, equal) in enumerate(parts):
        count = len(better)
        left[i, :count] = vectors[i][better] - vectors[i][worse]
        right[i, :count] = vectors[i][query]
        equality[i, :count], present[i, :count] = equal, True
    bounds = np.where(equality, 0.0, 1.0)
    problem = MarginProblem(left, right, bounds, equality, present)
    return problem if several else problem[0]


def component_pairs(graphs: QueryGraphs) -> Int[np.ndarray, "pairs 3"]:
    """``(query, token, other)``: the first token of each component with every other one of it."""
    order = np.argsort(graphs.components, kind="stable")
    component = graphs.components[order]
    first = order[np.searchsorted(component, component)]
    query, token = graphs.nodes[order].T
    reference = graphs.nodes[first, 1]
    return np.stack([query, reference, token], axis=1)[token != reference]


def _constraints(
    graphs: QueryGraphs,
) -> tuple[Int[np.ndarray, "m"], Int[np.ndarray, "m"], Int[np.ndarray, "m"], Bool[np.ndarray, "m"]]:
    """Tokens ahead and behind, the query, and whether the two are to be equal."""
    ties = component_pairs(graphs)
    across = graphs.edges[~graphs.cyclic]
    query, better, worse = np.concatenate([ties, across]).T
    return better, worse, query, np.arange(len(query)) < len(ties)


def _vectors(graphs: list[QueryGraphs], embeddings: Any) -> Float[np.ndarray, "instances K d"]:
    vectors = as_float64("embeddings", embeddings)
    sizes = {one.size for one in graphs}
    allowed = [(size,) for size in sizes] + [(len(graphs), size) for size in sizes]
    fits = len(sizes) == 1 and vectors.ndim in (2, 3) and vectors.shape[:-1] in allowed
    if not fits or not vectors.shape[-1]:
        raise InvalidInputError(
            "embeddings",
            f"the shape is {vectors.shape}, for graphs on {sorted(sizes)} tokens",
            "Give (K, d), or (instances, K, d), with one vocabulary of K tokens for all graphs",
        )
    return np.broadcast_to(vectors, (len(graphs), *vectors.shape[-2:]))


_ROUNDING = 1e-12
"""Singular values of a span, relative to the largest, that are rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class CyclicSubspace:
    """``span{ (e_i - e_j) e_k^T : i and j in one component of the graph of query k }``.

    Attributes:
        basis: Orthonormal matrices that span it; none where no graph has a cycle.
    """

    basis: Float[np.ndarray, "r d d"]

    @property
    def dimension(self) -> int:
        """Its dimension r."""
        return len(self.basis)

    def coordinates(self, W: Float[np.ndarray, "*batch d d"]) -> Float[np.ndarray, "*batch r"]:
        """``<B_r, W>`` for every matrix of the basis."""
        W = as_shaped("W", W, ("...", *self.basis.shape[1:]))
        return np.einsum("rce,...ce->...r", self.basis, W)

    def embed(self, coordinates: Float[np.ndarray, "*batch r"]) -> Float[np.ndarray, "*batch d d"]:
        """The matrix with these coordinates."""
        coordinates = as_float64("coordinates", coordinates)
        if coordinates.shape[-1:] != (self.dimension,):
            raise InvalidInputError(
                "coordinates", f"the shape is {coordinates.shape}", f"Give (..., {self.dimension})"
            )
        return np.einsum("...r,rce->...ce", coordinates, self.basis)

    def project(self, W: Float[np.ndarray, "*batch d d"]) -> Float[np.ndarray, "*batch d d"]:
        """The nearest matrix of the subspace."""
        return self.embed(self.coordinates(W))

    def __repr__(self) -> str:
        d = self.basis.shape[-1]
        return f"CyclicSubspace(dimension {self.dimension} of {d} x {d} matrices)"


def cyclic_subspace(graphs: QueryGraphs, embeddings: Float[np.ndarray, "K d"]) -> CyclicSubspace:
    """The cyclic subspace of token-priority graphs.

    Source: *Mechanics of Next Token Prediction with Self-Attention*
    (arXiv 2403.08081), the cyclic subspace.

    Args:
        graphs: The graphs.
        embeddings: The vector of every token.
    """
    check_kinds(graphs=(graphs, QueryGraphs))
    embeddings = check_embeddings(as_float64("embeddings", embeddings), graphs.size)
    query, token, other = component_pairs(graphs).T
    return CyclicSubspace(product_span(embeddings[token] - embeddings[other], embeddings[query]))


def product_span(
    left: Float[np.ndarray, "m d"],
    right: Float[np.ndarray, "m e"],
    without: Float[np.ndarray, "r d e"] | None = None,
) -> Float[np.ndarray, "s d e"]:
    """Orthonormal matrices that span products ``a_j b_j^T``.

    They are found in orthonormal bases of both factors, where the products are short.

    Args:
        left: The ``a_j``.
        right: The ``b_j``.
        without: Orthonormal matrices whose span is removed from the products first.
    """
    U, V = row_span(left), row_span(right)
    products = np.einsum("mp,mq->mpq", left @ U, right @ V)
    shape = products.shape[1:]
    flat = products.reshape(len(left), -1) if len(left) else np.zeros((0, np.prod(shape)))
    if without is not None:
        own = (U.T @ without @ V).reshape(len(without), flat.shape[1])
        flat = flat - flat @ own.T @ own
    inner = row_span(flat)
    return U @ inner.T.reshape(inner.shape[1], *shape) @ V.T


def row_span(rows: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "k r"]:
    """Orthonormal columns that span some rows; none where all rows are zero."""
    if not rows.any():
        return np.zeros((rows.shape[-1], 0))
    _, values, V = np.linalg.svd(rows, full_matrices=False)
    return V[values > _ROUNDING * values[0]].T


_STEPS = 200
_ROUNDINGS = 32
"""Roundings of a value below which a change of it is noise."""


@dataclass(frozen=True, eq=False, repr=False)
class FinitePart:
    """The minimizer of the loss on the cyclic samples, over the cyclic subspace.

    Attributes:
        W: The minimizer; zero where no graph has a cycle.
        floor: The loss there, which is the infimum of the training loss.
        gradient_norm: Norm of the gradient on the cyclic subspace, at W.
        curvature: Smallest eigenvalue of the Hessian on the subspace, at W; infinite where the
            subspace is {0}. About ``gradient_norm / curvature`` is how far the minimizer can be.
        weights: Softmax weights of every token within the component of the label, at W.
        iterations: Newton steps.
    """

    W: Float[np.ndarray, "d d"]
    floor: float
    gradient_norm: float
    curvature: float
    weights: Float[np.ndarray, "samples length"]
    iterations: int

    def __repr__(self) -> str:
        norm = np.linalg.norm(self.W)
        return (
            f"FinitePart(norm {norm:.6g}, loss floor {self.floor:.6g}, "
            f"gradient {self.gradient_norm:.1e})"
        )


def finite_part(
    contexts: PaddedContexts, graphs: QueryGraphs, subspace: CyclicSubspace
) -> FinitePart:
    """The finite part of attention trained on conflicting labels.

    In each sample only tokens in the component of the label are kept; what is left to minimize is

        f(W) = sum_i w_i ( log sum_{t in C_i} exp s_it  -  log sum_{t: x_it = y_i} exp s_it ).

    Samples that keep the label alone add nothing. Along any matrix of the cyclic subspace some
    edge of a cycle must rise, so that f tends to infinity; and where all differences of scores in
    all C_i vanish, so does the matrix, so that f is strictly convex there. Hence one minimizer,
    found by Newton's method. Source: *Mechanics of Next Token Prediction with Self-Attention*
    (arXiv 2403.08081), the finite component of gradient descent.

    Args:
        contexts: The samples, each with its label among its tokens.
        graphs: Their token-priority graphs.
        subspace: The cyclic subspace.
    """
    kept = contexts.in_component(graphs)
    A = coordinate_scores(contexts, subspace.basis)
    label = A[np.arange(len(A)), contexts.is_label.argmax(1)]
    copies = np.log(contexts.is_label.sum(1))

    def value(theta: np.ndarray) -> float:
        whole: Any = logsumexp(np.where(kept, A @ theta, -np.inf), axis=1)
        return float(contexts.weights @ (whole - label @ theta - copies))

    def derivatives(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        p = softmax(np.where(kept, A @ theta, -np.inf), axis=1)
        slope = contexts.weights @ (np.einsum("it,itr->ir", p, A) - label)
        return slope, covariance(contexts.weights, p, A), p

    theta = np.zeros(subspace.dimension)
    slope, hessian, p = derivatives(theta)
    iterations = 0
    while subspace.dimension and iterations < _STEPS:
        move = -np.linalg.solve(hessian, slope)
        here = value(theta)
        noise = _ROUNDINGS * np.finfo(float).eps * (1 + abs(here))
        share = 1.0
        while value(theta + share * move) > here + 1e-4 * share * (slope @ move) + noise:
            share /= 2
        further = derivatives(theta + share * move)
        # Near the minimum values are rounding: there the gradient decides, and ends the search.
        if -(slope @ move) <= noise and np.linalg.norm(further[0]) >= np.linalg.norm(slope):
            break
        theta, (slope, hessian, p) = theta + share * move, further
        iterations += 1
    return FinitePart(
        W=subspace.embed(theta),
        floor=value(theta),
        gradient_norm=float(np.linalg.norm(slope)),
        curvature=float(np.linalg.eigvalsh(hessian)[0]) if subspace.dimension else np.inf,
        weights=p,
        iterations=iterations,
    )


def coordinate_scores(
    contexts: PaddedContexts, basis: Float[np.ndarray, "r d d"]
) -> Float[np.ndarray, "samples length r"]:
    """Scores of every matrix of a basis, measured from the label's."""
    label = contexts.is_label.argmax(1)
    differences = contexts.keys - contexts.keys[np.arange(len(contexts)), label][:, None]
    differences = np.where(contexts.present[..., None], differences, 0.0)
    return np.einsum("itc,rce,ie->itr", differences, basis, contexts.queries, optimize=True)


def covariance(
    weights: Float[np.ndarray, "samples"],
    p: Float[np.ndarray, "samples length"],
    A: Float[np.ndarray, "samples length k"],
) -> Float[np.ndarray, "k k"]:
    """``sum_i w_i Cov_{p_i}(A_i)``, the Hessian of a weighted sum of logarithms of sums."""
    mean = np.einsum("it,itk->ik", p, A)
    centered = (A - mean[:, None]) * np.sqrt(p * weights[:, None])[..., None]
    return np.einsum("itk,itl->kl", centered, centered)


_CHORD_ROUNDINGS = 16
"""Roundings of the losses at the ends of a chord within which a height is noise."""


@dataclass(frozen=True, eq=False, repr=False)
class ChordTest:
    """Heights of chords above a loss: ``(1 - s) L(V) + s L(W) - L((1 - s) V + s W)``.

    Attributes:
        heights: Height of each chord above the loss at its inner point; negative where the loss
            is not convex.
        curvatures: The height divided by ``s (1 - s) ||V - W||^2 / 2``: a second derivative
            averaged along the chord.
        rounding: A bound on the rounding error of each height.
    """

    heights: Float[np.ndarray, "instances chords"]
    curvatures: Float[np.ndarray, "instances chords"]
    rounding: Float[np.ndarray, "instances chords"]

    @property
    def violations(self) -> Int[np.ndarray, "instances"]:
        """Number of chords below the loss at their inner points, by more than rounding."""
        return (self.heights < -self.rounding).sum(-1)

    @property
    def strict(self) -> Int[np.ndarray, "instances"]:
        """Number of chords above the loss, by more than rounding."""
        return (self.heights > self.rounding).sum(-1)

    def __repr__(self) -> str:
        return (
            f"ChordTest({self.violations.sum()} violations in {self.heights.size:,} chords, "
            f"{self.strict.sum():,} strictly above)"
        )


def chord_test(
    tokens: Tokens,
    head: Head,
    loss: str | Loss = "negative_log",
    *,
    chords: int = 400,
    size: float = 1.0,
    seed: int = 0,
    along: CyclicSubspace | list[CyclicSubspace] | None = None,
) -> ChordTest:
    """Compares a training loss, as a function of W, with random chords.

    Both ends of a chord are Gaussian matrices, and its inner point is uniform on it. The loss of
    label mass is convex in W, and strictly so along the cyclic subspace; other heads and losses
    are not. Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081),
    convexity of the training loss.

    Args:
        tokens: The data sets.
        head: The head.
        loss: The loss.
        chords: Number of chords for each instance.
        size: Standard deviation of the entries of both ends.
        seed: Names the random numbers, together with the number of the instance.
        along: The cyclic subspace, or one for each instance: the ends of a chord then differ by a
            Gaussian matrix of it alone.

    Raises:
        InvalidInputError: If an argument does not fit, or a subspace is {0}.
    """
    inputs = check_inputs(
        tokens, head, loss=loss, parameterization="W", initial=None, seeds=1, seed=seed
    )
    chords = check_count("chords", chords)
    size = check_number("size", size, least=1e-100, most=1e100, example=1.0)
    count = inputs.count
    spaces: list[CyclicSubspace | None] = [None] * count
    if along is not None:
        listed, several = one_or_several("along", along, CyclicSubspace)
        spaces = [*listed] if several else [*listed] * count
    if len(spaces) != count or any(space is not None and not space.dimension for space in spaces):
        raise InvalidInputError(
            "along",
            f"there are {len(spaces)} for {count} instances, or one is {{0}}",
            "Give a subspace of positive dimension for each",
        )
    ends = []
    for number, space in zip(tokens.instance_numbers.tolist(), spaces, strict=True):
        draws = generator(seed, number, purpose="chords")
        shape = (chords, tokens.key_dimension, tokens.query_dimension)
        first, second = size * draws.normal(size=(2, *shape))
        if space is not None:
            second = first + space.project(second)
        ends.append((first, second, draws.random((chords, 1, 1))))
    first, second, share = (np.stack(parts) for parts in zip(*ends, strict=True))
    inner = (1 - share) * first + share * second
    with double_precision():
        rows, heads = _with_instances(attention_rows(tokens), head, tokens)
        at = [np.asarray(_losses(inputs.loss, heads, rows, W)) for W in (first, second, inner)]
    s = share[..., 0, 0]
    scale = s * (1 - s) * ((first - second) ** 2).sum((-1, -2)) / 2
    heights = (1 - s) * at[0] + s * at[1] - at[2]
    rounding = _CHORD_ROUNDINGS * np.finfo(float).eps * (np.abs(at[0]) + np.abs(at[1]))
    return ChordTest(heights, heights / scale, rounding)


def _with_instances(rows: Rows, head: Head, tokens: Tokens) -> tuple[Any, Any]:
    """Rows and heads with an axis of instances."""
    if tokens.instances is None:
        return jax.tree.map(lambda leaf: leaf[None], (rows, head))
    shared = head.instances is None
    return rows, head.for_instances(np.arange(tokens.instances)) if shared else head


@functools.partial(jax.jit, static_argnums=0)
def _losses(
    loss: Loss, heads: Head, rows: Rows, W: Float[Array, "instances chords d e"]
) -> Float[Array, "instances chords"]:
    layer: Any = parameterization_named("W")

    def one(head: Head, rows: Rows, W: Array) -> Array:
        return jax.vmap(lambda matrix: mean_loss(layer, loss, matrix, head, rows))(W)

    return jax.vmap(one)(heads, rows, jnp.asarray(W))
