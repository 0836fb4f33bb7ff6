"""The data in a user's file, of whatever kind it is."""

from __future__ import annotations

from collections.abc import Sequence

from attractor.files import LoadedClassifiers, LoadedCorpus, LoadedHead, LoadedRegression
from attractor.files.reading import Loaded
from attractor.papers.case import Case
from attractor.papers.classifier_case import ClassifierCase
from attractor.papers.corpus_case import CorpusCase
from attractor.papers.data_set import DataSet
from attractor.papers.head_case import HeadCase
from attractor.papers.regression_case import RegressionCase


def data_sets(loaded: Loaded, name: str) -> Sequence[DataSet]:
    """The data sets in what a file holds: of token sequences one for every instance.

    Args:
        loaded: What it holds.
        name: The name of the file.

    Raises:
        InvalidInputError: If a token file says neither scores nor a head.
    """
    if isinstance(loaded, LoadedCorpus):
        return [CorpusCase.from_loaded(loaded, name)]
    if isinstance(loaded, LoadedHead):
        return [HeadCase.from_loaded(loaded, name)]
    if isinstance(loaded, LoadedRegression):
        return [RegressionCase.from_loaded(loaded, name)]
    if isinstance(loaded, LoadedClassifiers):
        return [ClassifierCase.from_loaded(loaded, name)]
    return Case.from_loaded(loaded, name)
