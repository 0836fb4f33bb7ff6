"""The papers' claims and figures, loaded when they are first used."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.papers._examine import Finding, examine, examine_control
    from attractor.papers.assumption import Assumption, Check
    from attractor.papers.case import Case
    from attractor.papers.claim import Claim, Conclusion, Measurement, Outcome
    from attractor.papers.classifier_case import ClassifierCase
    from attractor.papers.corpus_case import CorpusCase
    from attractor.papers.data_set import DataKind, DataSet
    from attractor.papers.figure import PaperFigure, Reading, Request
    from attractor.papers.head_case import HeadCase
    from attractor.papers.paper import PAPERS, Paper
    from attractor.papers.registry import all_claims, all_figures, get_claim, get_figure
    from attractor.papers.regression_case import RegressionCase

__all__ = [
    "PAPERS",
    "Assumption",
    "Case",
    "Check",
    "Claim",
    "ClassifierCase",
    "Conclusion",
    "CorpusCase",
    "DataKind",
    "DataSet",
    "Finding",
    "HeadCase",
    "Measurement",
    "Outcome",
    "Paper",
    "PaperFigure",
    "Reading",
    "RegressionCase",
    "Request",
    "all_claims",
    "all_figures",
    "examine",
    "examine_control",
    "get_claim",
    "get_figure",
]

import_on_first_use(__name__)
