"""Data sets to try things on: random unit tokens, digits, docstrings, reviews, images, heads."""

from attractor.datasets._planted_reviews import PlantedPart, PlantedReviews, planted_reviews
from attractor.datasets._random_head import random_head
from attractor.datasets._unit_tokens import unit_tokens
from attractor.datasets.digits import DigitPatches, digit_patches
from attractor.datasets.docstrings import docstring_sentences
from attractor.datasets.image_preparation import (
    augment_images,
    channel_statistics,
    normalize_images,
    resize_images,
)
from attractor.datasets.images import Images, ImageSplits, load_images, split_images
from attractor.datasets.lexicon import SentimentWords, sentiment_words
from attractor.datasets.review_files import Review
from attractor.datasets.reviews import (
    Reviews,
    ReviewSplits,
    iterate_reviews,
    load_reviews,
    split_reviews,
)
from attractor.datasets.tokenizer import (
    EncodedTexts,
    TextTokenizer,
    TextWords,
    load_tokenizer,
    train_tokenizer,
)
from attractor.settings import all_in_own_settings

__all__ = [
    "DigitPatches",
    "EncodedTexts",
    "ImageSplits",
    "Images",
    "PlantedPart",
    "PlantedReviews",
    "Review",
    "ReviewSplits",
    "Reviews",
    "SentimentWords",
    "TextTokenizer",
    "TextWords",
    "augment_images",
    "channel_statistics",
    "digit_patches",
    "docstring_sentences",
    "iterate_reviews",
    "load_images",
    "load_reviews",
    "load_tokenizer",
    "normalize_images",
    "planted_reviews",
    "random_head",
    "resize_images",
    "sentiment_words",
    "split_images",
    "split_reviews",
    "train_tokenizer",
    "unit_tokens",
]

all_in_own_settings(__name__)
