"""Corpora: their files, read and written, and the claims' data in them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor import corpora
from attractor.corpora.corpus import with_context_length, with_frequent_tokens
from attractor.corpora.embeddings import check_embeddings
from attractor.corpora.samples import distinct_samples
from attractor.files.contents import (
    ARRAY_SUFFIXES,
    ArrayFile,
    DataSet,
    Layout,
    Trial,
    check_known,
    drop,
    text_list,
)
from attractor.files.reading import kinds, of_kind
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64
from attractor.support.storage import existing_file

if TYPE_CHECKING:
    from attractor.corpora import Corpus, CorpusStructure
    from attractor.corpora.samples import Samples


CORPUS_LAYOUT = {
    "sentences": ("(n, L)", "integers: token numbers, -1 after the end; every prefix is a sample"),
    "contexts": ("(n, T)", "in place of sentences: a context a row, -1 in front or at the end"),
    "labels": ("(n,)", "with contexts, integers: the token after each"),
    "counts": ("(n,)", "optional: how often each sentence or context counts"),
    "vocabulary": ("(V,)", "optional, texts: the name of every token number"),
    "embeddings": ("(V, d)", "optional: the vector of every token; else one-hot"),
    "context_length": ("()", "optional, an integer: only so many last tokens are the context"),
}
"""The entries of a corpus file of arrays: the shape of each, and its meaning.

