"""What ``Claim.takes`` took before it took classes: their names, for those who wrote them."""

from types import SimpleNamespace

from attractor.files import Case, ClassifierCase, CorpusCase, HeadCase, RegressionCase

DATA_SETS = SimpleNamespace(
    TOKENS=Case,
    CORPUS=CorpusCase,
    HEAD=HeadCase,
    REGRESSION=RegressionCase,
    CLASSIFIERS=ClassifierCase,
)
