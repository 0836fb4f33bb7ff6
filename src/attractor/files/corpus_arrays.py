"""What the arrays and texts of a corpus file mean together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.containers import parse_json
from attractor.errors import InvalidInputError
from attractor.files.corpus_layout import CORPUS_LAYOUT, MARKS, PADDING
from attractor.files.corpus_loaded import LoadedCorpus, left_out
from attractor.next_token import Corpus
from attractor.next_token.vocabulary import with_frequent_tokens
from attractor.precision import as_float64


def interpret_corpus(
    arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], file: str
) -> LoadedCorpus:
    """Puts together what lies in a corpus file.

    Args:
        arrays: The arrays by name.
        texts: The texts by name.
        file: Name of the file, for errors.

    Raises:
        InvalidInputError: If an array is missing, unknown, at odds with another, or cannot be
            used.
    """
    _check_names(arrays, file)
    rows, kept = _rows(arrays)
    lengths = kept.sum(1)
    sampled = lengths > 1
    if not sampled.any():
        raise InvalidInputError(
            MARKS[0],
            "none has two tokens, so that nothing follows any token",
            "Give sentences of two tokens or more",
        )
    notices = tuple(left_out(int((lengths == 0).sum()), int((lengths == 1).sum())))
    names, embeddings = _names(arrays, texts), _embeddings(arrays)
    counts = arrays.get("counts")
    if counts is not None:
        counts = as_float64("counts", counts)
        if counts.shape != sampled.shape:
            raise InvalidInputError(
                "counts", f"the shape is {counts.shape}", f"Give one for each row: {sampled.shape}"
            )
        counts = counts[sampled]
    corpus = Corpus(
        rows[sampled][kept[sampled]],
        np.cumsum([0, *lengths[sampled]]),
        names if names is not None else None if embeddings is None else len(embeddings),
        context_length=_context_length(arrays),
        every_prefix=MARKS[0] in arrays,
        counts=counts,
    )
    if embeddings is not None and len(embeddings) != corpus.vocabulary_size:
        raise InvalidInputError(
            "embeddings",
            f"there are {len(embeddings)} for a vocabulary of {corpus.vocabulary_size}",
            "Give one for each token number",
        )
    return LoadedCorpus(corpus, embeddings, notices)


def with_vocabulary(loaded: LoadedCorpus, most: int) -> LoadedCorpus:
    """The corpus in which all but the most frequent tokens are one token.

    Where tokens have embeddings, the one that others become has the mean of theirs, each counted
    as often as it occurs.
    """
    old, embeddings = loaded.corpus, loaded.embeddings
    corpus, kept = with_frequent_tokens(old, most)
    if corpus.vocabulary_size == len(kept):
        return LoadedCorpus(corpus, None if embeddings is None else embeddings[kept])
    frequency = np.bincount(
        old.tokens, np.repeat(old.counts, old.lengths), minlength=old.vocabulary_size
    )
    frequency[kept] = 0
    notice = f"All but the {len(kept):,} most frequent tokens became one, {corpus.vocabulary[-1]!r}"
    if embeddings is not None:
        other = frequency @ embeddings / frequency.sum()
        embeddings = np.concatenate([embeddings[kept], other[None]])
        notice += ", with the mean of their embeddings"
    return LoadedCorpus(corpus, embeddings, (*loaded.notices, f"{notice}."))


def _check_names(arrays: Mapping[str, np.ndarray], file: str) -> None:
    unknown = next((name for name in sorted(arrays) if name not in CORPUS_LAYOUT), None)
    if unknown is not None:
        raise InvalidInputError(
            unknown,
            f"{file} has an array of this name, which means nothing in a corpus",
            f"Rename or remove it; known are {', '.join(CORPUS_LAYOUT)}",
        )
    if all(mark in arrays for mark in MARKS):
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
    name = MARKS[0] if MARKS[0] in arrays else MARKS[1]
    rows = _integers(name, arrays[name], 2)
    if rows.min(initial=0) < PADDING:
        raise InvalidInputError(
            name, f"the smallest number is {rows.min()}", "Give token numbers from 0, and -1 where"
            " there is no token",
        )  # fmt: skip
    kept = rows != PADDING
    starts = kept & ~np.pad(kept, ((0, 0), (1, 0)))[:, :-1]
    broken = starts.sum(1) > 1
    if name == MARKS[0]:
        broken |= starts[:, 1:].any(1)
    if broken.any():
        where = "at the end" if name == MARKS[0] else "in front or at the end"
        raise InvalidInputError(
            name,
            f"row {int(np.argmax(broken))} has -1 before a token"
            + ("" if name == MARKS[0] else " and behind another"),
            f"Put padding {where}",
        )
    if name == MARKS[0]:
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


def _names(arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> list[str] | None:
    if "vocabulary" in texts:
        try:
            names = parse_json(texts["vocabulary"])
        except ValueError:
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidInputError(
                "vocabulary", "its metadata is no list of texts", "Save json.dumps(list of texts)"
            )
        return names
    if "vocabulary" not in arrays:
        return None
    array = arrays["vocabulary"]
    if array.ndim != 1 or array.dtype.kind != "U":
        raise InvalidInputError(
            "vocabulary",
            f"its shape is {array.shape} and its type {array.dtype}",
            "Save an array of texts in .npz, or a JSON list in the metadata of .safetensors",
        )
    return array.tolist()


def _embeddings(arrays: Mapping[str, np.ndarray]) -> Float[np.ndarray, "V d"] | None:
    if "embeddings" not in arrays:
        return None
    array = as_float64("embeddings", arrays["embeddings"])
    if array.ndim != 2 or not array.shape[1]:
        raise InvalidInputError(
            "embeddings", f"the shape is {array.shape}", "Give a row of numbers for each token"
        )
    return array


def _context_length(arrays: Mapping[str, np.ndarray]) -> int | None:
    if "context_length" not in arrays:
        return None
    return int(_integers("context_length", arrays["context_length"], 0))
