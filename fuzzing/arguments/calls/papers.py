"""Calls of ``attractor.papers``."""

from __future__ import annotations

from collections.abc import Iterator

from attractor import papers
from fuzzing.arguments import example_files as given
from fuzzing.arguments.table import Call


def calls() -> Iterator[Call]:
    """One call of each."""
    yield Call(papers.Paper.bibtex, self=given.PAPER)
    yield Call(papers.PaperFigure.settings, self=given.FIGURE, size="quick")
    yield Call(papers.Request.checkpoint, self=given.REQUEST, name="run")
    yield Call(papers.all_claims)
    yield Call(papers.all_figures)
    yield Call(papers.all_statements)
    examined = {"claim": given.CLAIM, "case": given.CASE}
    yield Call(papers.examine, **examined)
    yield Call(papers.check_claim, claim=given.CLAIM, cases=given.CASES)
    yield Call(papers.get_claim, name=given.CLAIM_NAME)
    yield Call(
        papers.Claim.about,
        self=given.CLAIM,
        named=1.0,
        skip={"named": "anything that the measurement takes"},
    )
    yield Call(papers.Assumption.broken_by, self=given.ASSUMPTION, breaker=dict)
    yield Call(
        papers.Assumption.negated, self=given.ASSUMPTION, name="no", statement="no", breaker=dict
    )
    yield Call(
        papers.Claims.claim, self=given.CLAIMS, name="made-up", summary="nothing",
        statement="nothing", assuming=(), contrast=given.CONTRAST, data=lambda seed: [],
        takes={"assuming": "sequence array"}, skip={"exchange": "a number, or words"},
    )  # fmt: skip
    yield Call(papers.assumption, name="met", broken=dict)
    yield Call(papers.draws, count=2, make=dict)
    yield Call(papers.once, compute=dict)
    yield Call(papers.questions, paper="max-margin")
    yield Call(papers.get_figure, name=given.FIGURE_NAME)
