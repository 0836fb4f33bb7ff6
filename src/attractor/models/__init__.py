"""Small transformers for texts and images, and their training."""

from attractor.models import datasets as datasets
from attractor.models._train_classifier import (
    LearningRateSearch,
    search_learning_rate,
    train_classifier,
)
from attractor.models.classification_data import ClassificationData, Examples
from attractor.models.classifier_trajectory import ClassifierTrajectory
from attractor.models.configuration import TextTransformerConfig, VisionTransformerConfig
from attractor.models.transformers import (
    TextTransformer,
    VisionTransformer,
    build_model,
    head_matrices,
    load_model,
    save_model,
)
from attractor.support.settings import all_in_own_settings

__all__ = [
    "ClassificationData",
    "ClassifierTrajectory",
    "Examples",
    "LearningRateSearch",
    "TextTransformer",
    "TextTransformerConfig",
    "VisionTransformer",
    "VisionTransformerConfig",
    "build_model",
    "head_matrices",
    "load_model",
    "save_model",
    "search_learning_rate",
    "train_classifier",
]

all_in_own_settings(__name__)
