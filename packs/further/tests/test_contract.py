"""What the contract asks of the claims and figures of this pack, in the tier that it is for."""

import ast
import importlib
from pathlib import Path

import pytest

from attractor.papers import all_claims, all_figures, all_statements, questions
from packs.further.tests.adversarial import ADVERSARIAL, WITHOUT

PACK = "attractor-further"
CLAIMS, FIGURES = all_claims(PACK), all_figures(PACK)
FILES = [*Path(__file__).parents[1].rglob("*.py")]
SLOW = (
    *(name for name in CLAIMS if name.startswith("folklore/") and "low-rank" not in name),
    "mechanics/global-convergence",
    "linear-next-token/overparameterized",
    "linear-next-token/two-dimensional",
)
"""What takes several seconds or compiles for long, and whose runs other tests look at closely."""
TRAINING_LONG = (
    "associative-memory/loss-of-muon-falls-exponentially",
    "multiclass-descent/margin-of-adam",
    "multiclass-descent/margin-of-muon",
    "multiclass-descent/margin-of-sign-descent",
    "multiclass-descent/margin-of-sign-momentum",
    "multiclass-descent/margin-of-spectral-descent",
)
"""Claims that take longer without optimizations than it takes to compile them optimized."""
QUICK = ("says what it is", "needs ", "index is new")
"""Questions that compute little."""


def asked(training):
    """The questions about what trains for long, or about all else, with their tiers."""
    for ask in questions(PACK):
        if (ask.name in TRAINING_LONG) is training:
            marks = [pytest.mark.slow] if ask.name in SLOW else [pytest.mark.long]
            quick = ask.words.startswith(QUICK)
            yield pytest.param(ask, id=str(ask), marks=() if quick else marks)


@pytest.mark.parametrize("ask", [*asked(training=False)])
def test_it_answers(ask, tmp_path):
    ask(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("ask", [*asked(training=True)])
def test_what_trains_for_long_answers(ask, tmp_path, optimized):
    ask(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in (*SLOW, *TRAINING_LONG) else ())
        for name in ADVERSARIAL
    ],
)
def test_its_wrong_object_passes_on_adversarial_data(name):
    claim = CLAIMS[name]
    found = claim.exchanged().measured(ADVERSARIAL[name](claim.example()))
    assert found.checked and claim.met_by(found), found


def test_every_claim_has_adversarial_data_or_a_reason():
    assert not {*ADVERSARIAL} & {*WITHOUT}
    assert {*ADVERSARIAL} | {*WITHOUT} == {*CLAIMS}
    assert {*SLOW} <= {*CLAIMS, *FIGURES} and {*TRAINING_LONG} <= {*CLAIMS}


def test_statements_name_every_claim_and_figure():
    statements = all_statements(PACK)
    assert {name for one in statements for name in one.claims} == {*CLAIMS}
    assert {name for one in statements for name in one.figures} == {*FIGURES}
    for one in statements:
        assert one.claims or one.figures or one.missing
        assert 0 < len(one.subject) < 100 and not one.subject.endswith(".")


NUMBERS = {
    "linear-next-token": "Proposition 1; Lemma 1; Theorem 1; Lemma 2; Theorem 2; Appendix C",
    "gaussian-mixtures": "Proposition 2.1; Theorem 3.1; Theorem 3.3; Proposition 3.4; "
    "Theorem 3.5; Theorem 3.6",
    "trained-linear-models": "Theorem 4.1; Theorem 4.2",
}


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_number_of_a_paper_is_there_in_its_order(paper):
    found = [one.number for one in all_statements(paper) if one.number]
    assert found == NUMBERS[paper].split("; ")


def test_what_has_two_papers_is_cited_from_each():
    of_one = {
        name for name, claim in CLAIMS.items() if claim.paper.name == "preconditioned-descent"
    }
    assert of_one == {*all_claims("preconditioned-descent")}
    assert of_one < {*all_claims("trained-linear-models")}


def test_a_paper_that_is_not_on_arxiv_is_cited_without_a_number():
    claim = CLAIMS["gaussian-mixtures/mixture-attention"]
    assert claim.paper.citation.endswith("selective when it must")
    assert "eprint" not in claim.bibtex and "attention over a Gaussian mixture" in claim.bibtex


def names_taken(file):
    """Packages of the library that a file imports from, each with the name taken."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names if one.name.startswith("attractor."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attractor":
            yield from ((node.module, one.name) for one in node.names)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_only_public_names_of_the_library_are_used(file):
    """A name is public if the ``__init__`` of the package that it is taken from lists it."""
    for package, name in names_taken(file):
        module = importlib.import_module(package)
        assert name in getattr(module, "__all__", ()), f"{name} is no public name of {package}"
        assert Path(module.__file__).name == "__init__.py", f"{package} is a module"
