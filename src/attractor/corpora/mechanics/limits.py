"""The predicted limits of next-token training with attention, and the distance from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.special import logsumexp

from attractor.analysis.measures import measure_direction
from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics.cyclic_part import (
    CyclicSubspace,
    FinitePart,
    cyclic_subspace,
    finite_part,
    graph_problem,
)
from attractor.corpora.mechanics.labels import PaddedContexts, tables_of
from attractor.corpora.structures.orders import QueryGraphs, token_priority_graphs
from attractor.geometry.vectors import cosines, in_ordinary_units
from attractor.margin import Solution, solve
from attractor.support.checks import check_kinds, check_number, one_or_several
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_shaped
from attractor.training import Trajectory

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False)
class LocalLimits:
    """The direction that training tends to locally, where the loss is not convex.

    Attributes:
        graphs: Priority graphs of the tokens that kept attention mass.
        direction: The solution of their margin problem.
        subspace: Their cyclic subspace: of samples that keep several tokens.
        ambiguous: Tokens that were ignored, as their mass lies between the two thresholds.
    """

    graphs: QueryGraphs
    direction: Solution
    subspace: CyclicSubspace
    ambiguous: Bool[np.ndarray, "samples K"]

    def correlation(self, W: Float[np.ndarray, "*batch d d"]) -> Float[np.ndarray, "*batch"]:
        """Correlation of matrices with the direction."""
        return cosines(as_shaped("W", W, ("...", *self.direction.W.shape)), self.direction.W)

    def correlation_outside(
        self, W: Float[np.ndarray, "*batch d d"]
    ) -> Float[np.ndarray, "*batch"]:
        """That correlation without the part of W in the cyclic subspace."""
        W = in_ordinary_units(as_shaped("W", W, ("...", *self.direction.W.shape)))
        return cosines(W - self.subspace.project(W), self.direction.W)

    def __repr__(self) -> str:
        return f"LocalLimits({self.graphs!r}, {self.subspace!r}, direction {self.direction.status})"


@overload
def local_limits(
    corpora: Corpus,
    embeddings: Any,
    probabilities: Any,
    *,
    selected: float = ...,
    negligible: float = ...,
) -> LocalLimits: ...
@overload
def local_limits(
    corpora: Sequence[Corpus],
    embeddings: Any,
    probabilities: Any,
    *,
    selected: float = ...,
    negligible: float = ...,
) -> tuple[LocalLimits, ...]: ...
def local_limits(
    corpora: Corpus | Sequence[Corpus],
    embeddings: Any,
    probabilities: Any,
    *,
    selected: float = 0.01,
    negligible: float = 0.009,
) -> LocalLimits | tuple[LocalLimits, ...]:
    """The local limits that final attention weights imply.

    Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081), local
    convergence of gradient descent.

    Args:
        corpora: A corpus, or several.
        embeddings: ``(K, d)``, or ``(instances, K, d)``.
        probabilities: Final softmax weights, ``(samples, length)``, with an axis of instances
            before them for several corpora; what lies beyond the contexts of one is not read.
        selected: See ``local_priority_graphs``.
        negligible: Likewise.

    Returns:
        ``LocalLimits``, or a tuple of them, one for each corpus of several.

    Raises:
        InvalidInputError: If shapes do not fit, or a context keeps no token.
    """
    listed, several = one_or_several("corpora", corpora, Corpus)
    vectors = tables_of(listed, embeddings)
    weights = as_float64("probabilities", probabilities)
    weights = weights if several else weights[None]
    if weights.ndim != 3 or len(weights) != len(listed):
        raise InvalidInputError(
            "probabilities",
            f"the shape is {np.shape(probabilities)} for {len(listed)} corpora",
            "Give (samples, length), with an axis of instances before them for several corpora",
        )
    cuts = {"selected": selected, "negligible": negligible}
    graphs, ambiguous = [], []
    for corpus, whole in zip(listed, weights, strict=True):
        longest = int((corpus.positions + 1 - corpus.first).max())
        own = whole[: len(corpus.positions), :longest]
        graphs.append(local_priority_graphs(corpus, own, **cuts))
        ambiguous.append(ambiguous_tokens(corpus, own, **cuts))
    solutions = solve([graph_problem(one, E) for one, E in zip(graphs, vectors, strict=True)])
    found = tuple(
        LocalLimits(one, direction, cyclic_subspace(one, E), ignored)
        for one, direction, E, ignored in zip(graphs, solutions, vectors, ambiguous, strict=True)
    )
    return found if several else found[0]


def local_priority_graphs(
    corpus: Corpus,
    probabilities: Any,
    *,
    selected: float = 0.01,
    negligible: float = 0.009,
) -> QueryGraphs:
    """Pseudo token-priority graphs: those of the tokens that keep attention mass.

    In the graph of its query, every token that a sample keeps has an edge to every other token of
    the context, so that the tokens a sample keeps lie on a cycle. The solution of their
    ``graph_problem`` is where training is predicted to converge locally, whatever the head.
    Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081), local
    convergence of gradient descent.

    Args:
        corpus: The corpus.
        probabilities: Final softmax weights, ``(samples, length)`` or ``(samples, 1, length)``;
            those of a token that occurs in a context several times are added up.
        selected: A token is kept whose mass is larger.
        negligible: A token is left behind whose mass is at most this; one between the two is
            ignored, as the published experiment does.

    Raises:
        InvalidInputError: If the shape is different, a context is left without a token that is
            kept, or the thresholds are not in order.
    """
    check_kinds(corpus=(corpus, Corpus))
    selected = check_number("selected", selected, least=0.0, below=1.0, example=0.01)
    negligible = check_number("negligible", negligible, least=0.0, below=1.0, example=0.009)
    if negligible > selected:
        raise InvalidInputError(
            "selected",
            f"it is {selected}, with {negligible} negligible",
            "Give 0 <= negligible <= selected < 1",
        )
    contexts = PaddedContexts.of(corpus, np.zeros((corpus.vocabulary_size, 1)))
    weights = as_float64("probabilities", probabilities)
    if weights.ndim == 3 and weights.shape[1] == 1:
        weights = weights[:, 0]
    if weights.shape != contexts.ids.shape:
        raise InvalidInputError(
            "probabilities", f"the shape is {weights.shape}", f"Give {contexts.ids.shape}"
        )
    mass = _mass_of_tokens(contexts, weights)
    kept, left = mass > selected, mass <= negligible
    if not kept.any(1).all():
        raise InvalidInputError(
            "selected",
            f"no token of sample {np.flatnonzero(~kept.any(1))[0]} has more mass than {selected}",
            "Give a smaller one",
        )
    there = _in_context(contexts)
    pairs = kept[:, :, None] & (there & (kept | left))[:, None, :]
    sample, better, other = np.nonzero(pairs & ~np.eye(corpus.vocabulary_size, dtype=bool))
    edges = np.stack([corpus.queries[sample], better, other], axis=1)
    return QueryGraphs(np.unique(edges, axis=0), corpus.vocabulary)


def ambiguous_tokens(
    corpus: Corpus, probabilities: Any, *, selected: float = 0.01, negligible: float = 0.009
) -> Bool[np.ndarray, "samples K"]:
    """The tokens of each context that ``local_priority_graphs`` ignores."""
    contexts = PaddedContexts.of(corpus, np.zeros((corpus.vocabulary_size, 1)))
    weights = np.asarray(probabilities).reshape(contexts.ids.shape)
    mass = _mass_of_tokens(contexts, weights)
    return _in_context(contexts) & (mass > negligible) & (mass <= selected)


def _mass_of_tokens(
    contexts: PaddedContexts, weights: Float[np.ndarray, "samples length"]
) -> Float[np.ndarray, "samples K"]:
    mass = np.zeros((len(contexts), contexts.corpus.vocabulary_size))
    sample, place = np.nonzero(contexts.present)
    np.add.at(mass, (sample, contexts.ids[sample, place]), weights[sample, place])
    return mass


def _in_context(contexts: PaddedContexts) -> Bool[np.ndarray, "samples K"]:
    return _mass_of_tokens(contexts, np.ones(contexts.ids.shape)) > 0


@dataclass(frozen=True, eq=False, repr=False)
class AttentionLimits:
    """The limits of training on one corpus, for labels in their contexts and log-loss.

    The training loss is convex in W, and gradient descent is predicted to follow

        W ~ C(t) W_svm + W_fin,    C(t) -> infinity,

    so that W tends to the direction of ``W_svm`` and its projection on the cyclic subspace to
    ``W_fin``, while the loss tends to its floor. Source: *Mechanics of Next Token Prediction with
    Self-Attention* (arXiv 2403.08081), global convergence of gradient descent.

    Attributes:
        contexts: The samples.
        graphs: Their token-priority graphs.
        direction: The solution of the graphs' margin problem, ``W_svm``.
        subspace: The cyclic subspace.
        finite: The finite part, ``W_fin``, and the loss floor.
    """

    contexts: PaddedContexts
    graphs: QueryGraphs
    direction: Solution
    subspace: CyclicSubspace
    finite: FinitePart

    @cached_property
    def kept(self) -> Bool[np.ndarray, "samples length"]:
        """The tokens that attention is predicted to keep: the component of the label."""
        return self.contexts.in_component(self.graphs)

    def __repr__(self) -> str:
        return (
            f"AttentionLimits({self.graphs!r}, {self.subspace!r}, {self.finite!r}, "
            f"direction {self.direction.status})"
        )


@overload
def attention_limits(corpora: Corpus, embeddings: Any) -> AttentionLimits: ...
@overload
def attention_limits(corpora: Sequence[Corpus], embeddings: Any) -> tuple[AttentionLimits, ...]: ...
def attention_limits(
    corpora: Corpus | Sequence[Corpus], embeddings: Any
) -> AttentionLimits | tuple[AttentionLimits, ...]:
    """The limits of training on corpora whose labels are tokens of their contexts.

    Args:
        corpora: A corpus, or several.
        embeddings: ``(K, d)``, or ``(instances, K, d)``.

    Returns:
        ``AttentionLimits``, or a tuple of them, one for each corpus of several. Where no matrix
        orders tokens as the graphs do, which takes linearly dependent embeddings, the status
        of ``direction`` is infeasible.

    Raises:
        InvalidInputError: If embeddings do not fit, or a context lacks its label.
    """
    listed, several = one_or_several("corpora", corpora, Corpus)
    vectors = tables_of(listed, embeddings)
    contexts = [PaddedContexts.of(corpus, E) for corpus, E in zip(listed, vectors, strict=True)]
    if not all(rows.is_label.any(1).all() for rows in contexts):
        raise InvalidInputError(
            "corpora",
            "a context lacks its label",
            "Give samples whose label is a token of the context",
        )
    graphs = [token_priority_graphs(corpus) for corpus in listed]
    problems = [graph_problem(one, E) for one, E in zip(graphs, vectors, strict=True)]
    spaces = [cyclic_subspace(one, E) for one, E in zip(graphs, vectors, strict=True)]
    found = tuple(
        AttentionLimits(rows, one, direction, space, finite_part(rows, one, space))
        for rows, one, direction, space in zip(
            contexts, graphs, solve(problems), spaces, strict=True
        )
    )
    return found if several else found[0]


def log_mass_outside(
    limits: AttentionLimits, W: Float[np.ndarray, "*batch d d"]
) -> Float[np.ndarray, "*batch samples"]:
    """Logarithm of the attention mass of each sample off the component of its label."""
    scores = limits.contexts.scores(W)
    outside = limits.contexts.present & ~limits.kept
    return log_sum(scores, outside) - log_sum(scores, limits.contexts.present)


def log_excess_loss(
    limits: AttentionLimits, W: Float[np.ndarray, "*batch d d"]
) -> Float[np.ndarray, "*batch"]:
    """``log(L(W) - L_floor)`` of the log-loss of label mass, free of cancellation.

    With ``u_i`` the log-odds of mass off the component of the label, ``p`` the softmax weights of
    the finite part within it, and z the scores of ``P_cyc W - W_fin`` there less their mean
    ``<p, z>``, both parts are sums of positive terms,

        L - L_floor = sum_i w_i log(1 + exp u_i)
                    + sum_i w_i log(1 + sum_t p_it (exp z_it - 1 - z_it)),

    as the gradient of the second vanishes at the finite part. Minus infinity where both are zero.
    Rounding of W itself, about ``1e-16 ||W||`` in its cyclic part, adds its square to the second.
    """
    scores = limits.contexts.scores(W)
    outside = limits.contexts.present & ~limits.kept
    odds = log_sum(scores, outside) - log_sum(scores, limits.kept)
    moved = limits.subspace.project(W) - limits.finite.W
    within = log_bregman(limits.contexts.scores(moved), limits.kept, limits.finite.weights)
    return log_mean_of(limits.contexts.weights, log_softplus(odds), within)


def log_mean_of(
    weights: Float[np.ndarray, "samples"], *logs: Float[np.ndarray, "*batch samples"]
) -> Float[np.ndarray, "*batch"]:
    """Logarithm of a weighted sum over samples, of numbers given by their logarithms."""
    total: Any = logsumexp(np.stack(logs), b=weights, axis=(0, -1))
    return total


def log_softplus(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """``log log(1 + exp(x))``."""
    small = x < -18
    tiny = x - np.exp(np.minimum(x, -18)) / 2
    return np.where(small, tiny, np.log(np.logaddexp(0, np.where(small, 0.0, x))))


def log_bregman(
    moves: Float[np.ndarray, "*batch samples length"],
    kept: Bool[np.ndarray, "samples length"],
    weights: Float[np.ndarray, "samples length"],
) -> Float[np.ndarray, "*batch samples"]:
    """``log(log sum_t p_t exp(z_t))`` with z the moves less their mean: how far a log-sum bends."""
    moves = np.where(kept, moves, 0.0)
    z = moves - (weights * moves).sum(-1, keepdims=True)
    mild = np.clip(z, -1, 1)
    small = np.log1p((weights * _exponential_remainder(mild)).sum(-1))
    with np.errstate(divide="ignore"):
        large = np.logaddexp.reduce(z + np.log(weights), axis=-1)
        return np.log(np.where((np.abs(z) > 1).any(-1), large, small))


def _exponential_remainder(z: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """``exp(z) - 1 - z`` for ``|z| <= 1``, by its series."""
    term, total = z**2 / 2, np.zeros_like(z)
    for power in range(3, 22):
        total = total + term
        term = term * z / power
    return total


def log_sum(
    scores: Float[np.ndarray, "*batch samples length"], chosen: Bool[np.ndarray, "samples length"]
) -> Float[np.ndarray, "*batch samples"]:
    """Logarithm of the sum of exponentials over chosen tokens; minus infinity where none is."""
    return np.logaddexp.reduce(np.where(chosen, scores, -np.inf), axis=-1)


_DESCRIPTIONS = {
    "correlation": "correlation with the solution of the graphs' margin problem",
    "correlation_outside": "that correlation without the part in the cyclic subspace",
    "margin_ratio": "smallest margin relative to the largest possible, without that part",
    "norm": "Frobenius norm",
    "cyclic_norm": "Frobenius norm of the part in the cyclic subspace",
    "finite_distance": "distance of the part in the cyclic subspace from the finite part",
    "mass": "attention mass on the component of the label, mean over samples",
    "log_mass_outside": "logarithm of the attention mass off the component of the label",
    "log_excess": "logarithm of the loss above its floor",
    "loss_floor": "infimum of the training loss",
    "finite_norm": "norm of the finite part",
    "direction_norm": "norm of the solution of the graphs' margin problem",
}


def measure_limits(
    trajectory: Trajectory, limits: AttentionLimits | Sequence[AttentionLimits]
) -> xr.Dataset:
    """Measures every recorded matrix against the limits of its corpus.

    Args:
        trajectory: The result of ``train``.
        limits: One for all instances, or one for each.

    Returns:
        Over instance, seed and record: ``correlation`` with ``W_svm``; ``correlation_outside`` and
        ``margin_ratio`` once the part in the cyclic subspace is removed; ``norm``;
        ``cyclic_norm``; ``finite_distance``, ``||P_cyc W - W_fin||``; ``mass`` on the component of
        the label and ``log_mass_outside``, of means over samples; ``log_excess``, the logarithm of
        the log-loss of label mass above its floor. Over instances: ``loss_floor``,
        ``finite_norm`` and ``direction_norm``. Correlations are NaN where nothing, or everything,
        solves the margin problem.

    Raises:
        InvalidInputError: If there are not as many limits as instances.
    """
    check_kinds(trajectory=(trajectory, Trajectory))
    kept = trajectory.data["W"]
    axis = trajectory.axis
    if axis not in kept.dims:
        kept = kept.expand_dims({axis: trajectory.steps[-1:]})
    W = kept.transpose("instance", "seed", axis, "row", "column").to_numpy()
    listed, several = one_or_several("limits", limits, AttentionLimits)
    each = listed if several else listed * len(W)
    if len(each) != len(W):
        raise InvalidInputError(
            "limits", f"there are {len(each)} for {len(W)} instances", "Give one for each"
        )
    found = [measure_matrices(matrices, one) for matrices, one in zip(W, each, strict=True)]
    along = ("instance", "seed", axis)
    data = xr.Dataset(
        {name: (along, np.stack([one[name] for one in found])) for name in found[0]},
        coords={name: (kept if name == axis else trajectory.data)[name] for name in along},
    )
    data["loss_floor"] = ("instance", [one.finite.floor for one in each])
    data["finite_norm"] = ("instance", [np.linalg.norm(one.finite.W) for one in each])
    data["direction_norm"] = ("instance", [float(one.direction.norm) for one in each])
    for name, description in _DESCRIPTIONS.items():
        data[name].attrs["description"] = description
    return data


def measure_matrices(
    W: Float[np.ndarray, "*batch d d"], limits: AttentionLimits
) -> dict[str, Float[np.ndarray, "*batch"]]:
    """The measures of ``measure_limits`` for any matrices, against the limits of one corpus."""
    cyclic = limits.subspace.project(W)
    flat = (W - cyclic).reshape(-1, *W.shape[-2:])
    direction = measure_direction(flat, limits.direction)
    log_outside = log_mass_outside(limits, W)
    weights = limits.contexts.weights
    with np.errstate(divide="ignore"):
        log_mean = np.log(weights) + log_outside
    mean_outside = np.logaddexp.reduce(log_mean, axis=-1)
    return {
        "correlation": cosines(W, limits.direction.W),
        "correlation_outside": direction.correlation.reshape(W.shape[:-2]),
        "margin_ratio": direction.margin_ratio.reshape(W.shape[:-2]),
        "norm": np.linalg.norm(W, axis=(-1, -2)),
        "cyclic_norm": np.linalg.norm(cyclic, axis=(-1, -2)),
        "finite_distance": np.linalg.norm(cyclic - limits.finite.W, axis=(-1, -2)),
        "mass": -np.expm1(np.minimum(mean_outside, 0)),
        "log_mass_outside": mean_outside,
        "log_excess": log_excess_loss(limits, W),
    }
