"""Calls of ``attractor.papers``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor import papers
from fuzzing.arguments import example_files as given
from fuzzing.arguments.table import Call


def calls() -> Iterator[Call]:
    """One call of each."""
    case = {"self": given.CASE}
    yield Call(
        papers.Case.from_scores, keys=np.eye(3)[None] + 1, scores=np.array([[1.0, 0.0, 0.5]]),
        takes={"keys": "array", "scores": "array", "queries": "array none"},
        blames={
            "keys": "scores values labels", "scores": "labels values keys",
            "queries": "keys labels",
        },
    )  # fmt: skip
    yield Call(papers.Case.read, path=given.TOKEN_FILE, blames={"path": "file"})
    yield Call(papers.Case.save, **case, path="case.npz")
    yield Call(papers.Case.solution, **case)
    yield Call(papers.CorpusCase.save, self=given.CORPUS_CASE, path="corpus.npz")
    yield Call(papers.HeadCase.save, self=given.HEAD_CASE, path="head.npz")
    yield Call(papers.RegressionCase.save, self=given.REGRESSION_CASE, path="task.npz")
    yield Call(papers.ClassifierCase.save, self=given.CLASSIFIER_CASE, path="results.nc")
    yield Call(papers.Paper.bibtex, self=given.PAPER)
    yield Call(papers.PaperFigure.settings, self=given.FIGURE, size="quick")
    yield Call(papers.Request.checkpoint, self=given.REQUEST, name="run")
    yield Call(papers.all_claims)
    yield Call(papers.all_figures)
    examined = {"claim": given.CLAIM, "case": given.CASE}
    yield Call(papers.examine, **examined)
    yield Call(papers.examine_control, **examined)
    yield Call(papers.get_claim, name=given.CLAIM_NAME)
    yield Call(papers.get_figure, name=given.FIGURE_NAME)
