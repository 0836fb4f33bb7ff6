"""Every statement of the papers has what checks it, or words on what is missing."""

import pytest

from attractor.papers import PAPERS, all_claims, all_figures, all_statements
from attractor.papers.statement import by_paper
from attractor.support.errors import InvalidInputError

OWN = "attractor"
STATEMENTS = all_statements(OWN)


@pytest.mark.parametrize("one", STATEMENTS, ids=lambda one: f"{one.paper.name}: {one.subject}")
def test_names_what_there_is_and_is_not_silent(one):
    assert set(one.claims) <= set(all_claims()) and set(one.figures) <= set(all_figures())
    assert one.claims or one.figures or one.missing
    assert 0 < len(one.subject) < 100 and not one.subject.endswith(".")


def test_every_claim_figure_and_paper_is_among_them():
    assert {name for one in STATEMENTS for name in one.claims} == {*all_claims(OWN)}
    assert {name for one in STATEMENTS for name in one.figures} == {*all_figures(OWN)}
    assert {one.paper for one in STATEMENTS} == {*PAPERS.values()}


NUMBERS = {
    "next-token": "Assumptions 1 to 3; Proposition 1 (a), Lemma 1; Proposition 1 (b); "
    "Proposition 1 (c); Lemma 2; Lemma 3; Corollary 1; Lemma 4; Lemma 5; Lemma 6; Lemma 7; "
    "Theorem 1; Theorem 2 (a); Theorem 2 (b); Proposition 2; Theorem 3 (a); Theorem 3 (b); "
    "Example 1; Example 2; Figure 1; Figure 2",
    "large-prompt": "Lemma 2.1; Proposition 3.1; Assumption 3.3; Proposition 3.4; Assumption 4.2; "
    "Theorem 4.3; Item 5.1; Theorem 5.2; Lemma D.1, Corollary D.3; Lemma F.1",
}


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_number_of_a_paper_is_there_in_its_order(paper):
    found = [one.number for one in STATEMENTS if one.paper.name == paper and one.number]
    assert found == NUMBERS[paper].split("; ")


def test_those_of_a_paper_are_of_it_alone_where_none_is_checked_beside_it():
    assert [paper.name for paper in by_paper(all_statements("next-token"))] == ["next-token"]
    with pytest.raises(InvalidInputError, match="no paper 'nobody'"):
        all_statements("nobody")


def test_figures_and_tables_come_last():
    for those in by_paper(STATEMENTS).values():
        kinds = [one.is_experiment for one in those]
        assert kinds == sorted(kinds)
