"""Coordinates in which the regularization path of a linear decoder is found.

A minimizer over a ball lies in the span of the embeddings and has columns of sum zero. What is
left splits into the subspace F of the supports, which settles the odds within them, and its
complement, in which all tokens of a support move together and only those outside move against
them. The loss outside is e^-B in the radius B: measured in the multiplier of the ball, which is as
small, every number below is of ordinary size at any radius.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float

from attractor.errors import InvalidInputError
from attractor.next_token.linear._support_space import anchors, reduced_embeddings, support_space
from attractor.next_token.linear.contexts import Contexts

_COMPATIBLE = 1e-9
"""Log-odds that the finite part lacks, relative to one plus the largest, which count as none."""
_LARGEST = 4000
"""Unknowns up to which Newton's systems are affordable."""


class Step(NamedTuple):
    """Newton's step at a point, and how the solution moves with the multiplier.

    Attributes:
        inside: Step in F.
        outside: Step in the complement.
        moved_inside: Derivative of the solution in F by the logarithm of the multiplier.
        moved_outside: Derivative in the complement.
        residual: Length of ``grad CE / lambda + W`` in the complement.
    """

    inside: Float[np.ndarray, "f"]
    outside: Float[np.ndarray, "g"]
    moved_inside: Float[np.ndarray, "f"]
    moved_outside: Float[np.ndarray, "g"]
    residual: float