The texts of ``vocabulary`` are an array of texts in ``.npz``, and a JSON list of texts in the
metadata of ``.safetensors``.
"""

_MARKS = ("sentences", "contexts")
_PADDING = -1
"""The number of no token in a row."""
MOST_ENTRIES = 2**28
"""Entries of the padded array: one sentence far longer than the others makes it large."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CorpusCase(ArrayFile, DataSet):
    """A corpus with everything a statement may speak of; what a corpus file holds.

    Attributes:
        corpus: The sentences.
        embeddings: The vector of every token; None for the unit vectors.
        initial_scales: Standard deviations of the Gaussian entries that the feed-forward layer and
            attention start with; a corpus file says nothing of them, and that is zero.
        about: What the data are, in words.
        notices: What was left out or changed while reading, in a sentence each.
    """

    words: ClassVar[str] = "corpus"
    held: ClassVar[str] = "a corpus"
    reader: ClassVar[str] = "attractor corpus"
    missing: ClassVar[str] = (
        "Give text with a sentence a line; `attractor example corpus PATH` writes one"
    )
    layout: ClassVar[Layout] = CORPUS_LAYOUT
    marks: ClassVar[tuple[str, ...]] = _MARKS
    takes_text: ClassVar[bool] = True
    corpus: Corpus
    embeddings: Float[np.ndarray, "V d"] | None = None
    initial_scales: tuple[float, float] = (0.0, 0.0)
    about: str = "corpus"
    notices: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> CorpusCase:
        """Reads a file of arrays, or text with a sentence a line; see ``FileContents``."""
        file = existing_file(path, cls.missing)
        if file.suffix in ARRAY_SUFFIXES:
            return super().read(file)
        return _read_text(file)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], name: str
    ) -> CorpusCase:
        """Puts together what lies in a corpus file; see ``ArrayFile``."""
        _check_names(arrays, name)
        rows, kept = _rows(arrays)
        lengths = kept.sum(1)
        sampled = lengths > 1
        if not sampled.any():
            raise InvalidInputError(
                _MARKS[0],
                "none has two tokens, so that nothing follows any token",
                "Give sentences of two tokens or more",
            )
        notices = tuple(left_out(int((lengths == 0).sum()), int((lengths == 1).sum())))
        names, embeddings = text_list("vocabulary", arrays, texts), _embeddings(arrays)
        length = arrays.get("context_length")
        counts = arrays.get("counts")
        if counts is not None:
            counts = as_float64("counts", counts)
            if counts.shape != sampled.shape:
                raise InvalidInputError(
                    "counts",
                    f"the shape is {counts.shape}",
                    f"Give one for each row: {sampled.shape}",
                )
            counts = counts[sampled]
        corpus = corpora.Corpus(
            rows[sampled][kept[sampled]],
            np.cumsum([0, *lengths[sampled]]),
            names if names is not None else None if embeddings is None else len(embeddings),
            context_length=None if length is None else int(_integers("context_length", length, 0)),
            every_prefix=_MARKS[0] in arrays,
            counts=counts,
        )
        if embeddings is not None and len(embeddings) != corpus.vocabulary_size:
            raise InvalidInputError(
                "embeddings",
                f"there are {len(embeddings)} for a vocabulary of {corpus.vocabulary_size}",
                "Give one for each token number",
            )
        return cls(corpus, embeddings, notices=notices, about=name)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The arrays of a corpus file.

        Raises:
            InvalidInputError: If training starts elsewhere than at zero: a corpus file cannot say
                so; or the longest sentence is too long for a rectangular array.
        """
        if any(self.initial_scales):
            raise InvalidInputError(
                "initial_scales",
                "a corpus file does not say where training starts",
                "Save cases that start at zero",
            )
        corpus = self.corpus
        arrays = _arrays(corpus) | {"vocabulary": np.array(corpus.vocabulary, dtype=np.str_)}
        if self.embeddings is not None:
            arrays["embeddings"] = check_embeddings(
                as_float64("embeddings", self.embeddings), corpus.vocabulary_size
            )
        return arrays, {}

    def with_vocabulary(self, most: int | None) -> CorpusCase:
        """The corpus in which all but the most frequent tokens are one token.

        Where tokens have embeddings, the one that others become has the mean of theirs, each
        counted as often as it occurs.

        Args:
            most: How many of the most frequent tokens keep their names; None for all.
        """
        old, embeddings = self.corpus, self.embeddings
        corpus, kept = with_frequent_tokens(old, most)
        if corpus.vocabulary_size == len(kept):
            return self.replace(
                corpus=corpus, embeddings=None if embeddings is None else embeddings[kept]
            )
        frequency = np.bincount(
            old.tokens, np.repeat(old.counts, old.lengths), minlength=old.vocabulary_size
        )
        frequency[kept] = 0
        notice = (
            f"All but the {len(kept):,} most frequent tokens became one, {corpus.vocabulary[-1]!r}"
        )
        if embeddings is not None:
            other = frequency @ embeddings / frequency.sum()
            embeddings = np.concatenate([embeddings[kept], other[None]])
            notice += ", with the mean of their embeddings"
        return self.replace(
            corpus=corpus, embeddings=embeddings, notices=(*self.notices, f"{notice}.")
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the case holds, by name, for hashing."""
        corpus = self.corpus
        found = {
            "corpus": corpus.tokens,
            "starts": corpus.starts,
            "counts": corpus.counts,
            "vocabulary": np.array(corpus.vocabulary, dtype=np.str_),
            "context length": np.array(corpus.context_length or 0),
            "every prefix": np.array(corpus.every_prefix),
            "initial scales": np.array(self.initial_scales, dtype=np.float64),
        }
        return found if self.embeddings is None else found | {"embeddings": self.embeddings}

    @property
    def size(self) -> int:
        """Tokens in all sentences."""
        return len(self.corpus.tokens)

    @property
    def size_in_words(self) -> str:
        """Sentences, tokens and vocabulary."""
        corpus = self.corpus
        return (
            f"{corpus.sentences:,} sentences, {len(corpus.tokens):,} tokens, "
            f"vocabulary of {corpus.vocabulary_size:,}"
        )

    def smaller(self, trial: Trial) -> CorpusCase:
        """The case less what a counterexample does not need.

        Sentences go first, in halves and then smaller parts, then words of the vocabulary, then
        single tokens, and in the end what sentences count, and embeddings.
        """
        found, before = self, None
        while found is not before:  # a word less may allow a sentence less
            before = found
            found = _fewer_sentences(found, trial)
            found = _fewer_words(found, trial)
            found = _fewer_tokens(found, trial)
        if (found.corpus.counts != 1).any():
            found = trial.smaller_of(found, _with(found, found.corpus.tokens, counts=False))
        if found.embeddings is not None:
            found = trial.smaller_of(found, found.replace(embeddings=None))
        return found

    @cached_property
    def structure(self) -> CorpusStructure:
        """Collocation, orders, and what the theory assumes."""
        return corpora.corpus_structure(self.corpus)

    @cached_property
    def samples(self) -> Samples:
        """The distinct samples."""
        return distinct_samples(self.corpus)

    @cached_property
    def table(self) -> Float[np.ndarray, "V d"]:
        """The vector of every token."""
        return check_embeddings(self.embeddings, self.corpus.vocabulary_size)


def save_corpus(
    path: str | os.PathLike[str], corpus: Corpus, embeddings: Any | None = None
) -> None:
    """Writes a corpus so that ``load`` gives the same samples.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        corpus: The corpus. Sentences of one token hold no sample and are left out.
        embeddings: ``(V, d)``, the vector of every token.

    Raises:
        InvalidInputError: If the name ends in anything else, the embeddings do not fit, or the
            longest sentence is too long for a rectangular array; nothing is written then.
    """
    check_kinds(corpus=(corpus, corpora.Corpus))
    CorpusCase(corpus, embeddings).save(path)


