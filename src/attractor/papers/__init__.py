"""The papers' claims and figures, loaded when they are first used."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.corpora.files.corpus import CorpusCase as CorpusCase
    from attractor.files.case import Case as Case
    from attractor.files.contents import DataSet as DataSet
    from attractor.papers._examine import (
        Finding as Finding,
        examine as examine,
        examine_control as examine_control,
    )
    from attractor.papers.assumption import Assumption as Assumption, Check as Check
    from attractor.papers.claim import (
        Claim as Claim,
        Claims as Claims,
        Comparison as Comparison,
        Conclusion as Conclusion,
        Contrast as Contrast,
        Exponent as Exponent,
        Measurement as Measurement,
        Outcome as Outcome,
    )
    from attractor.papers.figure import (
        Figures as Figures,
        PaperFigure as PaperFigure,
        Reading as Reading,
        Readings as Readings,
        Request as Request,
        at_least as at_least,
        at_most as at_most,
        by_size as by_size,
        stacked as stacked,
    )
    from attractor.papers.files.classifiers import (
        CLASSIFIERS_LAYOUT as CLASSIFIERS_LAYOUT,
        ClassifierCase as ClassifierCase,
        save_classifiers as save_classifiers,
    )
    from attractor.papers.ledger.packs import (
        all_claims as all_claims,
        all_figures as all_figures,
        get_claim as get_claim,
        get_figure as get_figure,
    )
    from attractor.papers.once import once_a_case as once_a_case
    from attractor.papers.statement import Statement as Statement, all_statements as all_statements
    from attractor.prompts.files.head import HeadCase as HeadCase
    from attractor.prompts.files.in_context import InContextCase as InContextCase
    from attractor.prompts.files.regression import RegressionCase as RegressionCase
    from attractor.results.paper import MECHANICS as MECHANICS, PAPERS as PAPERS, Paper as Paper

import_on_first_use(__name__)
