"""Former names of the values of ``Claim.takes``, which are classes now."""

from types import SimpleNamespace

from attractor.files import Case, ClassifierCase, CorpusCase, HeadCase, RegressionCase

DATA_SETS = SimpleNamespace(
    TOKENS=Case,
    CORPUS=CorpusCase,
    HEAD=HeadCase,
    REGRESSION=RegressionCase,
    CLASSIFIERS=ClassifierCase,
)
"""Classes of data by the names that values of ``Claim.takes`` once had."""