def left_out(empty: int, single: int, what: str = "sentence") -> list[str]:
    """Says how many sentences were left out because they hold no sample."""
    notices = []
    if empty:
        notices.append(f"Skipped: {empty:,} empty {what}{'s' if empty > 1 else ''}.")
    if single:
        notices.append(
            f"Left out: {single:,} {what}{'s' if single > 1 else ''} of one token, without a "
            "sample."
        )
    return notices


def _check_names(arrays: Mapping[str, np.ndarray], file: str) -> None:
    check_known(arrays, CORPUS_LAYOUT, file, "in a corpus")
    if all(mark in arrays for mark in _MARKS):
        raise InvalidInputError(
            "contexts", "they stand in the place of sentences, but both are there", "Keep one"
        )
    if "contexts" in arrays and "labels" not in arrays:
        raise InvalidInputError(
            "labels", f"{file} has contexts without them", "Add labels (n,): the token after each"
        )
    if "sentences" in arrays and "labels" in arrays:
        raise InvalidInputError(
            "labels",
            "they stand beside sentences, whose labels are their own tokens",
            "Remove them, or rename sentences to contexts",
        )


def _rows(
    arrays: Mapping[str, np.ndarray],
) -> tuple[Int[np.ndarray, "n length"], Bool[np.ndarray, "n length"]]:
    """Rows of token numbers, those of contexts with their label, and where there is a token."""
    name = _MARKS[0] if _MARKS[0] in arrays else _MARKS[1]
    rows = _integers(name, arrays[name], 2)
    if rows.min(initial=0) < _PADDING:
        raise InvalidInputError(
            name, f"the smallest number is {rows.min()}", "Give token numbers from 0, and -1 where"
            " there is no token",
        )  # fmt: skip
    kept = rows != _PADDING
    starts = kept & ~np.pad(kept, ((0, 0), (1, 0)))[:, :-1]
    broken = starts.sum(1) > 1
    if name == _MARKS[0]:
        broken |= starts[:, 1:].any(1)
    if broken.any():
        where = "at the end" if name == _MARKS[0] else "in front or at the end"
        raise InvalidInputError(
            name,
            f"row {int(np.argmax(broken))} has -1 before a token"
            + ("" if name == _MARKS[0] else " and behind another"),
            f"Put padding {where}",
        )
    if name == _MARKS[0]:
        return rows, kept
    labels = _integers("labels", arrays["labels"], 1)
    if len(labels) != len(rows):
        raise InvalidInputError(
            "labels", f"there are {len(labels)} for {len(rows)} contexts", "Give one each"
        )
    if not kept.any(1).all():
        raise InvalidInputError(
            "contexts", f"row {int(np.argmin(kept.any(1)))} has no token", "Leave it out"
        )
    if labels.min(initial=0) < 0:
        raise InvalidInputError("labels", "some are negative", "Give token numbers from 0")
    rows = np.concatenate([rows, labels[:, None]], axis=1)
    return rows, np.pad(kept, ((0, 0), (0, 1)), constant_values=True)


def _integers(name: str, array: np.ndarray, axes: int) -> Int[np.ndarray, "..."]:
    if array.ndim != axes or array.dtype.kind not in "iu":
        raise InvalidInputError(
            name,
            f"its shape is {array.shape} and its type {array.dtype}",
            f"Save integers {CORPUS_LAYOUT[name][0]}",
        )
    return array.astype(np.int64)


def _embeddings(arrays: Mapping[str, np.ndarray]) -> Float[np.ndarray, "V d"] | None:
    if "embeddings" not in arrays:
        return None
    array = as_float64("embeddings", arrays["embeddings"])
    if array.ndim != 2 or not array.shape[1]:
        raise InvalidInputError(
            "embeddings", f"the shape is {array.shape}", "Give a row of numbers for each token"
        )
    return array


