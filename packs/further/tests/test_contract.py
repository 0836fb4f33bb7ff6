"""What the library asks of its claims and figures, asked of those of this pack."""

import ast
import importlib
from pathlib import Path

import pytest
from questions import ask, ask_figure, example_of

from attractor.papers import (
    Outcome,
    all_claims,
    all_figures,
    all_statements,
    examine,
)
from packs.further.tests.adversarial import ADVERSARIAL, WITHOUT

PACK = "attractor-further"
CLAIMS, FIGURES = all_claims(PACK), all_figures(PACK)
FILES = [*Path(__file__).parents[1].rglob("*.py")]
LONG = tuple(name for name in CLAIMS if name.startswith("folklore/") and "low-rank" not in name)
"""Claims that take several seconds, and whose runs other tests look at more closely."""
TRAINING_LONG = (
    "associative-memory/loss-of-muon-falls-exponentially",
    "multiclass-descent/margin-of-adam",
    "multiclass-descent/margin-of-muon",
    "multiclass-descent/margin-of-sign-descent",
    "multiclass-descent/margin-of-sign-momentum",
    "multiclass-descent/margin-of-spectral-descent",
)
"""Claims that take longer without optimizations than it takes to compile them optimized."""
OWN_WRONG_ONE = {
    **{
        f"multiclass-descent/margin-of-normalized-{kind}": "the largest Frobenius margin is within "
        "the bound of the largest in l_3 as well"
        for kind in ("descent", "momentum")
    },
    "folklore/decaying-steps-reach-the-margin": "neighboring exponents lead there as well",
    "folklore/weight-decay-low-rank": "with twice the weight decay the rank is low as well",
    "gaussian-mixtures/one-head-gap": "no heads at all miss what one head misses",
    "gaussian-mixtures/linear-attention-gap": "linear maps of nearly anything miss it",
    "mechanics/label-mass-loss-is-convex": "a loss, beside which it brings another one",
    "linear-next-token/more-dimensions-than-contexts": "the condition is sufficient, not necessary",
    "critical-temperature/row-concentration": "an upper bound, of which twice is one as well",
}
"""Claims of which no false object is made, but the wrong one that they bring, and why."""
ONE_SIDED = {
    "critical-temperature/row-spread",
    "token-sample-complexity/sample-complexity-exponent",
}
"""Claims of bounds, so that of two neighbors the laxer one is right as well."""


def check_claim(name):
    ask(CLAIMS[name], None if name in OWN_WRONG_ONE else 0.5, one_sided=name in ONE_SIDED)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
        for name in CLAIMS
        if name not in TRAINING_LONG
    ],
)
def test_a_claim_holds_where_it_should_and_its_control_fails(name):
    check_claim(name)


@pytest.mark.long
@pytest.mark.parametrize("name", TRAINING_LONG)
def test_one_that_trains_for_long_holds_and_its_control_fails(name, optimized):
    check_claim(name)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in (*LONG, *TRAINING_LONG) else ())
        for name in ADVERSARIAL
    ],
)
def test_its_control_passes_on_adversarial_data(name):
    claim = CLAIMS[name]
    found = claim.control.measure(ADVERSARIAL[name](example_of(claim)), 0)
    assert found.checked and claim.control.met_by(found), found


def test_every_claim_has_adversarial_data_or_a_reason():
    assert not {*ADVERSARIAL} & {*WITHOUT}
    assert {*ADVERSARIAL} | {*WITHOUT} == {*CLAIMS}
    assert {*OWN_WRONG_ONE, *ONE_SIDED, *TRAINING_LONG} <= {*CLAIMS}


@pytest.mark.parametrize(
    ("name", "assumption"),
    [(name, assumption) for name, claim in CLAIMS.items() for assumption in claim.broken],
)
def test_a_claim_asks_for_each_of_its_assumptions(name, assumption):
    found = examine(CLAIMS[name], CLAIMS[name].broken[assumption]())
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET
    assert found.reason.startswith(f"{assumption}: ")


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_says_what_it_is_and_breaks_what_it_assumes(name):
    claim = CLAIMS[name]
    assert list(claim.broken) == [assumption.name for assumption in claim.assumptions]
    assert type(example_of(claim)) is claim.takes
    assert claim.summary and len(claim.summary) < 110 and not claim.summary.endswith(".")
    assert claim.conclusion.reason and claim.statement
    right, wrong = claim.conclusion, claim.control
    assert (right.quantity, right.bound, right.sense) != (wrong.quantity, wrong.bound, wrong.sense)


LONG_FIGURES = (
    "mechanics/global-convergence",
    "linear-next-token/overparameterized",
    "linear-next-token/two-dimensional",
)
"""Figures that compile for long, and whose computations other tests look at more closely."""


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.slow if one in LONG_FIGURES else ()) for one in FIGURES],
)
def test_a_quick_figure_shows_its_conclusion(name, tmp_path, optimized):
    ask_figure(FIGURES[name], tmp_path)


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
