"""``train_two_stages``: the feed-forward layer, then attention, as in the theory; their record."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.attention import VocabularyHead
from attractor.corpora.corpus import Corpus
from attractor.corpora.embeddings import check_embeddings
from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.corpora.linear.train import train_linear
from attractor.corpora.linear.trajectory import LinearTrajectory
from attractor.corpora.samples import Samples, attention_tokens, distinct_samples
from attractor.corpora.structures.occurrences import Collocation, collocation
from attractor.results import Printed, StoredRun, reading_run, save_run
from attractor.support.checks import check_kinds, check_path, check_steps, one_or_several, shown
from attractor.support.containers import parse_json
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_plain, double_precision
from attractor.support.randomness import check_seed, keys
from attractor.support.storage import OutputFolder, check_paths
from attractor.training import Optimizer, Trajectory, normalized_gradient_descent, train
from attractor.training.stored.checkpoint import MARKER

if TYPE_CHECKING:
    from rich.console import Console


_KIND = "two-stage trajectory"


@dataclass(frozen=True, eq=False, repr=False)
class TwoStageTrajectory(Printed):
    """The record of two-stage training, corpus by corpus.

    Attributes:
        corpora: The corpora; the axis ``instance`` of both trajectories counts them.
        embeddings: The vector of every token, ``(V, d)``, or ``(instances, V, d)``.
        feed_forward: The first stage.
        attention: The second stage.
    """

    corpora: tuple[Corpus, ...]
    embeddings: Float[np.ndarray, "*instances V d"]
    feed_forward: LinearTrajectory
    attention: Trajectory

    @cached_property
    def samples(self) -> tuple[Samples, ...]:
        """The distinct samples of each corpus, in the order of the rows of ``attention.tokens``."""
        return tuple(distinct_samples(corpus) for corpus in self.corpora)

    @cached_property
    def collocations(self) -> tuple[Collocation, ...]:
        """The collocation of each corpus."""
        return tuple(collocation(corpus) for corpus in self.corpora)

    def _print(self, console: Console) -> None:
        self.feed_forward._print(console)
        self.attention._print(console)

    def _html_parts(self) -> list[str]:
        return self.feed_forward._html_parts() + self.attention._html_parts()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all."""
        shared = {"embeddings": np.asarray(self.embeddings)}
        parts = {"feed_forward": self.feed_forward.stored(), "attention": self.attention.stored()}
        vocabularies = json.dumps([corpus.vocabulary for corpus in self.corpora])
        arrays = {"corpora": _corpora_arrays(self.corpora), "embeddings": shared}
        run = StoredRun(xr.Dataset(), {"vocabularies": vocabularies}, {}, arrays, parts)
        save_run(path, _KIND, run)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TwoStageTrajectory:
        """Reads a file that ``save`` wrote.

        Raises:
            FileFormatError: If the file holds no two-stage training.
        """
        parts = {"feed_forward": ("contexts",), "attention": ("tokens", "head")}
        with reading_run(path, _KIND, ("corpora", "embeddings"), parts) as stored:
            names = parse_json(stored.texts["vocabularies"])
            corpora = _corpora_from_arrays(stored.arrays["corpora"], names)
            size = shared_vocabulary_size(corpora)
            table = stored.arrays["embeddings"]["embeddings"]
            table = check_embeddings(table, size, instances=len(corpora))
            feed_forward = LinearTrajectory.of(stored.parts["feed_forward"])
            attention = Trajectory.of(stored.parts["attention"])
            if feed_forward.contexts.classes != size:
                raise ValueError("its stages and its corpora disagree on the vocabulary")
            for run in (feed_forward, attention):
                if run.data.sizes["instance"] != len(corpora):
                    raise ValueError("its stages and its corpora disagree on how many there are")
        return cls(corpora, table, feed_forward, attention)


def shared_vocabulary_size(corpora: tuple[Corpus, ...]) -> int:
    """The number of tokens that the vocabularies of all corpora have.

    Raises:
        InvalidInputError: If they have different numbers.
    """
    sizes = {corpus.vocabulary_size for corpus in corpora}
    if len(sizes) > 1:
        raise InvalidInputError(
            "corpora", f"their vocabularies have {sorted(sizes)} tokens", "Give one size to all"
        )
    return sizes.pop()


