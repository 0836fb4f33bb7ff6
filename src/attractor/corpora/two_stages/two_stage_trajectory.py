"""The record of two-stage training: both stages, and the corpora they were trained on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.corpora.corpus import Corpus
from attractor.corpora.embedded.embeddings import check_embeddings
from attractor.corpora.linear.trajectory import LinearTrajectory
from attractor.corpora.samples import Samples, distinct_samples
from attractor.corpora.structures._collocation import Collocation, collocation
from attractor.results import Printed, StoredRun, reading_run, save_run
from attractor.support.containers import parse_json
from attractor.support.errors import InvalidInputError
from attractor.training import Trajectory

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
        import xarray as xr

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
