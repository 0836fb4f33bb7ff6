"""Texts as sequences of word pieces."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int32

from attractor.support.checks import check_count, check_items, check_kinds, check_path
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.precision import as_shaped
from attractor.support.storage import write_file

PADDING = "[PAD]"
LONGEST = 2**24
"""Pieces of the longest text."""
LARGEST_FILE = 2**26
"""Bytes of a tokenizer's file before it is refused; one of 100,000 pieces has some 6 million."""
_PADDING_NAMES = (PADDING, "<pad>", "<|pad|>")
CHUNK = 512
"""Texts given to the library at a time."""
_INSTALL = "Run `pip install 'attractor[text]'`"
UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"
_SPECIAL = [PADDING, UNKNOWN, FIRST, LAST]
_WORD_START = "▁"
_MOST_CHARACTERS = 1000


@dataclasses.dataclass(frozen=True)
class EncodedTexts:
    """Texts as numbers of word pieces, cut or padded to one length.

    Attributes:
        ids: The pieces; those past the end of a text are padding.
        lengths: Number of pieces of each text, after the cut.
        settings: The length, how many texts were cut, and the tokenizer's settings.
    """

    ids: Int32[np.ndarray, "n length"]
    lengths: Int32[np.ndarray, "n"]
    settings: dict[str, Any]

    @property
    def mask(self) -> Bool[np.ndarray, "n length"]:
        """True at the pieces of a text, False at padding."""
        return np.arange(self.ids.shape[1]) < self.lengths[:, None]


class TextWords(NamedTuple):
    """The words of an encoded text, and the word of every position.

    Attributes:
        words: The words and punctuation marks of the text, as written there.
        word_of_position: The word of each position, or -1 where there is none: at [CLS] and [SEP].
        pieces: The piece at each position.
    """

    words: tuple[str, ...]
    word_of_position: Int32[np.ndarray, "length"]
    pieces: tuple[str, ...]

    def sums(self, values: Float[np.ndarray, "*batch length"]) -> Float[np.ndarray, "*batch words"]:
        """Sums values of positions, such as attention weights, over the pieces of each word."""
        values = as_shaped("values", values, ("...", len(self.word_of_position)))
        belongs = self.word_of_position[:, None] == np.arange(len(self.words))
        return values @ belongs.astype(float)