def _corpora_arrays(corpora: Sequence[Corpus]) -> dict[str, np.ndarray]:
    """The tokens, lengths and counts of all sentences, and the settings of each corpus."""
    return {
        "tokens": np.concatenate([corpus.tokens for corpus in corpora]),
        "lengths": np.concatenate([corpus.lengths for corpus in corpora]),
        "counts": np.concatenate([corpus.counts for corpus in corpora]),
        "sentences": np.array([corpus.sentences for corpus in corpora]),
        "context_length": np.array([corpus.context_length or 0 for corpus in corpora]),
        "every_prefix": np.array([corpus.every_prefix for corpus in corpora], dtype=np.int8),
    }


def _corpora_from_arrays(arrays: Mapping[str, np.ndarray], vocabularies: Any) -> tuple[Corpus, ...]:
    """The corpora of ``_corpora_arrays``.

    Args:
        arrays: The arrays.
        vocabularies: The names of the tokens of each corpus.

    Raises:
        InvalidInputError: If a corpus is none.
        ValueError: If arrays do not fit each other.
    """
    sentences, lengths = arrays["sentences"], arrays["lengths"]
    if not len(sentences) or (lengths < 1).any() or (sentences < 1).any():
        raise ValueError("a corpus or a sentence is empty")
    ends = np.cumsum(sentences)
    if ends[-1] != len(lengths) or lengths.sum() != len(arrays["tokens"]):
        raise ValueError("sentences and tokens are not as many as the corpora say")
    found = []
    for number, end in enumerate(ends):
        own = lengths[end - sentences[number] : end]
        first = lengths[: end - sentences[number]].sum()
        corpus = Corpus(
            arrays["tokens"][first : first + own.sum()],
            np.concatenate([[0], np.cumsum(own)]),
            vocabularies[number],
            context_length=int(arrays["context_length"][number]) or None,
            every_prefix=bool(arrays["every_prefix"][number]),
            counts=arrays["counts"][end - sentences[number] : end],
        )
        found.append(corpus)
    return tuple(found)


_RATES = (0.2, 0.05)
"""The published step sizes of the two stages, to be divided by the root of the dimension."""
_FEED_FORWARD = "feed-forward weights"
_ATTENTION = "attention weights"


