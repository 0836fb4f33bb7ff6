"""The papers' claims and figures, loaded when they are first used."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.files.case import Case
    from attractor.files.classifiers import ClassifierCase
    from attractor.files.contents import DataSet
    from attractor.files.corpus import CorpusCase
    from attractor.files.head import HeadCase
    from attractor.files.regression import RegressionCase
    from attractor.papers._data_kind import DATA_SETS
    from attractor.papers._examine import Finding, examine, examine_control
    from attractor.papers.assumption import Assumption, Check
    from attractor.papers.claim import (
        Claim,
        Claims,
        Conclusion,
        Contrast,
        Measurement,
        Outcome,
    )
    from attractor.papers.figure import PaperFigure, Reading, Request
    from attractor.papers.paper import PAPERS, Paper
    from attractor.papers.registry import (
        all_claims,
        all_figures,
        get_claim,
        get_figure,
        register_claim,
    )

__all__ = [
    "DATA_SETS",
    "PAPERS",
    "Assumption",
    "Case",
    "Check",
    "Claim",
    "Claims",
    "ClassifierCase",
    "Conclusion",
    "Contrast",
    "CorpusCase",
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
    "register_claim",
]

import_on_first_use(__name__, renamed={"DataKind": "DATA_SETS"})
