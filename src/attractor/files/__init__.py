"""The files that users keep data in: tokens, corpora, heads, regression tasks, results."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.files.classifiers_layout import CLASSIFIERS_LAYOUT
    from attractor.files.classifiers_loaded import LoadedClassifiers
    from attractor.files.classifiers_writing import save_classifiers
    from attractor.files.corpus_layout import CORPUS_LAYOUT
    from attractor.files.corpus_loaded import LoadedCorpus
    from attractor.files.corpus_writing import save_corpus
    from attractor.files.head_layout import HEAD_LAYOUT
    from attractor.files.head_loaded import LoadedHead
    from attractor.files.head_writing import save_head
    from attractor.files.layout import LAYOUT
    from attractor.files.loaded import LoadedTokens
    from attractor.files.reading import load, load_corpus, load_head, load_tokens
    from attractor.files.regression_layout import REGRESSION_LAYOUT
    from attractor.files.regression_loaded import LoadedRegression
    from attractor.files.regression_writing import save_regression
    from attractor.files.writing import save_tokens

__all__ = [
    "CLASSIFIERS_LAYOUT",
    "CORPUS_LAYOUT",
    "HEAD_LAYOUT",
    "LAYOUT",
    "REGRESSION_LAYOUT",
    "LoadedClassifiers",
    "LoadedCorpus",
    "LoadedHead",
    "LoadedRegression",
    "LoadedTokens",
    "load",
    "load_corpus",
    "load_head",
    "load_tokens",
    "save_classifiers",
    "save_corpus",
    "save_head",
    "save_regression",
    "save_tokens",
]

import_on_first_use(__name__)