class TextTokenizer:
    """Cuts texts into pieces of words, by a tokenizer of the library tokenizers.

    Attributes:
        settings: Where the tokenizer is from, and how many pieces it knows.
        vocabulary: Number of pieces it knows.
        padding: The number of the piece that fills up short texts.
        first: The number of the piece that every text begins with.
    """

    def __init__(self, text: str, settings: dict[str, Any] | None = None) -> None:
        """Reads a tokenizer from the JSON text that the library tokenizers writes.

        Raises:
            InvalidInputError: If the library is not installed, or the tokenizer puts no piece such
                as [CLS] in front of a text, or has no piece for padding.
            FileFormatError: If the text is no tokenizer.
        """
        check_kinds(text=(text, str), settings=(settings, Mapping | None))
        library = tokenizers_library()
        self._tokenizer = _parsed(library, text)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        numbers = (self._tokenizer.token_to_id(name) for name in _PADDING_NAMES)
        padding = next((number for number in numbers if number is not None), None)
        if padding is None:
            raise InvalidInputError(
                "tokenizer",
                f"it has none of the pieces {', '.join(_PADDING_NAMES)}",
                "Give a tokenizer with a piece for padding, such as that of a BERT model",
            )
        self.padding: int = padding
        self.first = self._first_piece()
        self.vocabulary: int = self._tokenizer.get_vocab_size()
        self.settings = dict(settings or {"source": "JSON text"}) | {"vocabulary": self.vocabulary}

    def _first_piece(self) -> int:
        begins = [self._pieces([text])[0] for text in ("", "a", "the film")]
        starts = {begin.ids[0] for begin in begins if begin.ids and begin.special_tokens_mask[0]}
        if len(starts) != 1 or not all(begin.ids for begin in begins):
            raise InvalidInputError(
                "tokenizer",
                "it puts no piece such as [CLS] in front of every text",
                "Give a tokenizer whose post_processor does, such as that of a BERT model",
            )
        return starts.pop()

    def encode(self, texts: Sequence[str], length: int) -> EncodedTexts:
        """Encodes texts, each cut hard at ``length``: [CLS] stays, and a cut drops [SEP].

        Texts are encoded a few hundred at a time, so that little more than the result is held.

        Args:
            texts: The texts.
            length: Pieces of each, [CLS] included.

        Raises:
            InvalidInputError: If the length is no positive integer, or an entry is no text.
        """
        length = check_count("length", length, 1, LONGEST)
        texts = check_texts(texts)
        ids = np.full((len(texts), length), self.padding, np.int32)
        lengths = np.zeros(len(texts), np.int32)
        cut = 0
        encodings = itertools.chain.from_iterable(map(self._pieces, _in_chunks(texts)))
        for row, encoding in enumerate(encodings):
            pieces = encoding.ids
            lengths[row] = min(len(pieces), length)
            ids[row, : lengths[row]] = pieces[:length]
            cut += len(pieces) > length
        settings = {"length": int(length), "texts_cut": cut, "tokenizer": dict(self.settings)}
        return EncodedTexts(ids, lengths, settings)

    def words(self, text: str, length: int | None = None) -> TextWords:
        """Returns the word of each position of a text, as ``encode`` cuts it.

        Args:
            text: The text.
            length: As for ``encode``; None for no cut.
        """
        check_kinds(text=(text, str))
        length = None if length is None else check_count("length", length)
        encoding = self._pieces([text], places=True)[0]
        spans: dict[int, tuple[int, int]] = {}
        for word, (begin, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
            if word is not None:
                first, last = spans.get(word, (begin, end))
                spans[word] = (min(first, begin), max(last, end))
        positions = encoding.word_ids[:length]
        number: dict[int | None, int] = {None: -1}
        for word in positions:
            number.setdefault(word, len(number) - 1)
        return TextWords(
            tuple(text[slice(*spans[word])].strip() for word in number if word is not None),
            np.array([number[word] for word in positions], np.int32),
            tuple(encoding.tokens[:length]),
        )

    def _pieces(self, texts: list[str], *, places: bool = False) -> list[Any]:
        """The library's encodings of texts; without places of words they come faster."""
        tokenizer = self._tokenizer
        try:
            return (tokenizer.encode_batch if places else tokenizer.encode_batch_fast)(texts)
        except BaseException as error:
            if not _is_of_library(error):
                raise
            raise InvalidInputError(
                "tokenizer",
                f"it cannot encode these texts ({error})",
                "Give one with a piece for what it does not know, and texts in Unicode",
            ) from None

    def piece(self, number: int) -> str | None:
        """The piece with a number; None if there is none."""
        number = check_count("number", number, 0, 2**31)
        return self._tokenizer.id_to_token(number)

    def number(self, piece: str) -> int | None:
        """The number of a piece; None if there is none."""
        check_kinds(piece=(piece, str))
        return self._tokenizer.token_to_id(piece)

    def to_json(self) -> str:
        """The tokenizer as JSON text, to keep with results; the class reads it again."""
        return self._tokenizer.to_str()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the tokenizer's JSON text to a file, whole or not at all."""
        write_file(check_path("path", path), self.to_json())


def load_tokenizer(path: str | os.PathLike[str]) -> TextTokenizer:
    """Reads a ``tokenizer.json``, one's own or that of a published model.

    Raises:
        InvalidInputError: If there is no such file, or the tokenizer cannot be used here.
        FileFormatError: If the file is too large or no tokenizer.
    """
    path = check_path("path", path)
    file = Path(path)
    if not file.is_file():
        raise InvalidInputError("path", f"there is no file {file}", "Give a tokenizer.json")
    with file.open("rb") as stream:
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise FileFormatError(f"{file} has more than {LARGEST_FILE:,} bytes: no tokenizer.json.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise FileFormatError(f"{file} is not UTF-8, so it is no tokenizer.json.") from None
    return TextTokenizer(text, {"source": str(path)})


def check_texts(texts: Sequence[str]) -> Sequence[str]:
    """Refuses anything but a sequence of texts."""
    if isinstance(texts, str):
        raise InvalidInputError("texts", "it is a single text", "Give a list of texts")
    if not isinstance(texts, list | tuple):
        texts = check_items("texts", texts, object)
    wrong = next((place for place, text in enumerate(texts) if not isinstance(text, str)), None)
    if wrong is not None:
        raise InvalidInputError(
            "texts", f"entry {wrong} is of type {type(texts[wrong]).__name__}", "Give texts only"
        )
    return texts


def _parsed(library: Any, text: str) -> Any:
    try:
        parsed = json.loads(text)
        if not isinstance(parsed, dict) or not {"model", "added_tokens"} <= set(parsed):
            raise ValueError("it has no model and added_tokens")
        return library.Tokenizer.from_str(text)
    except BaseException as error:
        if not _is_of_library(error):
            raise
        raise FileFormatError(
            f"The text is no tokenizer of the library tokenizers ({error}). "
            "Give the tokenizer.json that its method save writes."
        ) from None


def _is_of_library(error: BaseException) -> bool:
    """Whether the library tokenizers raises this: plain Exception, or a panic of its Rust code."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def tokenizers_library() -> Any:
    """The library tokenizers, loaded when it is needed."""
    try:
        import tokenizers
    except ImportError:
        raise InvalidInputError(
            "tokenizer", "the package tokenizers is not installed", _INSTALL
        ) from None
    return tokenizers


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
        vocabulary: Number of pieces; there are fewer if the texts are few.
        minimum_count: Occurrences of a pair needed to become a piece.

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
