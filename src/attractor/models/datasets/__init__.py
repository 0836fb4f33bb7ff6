"""Reviews and images, and what prepares them for classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.models.datasets._planted_reviews import (
        PlantedPart as PlantedPart,
        PlantedReviews as PlantedReviews,
        planted_reviews as planted_reviews,
    )
    from attractor.models.datasets.image_preparation import (
        augment_images as augment_images,
        channel_statistics as channel_statistics,
        normalize_images as normalize_images,
        resize_images as resize_images,
    )
    from attractor.models.datasets.images import (
        Images as Images,
        ImageSplits as ImageSplits,
        load_images as load_images,
        split_images as split_images,
    )
    from attractor.models.datasets.lexicon import (
        SentimentWords as SentimentWords,
        sentiment_words as sentiment_words,
    )
    from attractor.models.datasets.review_files import Review as Review
    from attractor.models.datasets.reviews import (
        Reviews as Reviews,
        ReviewSplits as ReviewSplits,
        load_reviews as load_reviews,
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
