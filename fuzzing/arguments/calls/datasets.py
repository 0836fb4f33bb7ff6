"""Calls of ``attractor.datasets``."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np

from attractor import datasets, models, prompts
from fuzzing.arguments import example_files as given
from fuzzing.arguments.table import Call, Lazy

PIXELS = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
TEXTS = ["good film", "bad film", "a good one"]


SIZES = {"validation": "train", "test": "train"}


def calls() -> Iterator[Call]:
    """One call of each."""
    rows = np.array([0, 1])
    yield Call(models.datasets.Images.take, self=given.IMAGES, rows=rows, settings={})
    yield Call(models.datasets.Reviews.take, self=given.REVIEWS, rows=rows, settings={})
    yield Call(models.datasets.TextTokenizer, text=given.TOKENIZER_TEXT)
    tokenizer = {"self": given.TOKENIZER}
    yield Call(
        models.datasets.TextTokenizer.encode,
        **tokenizer,
        texts=TEXTS,
        length=5,
        takes={"texts": "sequence array"},
    )
    yield Call(models.datasets.TextTokenizer.number, **tokenizer, piece="good")
    yield Call(models.datasets.TextTokenizer.piece, **tokenizer, number=1)
    yield Call(models.datasets.TextTokenizer.save, **tokenizer, path="tokenizer.json")
    yield Call(models.datasets.TextTokenizer.words, **tokenizer, text="a good film")
    yield Call(models.datasets.TextWords.sums, self=given.TEXT_WORDS, values=given.TEXT_VALUES)
    yield Call(
        models.datasets.augment_images, key=Lazy(lambda: jax.random.key(0)), pixels=PIXELS, size=4,
        padding=1,
    )  # fmt: skip
    yield Call(models.datasets.channel_statistics, pixels=PIXELS)
    yield Call(datasets.digit_patches, n=2, instances=1)
    yield Call(datasets.docstring_sentences, modules=["bisect"])
    reviews = {"path": given.REVIEW_FILE}
    yield Call(models.datasets.load_reviews, **reviews)
    yield Call(models.datasets.load_images, path=given.IMAGE_FILE)
    yield Call(models.datasets.load_tokenizer, path=given.TOKENIZER_FILE)
    yield Call(
        models.datasets.normalize_images, pixels=PIXELS, mean=np.ones(3), deviation=np.ones(3)
    )
    yield Call(
        models.datasets.planted_reviews, train=4, validation=2, test=2, vocabulary=80, length=10,
        planted=2, class_words=4,
    )  # fmt: skip
    yield Call(prompts.random_head, dimension=2, queries=4, seed=0)
    yield Call(models.datasets.resize_images, pixels=PIXELS, size=3)
    yield Call(models.datasets.sentiment_words)
    yield Call(
        models.datasets.split_images,
        images=given.IMAGES,
        train=1,
        validation=1,
        test=1,
        blames=SIZES,
    )
    yield Call(
        models.datasets.split_reviews,
        reviews=given.REVIEWS,
        train=1,
        validation=1,
        test=1,
        blames=SIZES,
    )
    yield Call(models.datasets.train_tokenizer, texts=TEXTS, vocabulary=40, minimum_count=1)
    yield Call(
        datasets.unit_tokens, n=2, T=3, d=3, seeds=[0], takes={"seeds": "sequence array"},
        blames={"seeds": "instance_numbers"},
    )  # fmt: skip
