"""The limit of training within the cyclic subspace, and the infimum of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, softmax

from attractor.corpora.mechanics._cyclic_subspace import CyclicSubspace
from attractor.corpora.mechanics.contexts import PaddedContexts
from attractor.corpora.structures.graphs import QueryGraphs

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
