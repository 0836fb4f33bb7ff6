"""Finding the pieces of words that texts are best written with."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any

from attractor.checks import check_count
from attractor.datasets.tokenizer import (
    CHUNK,
    PADDING,
    TextTokenizer,
    check_texts,
    tokenizers_library,
)
from attractor.errors import InvalidInputError

UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"
_SPECIAL = [PADDING, UNKNOWN, FIRST, LAST]
_WORD_START = "▁"
_MOST_CHARACTERS = 1000


def train_tokenizer(
    texts: Sequence[str], *, vocabulary: int = 8000, minimum_count: int = 2
) -> TextTokenizer:
    """Finds the pieces of words that texts are best written with, by byte pair encoding.

    Texts become lower case without accents; HTML line breaks and other white space separate words,
    and every punctuation mark is a word. The pair of neighboring pieces met most often becomes a
    piece, again and again (Sennrich, Haddow and Birch 2016); a piece that begins a word carries
    the mark "▁". [PAD] is 0, [UNK] 1, [CLS] 2 and [SEP] 3. Characters beyond the 1,000 most
    frequent, or beyond a quarter of the vocabulary, become [UNK]. The same texts give the same
    pieces.

    Args:
        texts: The texts to train on, and no others.
        vocabulary: How many pieces there are to be; there are fewer if the texts are few.
        minimum_count: How often a pair must be met to become a piece.

    Raises:
        InvalidInputError: If there are no words, an argument is no such number, or the library
            tokenizers is not installed.
    """
    check_count("vocabulary", vocabulary, 16)
    check_count("minimum_count", minimum_count)
    check_texts(texts)
    library = tokenizers_library()
    tokenizer = _untrained(library)
    counts: collections.Counter[str] = collections.Counter()
    for text in texts:
        counts.update(tokenizer.normalizer.normalize_str(text))
    ranked = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    if not ranked:
        raise InvalidInputError("texts", "there are no words in them", "Give texts to train on")
    # Named in full, since the library breaks ties between rare characters differently each time.
    alphabet = [_WORD_START, *ranked[: min(_MOST_CHARACTERS, vocabulary // 4)]]
    trainer = library.trainers.BpeTrainer(
        vocab_size=int(vocabulary),
        min_frequency=int(minimum_count),
        special_tokens=_SPECIAL,
        initial_alphabet=alphabet,
        limit_alphabet=len(set(alphabet)),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_in_chunks(texts), trainer)
    settings = {
        "source": f"byte pair encoding by tokenizers {library.__version__}",
        "texts": len(texts),
        "vocabulary_asked_for": int(vocabulary),
        "minimum_count": int(minimum_count),
    }
    return TextTokenizer(tokenizer.to_str(), settings)


def _untrained(library: Any) -> Any:
    normalizers, before = library.normalizers, library.pre_tokenizers
    tokenizer = library.Tokenizer(library.models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(library.Regex(r"<br\s*/?>"), " "),
            normalizers.BertNormalizer(lowercase=True),
        ]
    )
    tokenizer.pre_tokenizer = before.Sequence(
        [
            before.BertPreTokenizer(),
            before.Metaspace(_WORD_START, prepend_scheme="always", split=False),
        ]
    )
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single=f"{FIRST} $A {LAST}",
        special_tokens=[(name, _SPECIAL.index(name)) for name in (FIRST, LAST)],
    )
    tokenizer.decoder = library.decoders.Metaspace(_WORD_START)
    return tokenizer


def _in_chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    for begin in range(0, len(texts), CHUNK):
        yield list(texts[begin : begin + CHUNK])
