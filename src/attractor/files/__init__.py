"""The files that users keep data in: tokens, corpora, heads, regression tasks, results."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.files.case import Case
    from attractor.files.classifiers import CLASSIFIERS_LAYOUT, ClassifierCase, save_classifiers
    from attractor.files.contents import ArrayFile, DataSet, FileContents
    from attractor.files.corpus import CORPUS_LAYOUT, CorpusCase, save_corpus
    from attractor.files.head import HEAD_LAYOUT, HeadCase, save_head
    from attractor.files.reading import load, load_corpus, load_head, load_tokens, register_file
    from attractor.files.regression import REGRESSION_LAYOUT, RegressionCase, save_regression
    from attractor.files.token_file import LAYOUT, LoadedTokens, save_tokens

__all__ = [
    "CLASSIFIERS_LAYOUT",
    "CORPUS_LAYOUT",
    "HEAD_LAYOUT",
    "LAYOUT",
    "REGRESSION_LAYOUT",
    "ArrayFile",
    "Case",
    "ClassifierCase",
    "CorpusCase",
    "DataSet",
    "FileContents",
    "HeadCase",
    "LoadedTokens",
    "RegressionCase",
    "load",
    "load_corpus",
    "load_head",
    "load_tokens",
    "register_file",
    "save_classifiers",
    "save_corpus",
    "save_head",
    "save_regression",
    "save_tokens",
]

import_on_first_use(
    __name__,
    renamed={
        "LoadedClassifiers": "ClassifierCase",
        "LoadedCorpus": "CorpusCase",
        "LoadedHead": "HeadCase",
        "LoadedRegression": "RegressionCase",
    },
)
