"""Reviews and images, and what prepares them for classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.models.datasets.images import (
        Images as Images,
        ImageSplits as ImageSplits,
        augment_images as augment_images,
        channel_statistics as channel_statistics,
        load_images as load_images,
        normalize_images as normalize_images,
        resize_images as resize_images,
        split_images as split_images,
    )
    from attractor.models.datasets.review_files import Review as Review
    from attractor.models.datasets.reviews import (
        PlantedPart as PlantedPart,
        PlantedReviews as PlantedReviews,
        Reviews as Reviews,
        ReviewSplits as ReviewSplits,
        SentimentWords as SentimentWords,
        load_reviews as load_reviews,
        planted_reviews as planted_reviews,
        sentiment_words as sentiment_words,
        split_reviews as split_reviews,
    )
    from attractor.models.datasets.tokenizer import (
        EncodedTexts as EncodedTexts,
        TextTokenizer as TextTokenizer,
        TextWords as TextWords,
        load_tokenizer as load_tokenizer,
        train_tokenizer as train_tokenizer,
    )

import_on_first_use(__name__)