def train_two_stages(
    corpora: Corpus | Sequence[Corpus],
    *,
    steps: tuple[int, int] = (900, 900),
    optimizers: tuple[Optimizer, Optimizer] | None = None,
    embeddings: Any = None,
    initial_scales: tuple[Any, Any] = (0.0, 0.0),
    seed: int = 0,
    record: Any = None,
    weights: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> TwoStageTrajectory:
    """Trains a next-token predictor in two stages: the feed-forward layer, then attention.

    The logits of a context are ``W_ov sum_l softmax_l(x_l^T W_kq x_L) x_l``. The first stage
    minimizes ``- sum_x log softmax(W_ov x)_n(x)`` over the collocation, the second the
    cross-entropy of all distinct samples by their frequency, over ``W_kq`` alone. Source:
    *Non-asymptotic Convergence of Training Transformers for Next-token Prediction* (arXiv
    2409.17335), two-stage normalized gradient descent.

    Args:
        corpora: A corpus, or several with vocabularies of one size; each is a trial of its own.
        steps: Number of steps of the two stages.
        optimizers: The steps; default: normalized gradient descent with the published step sizes
            ``0.2 / sqrt(d)`` and ``0.05 / sqrt(d)``.
        embeddings: ``(V, d)``, or ``(instances, V, d)``; default: the unit vectors.
        initial_scales: Standard deviations of the Gaussian entries that both matrices start with,
            each for all corpora or one for each; 0 starts at zero, as the theory does.
        seed: Names the initial entries, together with the number of the corpus.
        record: Steps of each stage to record, those beyond its end left out; default: about 60.
        weights: ``"all"``, ``"last"`` or ``"auto"``, as ``train`` takes it.
        checkpoint: A folder for checkpoints, from which a run that was killed resumes.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If an argument cannot be used, or a token of several corpora has no
            collocation; of a single corpus such tokens are left out of the first stage.
    """
    listed = tuple(one_or_several("corpora", corpora, Corpus)[0])
    size = shared_vocabulary_size(listed)
    initial_scales = _pair("initial_scales", initial_scales, "scales")
    table = check_embeddings(embeddings, size, instances=len(listed))
    seed = check_seed("seed", seed)
    steps = _pair("steps", steps, "numbers of steps")
    for place, count in enumerate(steps):
        check_steps(f"steps[{place}]", count, 0)
    if checkpoint is not None:
        checkpoint = check_path("checkpoint", checkpoint)
    names = ("feed-forward", "attention")
    stages = [None if checkpoint is None else checkpoint / name for name in names]
    check_paths(OutputFolder("checkpoint", folder, MARKER) for folder in stages)
    if optimizers is not None:
        optimizers = _pair("optimizers", optimizers, "optimizers")
        for place, optimizer in enumerate(optimizers):
            check_kinds(**{f"optimizers[{place}]": (optimizer, Optimizer)})
    first, second = optimizers or tuple(
        normalized_gradient_descent(rate / table.shape[-1] ** 0.5) for rate in _RATES
    )
    samples = [distinct_samples(corpus) for corpus in listed]
    tokens = attention_tokens(samples, table)
    d = table.shape[-1]
    starts = (
        _gaussian(initial_scales[0], seed, len(listed), (size, d), _FEED_FORWARD),
        _gaussian(initial_scales[1], seed, len(listed), (d, d), _ATTENTION),
    )
    feed_forward = train_linear(
        _one_token_contexts(listed, table),
        first,
        steps=steps[0],
        initial=starts[0],
        record=_within(record, steps[0]),
        weights=weights,
        checkpoint=stages[0],
        progress=progress,
    )
    attention = train(
        tokens,
        VocabularyHead(feed_forward.W()[:, 0]),
        second,
        steps=steps[1],
        initial=starts[1],
        loss="cross_entropy",
        record=_within(record, steps[1]),
        weights=weights,
        checkpoint=stages[1],
        progress=progress,
    )
    return TwoStageTrajectory(listed, table, feed_forward, attention)


def _pair(argument: str, value: Any, what: str) -> tuple[Any, Any]:
    """A pair of values, one for each stage."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInputError(argument, f"{shown(value)} is no pair", f"Give two {what}")
    return value[0], value[1]


def _one_token_contexts(
    corpora: tuple[Corpus, ...], table: Float[np.ndarray, "*instances V d"]
) -> EmbeddedContexts:
    """The contexts of the first stage: every token that has a collocation, alone."""
    labels = np.stack([collocation(corpus).next_token for corpus in corpora])
    size = labels.shape[1]
    tables = np.broadcast_to(table, (len(corpora), *table.shape[-2:]))
    if len(corpora) == 1:
        known = np.flatnonzero(labels[0] >= 0)
        if not len(known):
            raise InvalidInputError(
                "corpora", "no token has a collocation", "Give sentences that tell what follows one"
            )
        return EmbeddedContexts.one_hot(tables[:, known], labels[:, known], size)
    if (labels < 0).any():
        corpus, token = np.argwhere(labels < 0)[0].tolist()
        raise InvalidInputError(
            "corpora",
            f"token {token} of corpus {corpus} has no collocation",
            "Train corpora with incomplete collocations one at a time",
        )
    return EmbeddedContexts.one_hot(tables, labels, size)


def _gaussian(
    scale: Any, seed: int, instances: int, shape: tuple[int, int], purpose: str
) -> Float[np.ndarray, "instances rows columns"]:
    scales = as_float64("initial_scales", scale)
    if scales.shape not in ((), (instances,)) or (scales < 0).any():
        raise InvalidInputError(
            "initial_scales",
            f"one is {scale!r}",
            f"Give a number >= 0 for each stage, or {instances} of them",
        )
    if not scales.any():
        return np.zeros((instances, *shape))
    with double_precision():
        drawn = keys(np.full(instances, seed), np.arange(instances), purpose)
        normal = jax.vmap(lambda key: jax.random.normal(key, shape, "float64"))(drawn)
        return np.broadcast_to(scales, instances)[:, None, None] * np.asarray(normal)


def _within(record: Any, steps: int) -> Any:
    if record is None:
        return None
    requested = np.atleast_1d(as_plain("record", record))
    return requested[requested <= steps] if requested.dtype.kind in "iu" else record