def _arrays(corpus: Corpus) -> dict[str, np.ndarray]:
    sampled = corpus.lengths > 1
    lengths = corpus.lengths[sampled]
    if len(lengths) * int(lengths.max()) > MOST_ENTRIES:
        raise InvalidInputError(
            "corpus",
            f"{len(lengths):,} sentences of up to {lengths.max():,} tokens are too many for one "
            "rectangular array",
            "Cut long sentences, or write text with a sentence a line",
        )
    rows = np.full((len(lengths), int(lengths.max())), _PADDING)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = corpus.tokens[sampled[corpus.sentence_of]]
    if corpus.every_prefix:
        arrays = {"sentences": rows}
    else:
        last = (np.arange(len(rows)), lengths - 1)
        arrays = {"labels": rows[last]}
        rows[last] = _PADDING
        arrays["contexts"] = rows[:, :-1]
    counts = corpus.counts[sampled]
    if (counts != 1).any():
        arrays["counts"] = counts
    if corpus.context_length is not None:
        arrays["context_length"] = np.array(corpus.context_length)
    return arrays


def _fewer_sentences(case: CorpusCase, trial: Trial) -> CorpusCase:
    spans = pairwise(case.corpus.starts.tolist())
    return _dropped(case, [[(place,) for place in range(*span)] for span in spans], trial)


def _fewer_tokens(case: CorpusCase, trial: Trial) -> CorpusCase:
    return _dropped(case, [[(place,)] for place in range(len(case.corpus.tokens))], trial)


def _dropped(case: CorpusCase, pieces: list[list[tuple[int, ...]]], trial: Trial) -> CorpusCase:
    tokens = case.corpus.tokens

    def built(kept: Bool[np.ndarray, "total"]) -> CorpusCase | None:
        return _with(case, np.where(kept, tokens, -1))

    everything = np.ones(len(tokens), dtype=bool)
    kept = drop(everything, pieces, lambda fewer: trial.fails(built(fewer)))
    found = None if kept.all() else built(kept)
    return case if found is None else found


def _fewer_words(case: CorpusCase, trial: Trial) -> CorpusCase:
    """The case less every word that can go, one after another."""
    for name in reversed(case.corpus.vocabulary):
        case = trial.smaller_of(case, _without_word(case, name))
    return case


def _without_word(case: CorpusCase, name: str) -> CorpusCase | None:
    """The case without a word; what was followed by it is followed by what follows it."""
    corpus = case.corpus
    word = corpus.vocabulary.index(name)
    tokens = corpus.tokens.copy()
    last = corpus.starts[1:] - 1
    ends = last[tokens[last] == word]
    tokens[tokens == word] = -1
    tokens[ends] = case.structure.collocation.next_token[word]
    tokens[tokens == word] = -1  # it followed itself
    return _with(case, tokens)


def _with(case: CorpusCase, tokens: np.ndarray, *, counts: bool = True) -> CorpusCase | None:
    """A case with other tokens in its sentences, -1 for none, and the words that are left.

    None where nothing follows any token.
    """
    corpus = case.corpus
    lengths = np.bincount(corpus.sentence_of[tokens >= 0], minlength=corpus.sentences)
    kept = (tokens >= 0) & (lengths > 1)[corpus.sentence_of]
    words, numbers = np.unique(tokens[kept], return_inverse=True)

    try:
        smaller = corpora.Corpus(
            numbers,
            np.cumsum([0, *lengths[lengths > 1]]),
            [corpus.vocabulary[word] for word in words],
            context_length=corpus.context_length,
            every_prefix=corpus.every_prefix,
            counts=corpus.counts[lengths > 1] if counts else None,
        )
    except InvalidInputError:
        return None
    table = case.embeddings
    return case.replace(corpus=smaller, embeddings=None if table is None else table[words])


def _read_text(file: Path, **settings: Any) -> CorpusCase:
    from attractor.corpora.files.corpus_text import read_text  # which makes these cases

    return read_text(file, **settings)


def load_corpus(
    path: str | os.PathLike[str],
    *,
    context_length: int | None = None,
    vocabulary: int | None = None,
) -> CorpusCase:
    """Reads a corpus, as ``load`` does.

    Args:
        path: Text with a sentence a line, or arrays.
        context_length: How many tokens before the label are the context; None for what the file
            says, or else all of them.
        vocabulary: How many of the most frequent tokens keep their names; the others become one.

    Raises:
        InvalidInputError: As ``load``, or if the file is one of token sequences or a head.
        FileFormatError: As ``load``.
    """
    file = existing_file(path, CorpusCase.missing)
    if file.suffix not in (*ARRAY_SUFFIXES, *(kind.suffix for kind in kinds())):
        return _read_text(file, context_length=context_length, vocabulary=vocabulary)
    loaded = of_kind(CorpusCase, file, "has neither sentences nor contexts: it holds")
    if vocabulary is not None:
        loaded = loaded.with_vocabulary(vocabulary)
    if context_length is not None:
        loaded = loaded.replace(corpus=with_context_length(loaded.corpus, context_length))
    return loaded
