"""Training on any corpus, on as much of it as takes a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attractor.corpora.corpus import MOST_TRAINED, Corpus
from attractor.corpora.embeddings import VocabularyEmbeddings
from attractor.corpora.mechanics import attention_limits, label_mass_tokens, measure_limits
from attractor.corpora.parts import ConflictingPart
from attractor.corpora.samples import counted_samples, frequent_samples
from attractor.corpora.structures.occurrences import collocation
from attractor.corpora.structures.orders import partial_orders
from attractor.corpora.two_stages.two_stage import train_two_stages
from attractor.corpora.two_stages.two_stage_measures import (
    attention_solutions,
    feed_forward_solutions,
    measure_two_stages,
)
from attractor.results import finite_or_none
from attractor.support.errors import InvalidInputError
from attractor.training import normalized_gradient_descent, train

if TYPE_CHECKING:
    import xarray as xr

MOST_WORK = 40_000
"""The work of a step, at most, as ``frequent_samples`` counts it: about 10 ms on one core."""
MOST_DIMENSIONS = 300
"""The largest cyclic subspace in which a finite part is searched for."""
STEP = 0.05
"""Length of steps on conflicting labels; the finite part is found to half of it."""

TWO_STAGES = "two stages"
CONFLICTING = "conflicting labels"


class TrainedCorpus(NamedTuple):
    """The result of training.

    Attributes:
        kind: ``TWO_STAGES`` or ``CONFLICTING``.
        corpus: The samples trained on: contexts of their own, each different.
        data: Measures along the steps.
        summary: The last of them, as plain values of JSON.
    """

    kind: str
    corpus: Corpus
    data: xr.Dataset
    summary: dict[str, Any]


def share_of_work(corpus: Corpus) -> float:
    """The work of a step of training on a corpus, as a share of the most."""
    distinct, _ = counted_samples(corpus)
    longest = int((corpus.positions - corpus.first).max()) + 1
    work = len(distinct) * (longest**2 + corpus.vocabulary_size)
    return min(work / MOST_WORK, 1.0)


def train_realizable(
    corpus: Corpus, embeddings: VocabularyEmbeddings, steps: int, *, progress: bool = False
) -> TrainedCorpus:
    """Trains both layers in two stages on a realizable corpus, from zero.

    Source: *Non-asymptotic Convergence of Training Transformers for Next-token Prediction* (arXiv
    2409.17335), two-stage normalized gradient descent with the published step sizes.

    Args:
        corpus: The corpus; of many samples the most frequent are trained on.
        embeddings: The vectors of its tokens.
        steps: Steps of each stage.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If the corpus is too large, or attention has nothing to choose.
    """
    _check_vocabulary(corpus)
    chosen, share = frequent_samples(corpus, MOST_WORK)
    if not len(partial_orders(chosen, collocation(chosen)).edges):
        raise InvalidInputError(
            "corpus",
            "every context holds one token alone, so that attention has nothing to choose",
            "Give contexts of several tokens",
        )
    run = train_two_stages(
        chosen, steps=(steps, steps), embeddings=embeddings.of(chosen), progress=progress
    )
    layers = feed_forward_solutions(run), attention_solutions(run)
    data = measure_two_stages(run, *layers)
    last = data.isel(instance=0, step=-1, feed_forward_step=-1)
    summary: dict[str, Any] = {
        "kind": TWO_STAGES,
        "samples": len(chosen.positions),
        "share": share,
        "steps": steps,
        "least_optimal_attention": finite_or_none(last["least_optimal_attention"]),
    }
    for name, prefix, (solution,) in zip(
        ("feed_forward", "attention"), ("feed_forward_", ""), layers, strict=True
    ):
        summary[name] = {
            "status": str(solution.status),
            "solution_norm": finite_or_none(last[f"{prefix}solution_norm"]),
            "correlation": finite_or_none(last[f"{prefix}correlation"]),
            "norm": finite_or_none(last[f"{prefix}norm"]),
            "loss": finite_or_none(last[f"{prefix}loss"]),
        }
    return TrainedCorpus(TWO_STAGES, chosen, data, summary)


def train_conflicting(
    part: ConflictingPart,
    embeddings: VocabularyEmbeddings,
    steps: int,
    *,
    progress: bool = False,
) -> TrainedCorpus:
    """Trains attention by normalized gradient descent on labels that conflict, from zero.

    Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081), global
    convergence of gradient descent; the loss is that of the attention mass on the preferred token.

    Args:
        part: Samples that prefer a token of their context; of many the most frequent are taken.
        embeddings: The vectors of its tokens.
        steps: Number of steps, of length ``STEP``.
        progress: Whether to show a progress bar.

    Raises:
        InvalidInputError: If the corpus is too large.
    """
    _check_vocabulary(part.corpus)
    if part.dimension > MOST_DIMENSIONS:
        raise InvalidInputError(
            "corpus",
            f"its cyclic subspace has {part.dimension:,} dimensions",
            f"Training with conflicting labels takes at most {MOST_DIMENSIONS}: give a smaller "
            "vocabulary or shorter contexts",
        )
    chosen, share = part.for_training(MOST_WORK)
    table = embeddings.of(chosen)
    limits = attention_limits(chosen, table)
    tokens, head = label_mass_tokens(chosen, table)
    run = train(
        tokens,
        head,
        normalized_gradient_descent(STEP),
        steps=steps,
        initial=np.zeros((table.shape[1], table.shape[1])),
        loss="negative_log",
        progress=progress,
    )
    data = measure_limits(run, limits)
    last = data.isel(instance=0, seed=0, step=-1)
    summary: dict[str, Any] = {
        "kind": CONFLICTING,
        "samples": len(chosen.positions),
        "share": share,
        "steps": steps,
        "step_length": STEP,
        "status": str(limits.direction.status),
        "cyclic_dimension": limits.subspace.dimension,
    }
    names = (
        "direction_norm", "finite_norm", "loss_floor", "correlation", "correlation_outside",
        "finite_distance", "mass",
    )  # fmt: skip
    summary |= {name: finite_or_none(last[name]) for name in names}
    return TrainedCorpus(CONFLICTING, chosen, data, summary)


def _check_vocabulary(corpus: Corpus) -> None:
    if corpus.vocabulary_size > MOST_TRAINED:
        raise InvalidInputError(
            "vocabulary",
            f"it has {corpus.vocabulary_size:,} tokens",
            f"Training takes at most {MOST_TRAINED - 1} and one for all others: keep the most "
            "frequent ones",
        )
