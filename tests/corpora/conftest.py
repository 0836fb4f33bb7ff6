import pytest

from attractor.corpora import Corpus


@pytest.fixture(scope="session")
def worked_example():
    """Subject, verb, object and full stop, as in the paper's example."""
    return Corpus.from_sentences([list("SVOP"), list("VOP"), list("OPP"), list("PSV")])