class PathCoordinates:
    """``CE(W) + lambda ||W||^2 / 2`` of one data set, with W as coordinates in F and beyond.

    Those in F are measured from the finite part, at which the odds within supports are met: what
    is left of them is then known to its own rounding, and rare tokens beside likely ones are.

    Attributes:
        inside: Orthonormal matrices that span F, ``(f, V, d)``.
        outside: Orthonormal matrices that span the complement, ``(g, V, d)``.
        finite: Coordinates of the finite part in F.
    """

    def __init__(self, contexts: Contexts) -> None:
        """Finds the coordinates.

        Args:
            contexts: A single data set, without an axis of instances.

        Raises:
            InvalidInputError: If there are too many unknowns.
        """
        V = contexts.classes
        _, span = reduced_embeddings(contexts.embeddings)
        unknowns = (V - 1) * len(span)
        if unknowns > _LARGEST:
            raise InvalidInputError(
                "contexts",
                f"a decoder has {unknowns:,} unknowns: tokens less one, times the rank of the "
                "embeddings",
                f"Give a problem of {_LARGEST:,} at most",
            )
        self.contexts, self.best = contexts, anchors(contexts)
        space = support_space(contexts)
        self.inside = space.basis
        self.finite = np.tensordot(space.basis, space.solution, 2)
        balanced = scipy.linalg.null_space(np.ones((1, V)))
        whole = np.einsum("vk,rd->krvd", balanced, span).reshape(unknowns, V, -1)
        found = np.einsum("kvd,fvd->kf", whole, self.inside)
        rest = np.linalg.qr(found, mode="complete")[0][:, len(self.inside) :]
        self.outside = np.einsum("kg,kvd->gvd", rest, whole)
        self.context, self.token = np.nonzero(~contexts.support)
        self._inside_logits = np.einsum("md,fvd->mvf", contexts.embeddings, self.inside)
        outside_logits = np.einsum("md,gvd->mvg", contexts.embeddings, self.outside)
        self._lacking = self._odds_lacking()
        supports = outside_logits[np.arange(contexts.count), self.best]
        self._rise = outside_logits[self.context, self.token] - supports[self.context]

    def matrix(
        self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"]
    ) -> Float[np.ndarray, "V d"]:
        """The decoder of coordinates."""
        return self.move(self.finite + a, b)

    def move(
        self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"]
    ) -> Float[np.ndarray, "V d"]:
        """The difference of two decoders whose coordinates differ by so much."""
        beyond = np.tensordot(b, self.outside, 1)
        # The basis is orthogonal to F but for rounding, which counts where b is large.
        a = a - np.tensordot(self.inside, beyond, 2)
        return np.tensordot(a, self.inside, 1) + beyond

    def logit_range(self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"]) -> float:
        """The largest difference that a move makes between two logits of one context."""
        logits = self.contexts.embeddings @ self.move(a, b).T
        return float(np.ptp(logits, axis=-1).max())

    def steepest(self) -> tuple[Float[np.ndarray, "f"], Float[np.ndarray, "g"]]:
        """The direction of descent at zero."""
        contexts = self.contexts
        slope = contexts.probabilities - 1 / contexts.classes
        slope = slope.T @ (contexts.frequencies[:, None] * contexts.embeddings)
        return np.tensordot(self.inside, slope, 2), np.tensordot(self.outside, slope, 2)

    def step(
        self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"], log_multiplier: float
    ) -> Step:
        """Newton's step towards the minimum of ``CE + lambda ||W||^2 / 2``.

        With ``omega = pi q t / lambda`` the probabilities of tokens outside in units of lambda,
        and D the rise of their logits above the support, the part in the complement reads

            D^T omega + b = 0,

        at any lambda. In F the loss itself is of ordinary size.

        Raises:
            LinAlgError: If the point is so far off that its Hessian is not positive definite.
            ValueError: If it is so far off that a number is not finite.
        """
        frequencies, (context, token) = self.contexts.frequencies, (self.context, self.token)
        multiplier = np.exp(log_multiplier)
        within, s, kept, log_outside = self._softmax(a, b)
        omega = np.exp(np.log(frequencies)[context] + log_outside - log_multiplier)
        share = np.exp(log_outside)
        full, pull = s * kept[:, None], within - s * (1 - kept)[:, None]
        full[context, token] = pull[context, token] = share

        mean = np.einsum("mv,mvf->mf", full, self._inside_logits)
        spread = self._inside_logits - mean[:, None]
        rows = (spread * np.sqrt(frequencies[:, None] * full)[..., None]).reshape(full.size, len(a))
        inner = rows.T @ rows
        slope = np.einsum("m,mv,mvf->f", frequencies, pull, self._inside_logits)
        cross = (spread[context, token] * omega[:, None]).T @ self._rise
        sums = self._per_context(self._rise * omega[:, None])
        rise = self._rise - (multiplier / frequencies)[context, None] * sums[context]
        sums *= np.sqrt(kept * multiplier / frequencies)[:, None]
        outer = (rise * omega[:, None]).T @ rise + sums.T @ sums

        inner[np.diag_indices_from(inner)] += multiplier
        outer[np.diag_indices_from(outer)] += 1
        factor = scipy.linalg.cho_factor(inner) if len(a) else None

        def solve_inside(right: np.ndarray) -> np.ndarray:
            return right if factor is None else scipy.linalg.cho_solve(factor, right)

        bent = multiplier * solve_inside(cross)
        complement = scipy.linalg.cho_factor(outer - cross.T @ bent)

        def solve(inside: np.ndarray, outside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            first = solve_inside(inside)
            second = scipy.linalg.cho_solve(complement, outside - cross.T @ first)
            return first - bent @ second, second

        gradient, held = self._rise.T @ omega + b, multiplier * (self.finite + a)
        newton, moved = solve(-(slope + held), -gradient), solve(-held, -b)
        return Step(*newton, *moved, float(np.linalg.norm(gradient)))

    def _softmax(
        self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The softmax s in each support, less p and whole; its share; log of what is outside."""
        p, support = self.contexts.probabilities, self.contexts.support
        ratio = np.where(support, self._inside_logits @ a + self._lacking, -np.inf)
        top = ratio.max(-1, keepdims=True)
        log_total = top + np.log((p * np.exp(ratio - top)).sum(-1, keepdims=True))
        small = np.minimum(ratio, 1)
        near = np.abs(np.where(support, ratio, 0)).max(-1, keepdims=True) < 1
        change = np.where(near, (p * np.expm1(small)).sum(-1, keepdims=True), 0)
        delta = ratio - np.where(near, np.log1p(change), log_total)
        s = p * np.exp(delta)
        within = np.where(delta > 1, s - p, p * np.expm1(np.minimum(delta, 1)))

        logits = self._inside_logits @ (self.finite + a)
        log_support = np.logaddexp.reduce(np.where(support, logits, -np.inf), axis=-1)
        odds = logits[self.context, self.token] - log_support[self.context] + self._rise @ b
        spread = np.full(logits.shape, -np.inf)
        spread[self.context, self.token] = odds
        log_whole = np.logaddexp(0, np.logaddexp.reduce(spread, axis=-1))
        return within, s, np.exp(-log_whole), odds - log_whole[self.context]

    def _odds_lacking(self) -> Float[np.ndarray, "m V"]:
        """Log-odds against the anchor at the finite part, less those asked for."""
        contexts, own = self.contexts, (np.arange(self.contexts.count), self.best)
        logs = np.log(np.where(contexts.support, contexts.probabilities, 1.0))
        logits = self._inside_logits @ self.finite
        asked, found = (each - each[own][:, None] for each in (logs, logits))
        lacking = np.where(contexts.support, found - asked, 0)
        size = 1 + np.abs(np.where(contexts.support, asked, 0)).max()
        return lacking if np.abs(lacking).max() > _COMPATIBLE * size else np.zeros_like(lacking)

    def _per_context(self, rows: Float[np.ndarray, "pairs g"]) -> Float[np.ndarray, "m g"]:
        total = np.zeros((self.contexts.count, rows.shape[1]))
        np.add.at(total, self.context, rows)
        return total
