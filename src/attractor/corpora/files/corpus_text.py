"""Sentences from text: a line each, tokens between spaces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from attractor.corpora import Corpus
from attractor.corpora.corpus import frequent_tokens
from attractor.corpora.files.corpus import CorpusCase, left_out
from attractor.support.containers import read_text_blocks
from attractor.support.errors import InvalidInputError

BLOCK = 2**20
"""Bytes read at a time, and the longest token."""
MOST_TOKENS = 60_000_000
"""Tokens taken from a file: what can be held and sorted in 9 GB of memory."""
MOST_WORDS = 2**22
"""Different tokens met in a file before it is refused; a dictionary holds them all."""

_END = "\0"
"""The end of a line, among tokens; no text file has it."""


def read_text(
    file: Path, *, context_length: int | None = None, vocabulary: int | None = None
) -> CorpusCase:
    """Reads one sentence a line, in UTF-8, with white space between tokens.

    The file is read a block at a time, and token numbers are all that is kept. What ends a line
    says ``read_text_blocks``. Empty lines are skipped, and so are sentences of one token, which
    hold no sample.

    Args:
        file: The file.
        context_length: See ``Corpus``.
        vocabulary: How many of the most frequent tokens keep their names; the others become one.

    Raises:
        InvalidInputError: If there is no sentence of two tokens, or too much of anything.
        FileFormatError: If the file is not UTF-8.
    """
    numbers = _Numbers()
    parts: list[np.ndarray] = []
    total = 0
    for text in _blocks(file):
        words = text.replace("\n", f" {_END} ").split()
        parts.append(np.fromiter(map(numbers.__getitem__, words), np.int32, len(words)))
        total += len(words)
        _check_size(file, total, len(numbers))
    tokens = np.concatenate([np.zeros(0, np.int32), *parts])
    del parts
    names = list(numbers)
    del numbers
    return _corpus(file, tokens, names, context_length, vocabulary)


class _Numbers(dict[str, int]):
    """The number of each word, in the order of appearance."""

    def __init__(self) -> None:
        super().__init__({_END: 0})

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def _blocks(file: Path) -> Iterator[str]:
    """The text in pieces that end between tokens; the last line ends in a line break."""
    rest, lines = "", 0
    for text in read_text_blocks(file, BLOCK):
        text = rest + text
        rest = "" if not text or text[-1].isspace() else text.rsplit(None, 1)[-1]
        whole = text[: len(text) - len(rest)]
        lines += whole.count("\n")
        if len(rest) > BLOCK:
            raise InvalidInputError(
                "file",
                f"{file.name} has a token of more than {BLOCK:,} bytes on line {lines + 1:,}",
                "Give one sentence a line, with spaces between its tokens",
            )
        yield whole
    yield rest + "\n"


def _check_size(file: Path, tokens: int, words: int) -> None:
    if tokens > MOST_TOKENS:
        raise InvalidInputError(
            "file",
            f"{file.name} has more than {MOST_TOKENS:,} tokens",
            "Give a part of it, such as its first million lines",
        )
    if words > MOST_WORDS:
        raise InvalidInputError(
            "file",
            f"{file.name} has more than {MOST_WORDS:,} different tokens",
            "Give words or pieces of words, of which most occur many times",
        )


def _corpus(
    file: Path,
    tokens: np.ndarray,
    names: list[str],
    context_length: int | None,
    vocabulary: int | None,
) -> CorpusCase:
    ends = np.flatnonzero(tokens == 0)
    lengths = np.diff(ends, prepend=-1) - 1
    # The last line break is the one that every text ends with here, after a last line or none.
    empty = int((lengths[:-1] == 0).sum())
    single = int((lengths == 1).sum())
    if not lengths.any():
        raise InvalidInputError(
            "file", f"{file.name} has no tokens", "Give one sentence a line, of two tokens or more"
        )
    if lengths.max() < 2:
        raise InvalidInputError(
            "file",
            f"every sentence of {file.name} has a single token, so that nothing follows any token",
            "Give sentences of two tokens or more, with spaces between the tokens",
        )
    tokens = tokens[np.repeat(lengths > 1, lengths + 1) & (tokens > 0)]
    starts = np.cumsum([0, *lengths[lengths > 1]])
    number, kept_names, kept = frequent_tokens(tokens, names, vocabulary)
    notices = left_out(empty, single, "line")
    if len(kept_names) > len(kept):
        share = np.count_nonzero(number == len(kept)) / len(number)
        notices.append(
            f"All but the {len(kept):,} most frequent tokens became one, {kept_names[-1]!r}: "
            f"{share:.1%} of the text."
        )
    corpus = Corpus(number, starts, kept_names, context_length=context_length)
    return CorpusCase(corpus, notices=tuple(notices), about=file.name)
