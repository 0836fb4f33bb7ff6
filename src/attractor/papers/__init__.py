"""The papers' claims and figures, loaded when they are first used."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.corpora.files.corpus import CorpusCase as CorpusCase
    from attractor.files.case import Case as Case
    from attractor.files.contents import DataSet as DataSet
    from attractor.papers.claim import Claims as Claims, Comparison as Comparison
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
    from attractor.papers.ledger.check import (
        ClaimResult as ClaimResult,
        Finding as Finding,
        check_claim as check_claim,
        examine as examine,
    )
    from attractor.papers.ledger.claim import (
        Assumption as Assumption,
        Check as Check,
        Claim as Claim,
        Exponent as Exponent,
        Ledger as Ledger,
        Measurement as Measurement,
        Outcome as Outcome,
        assumption as assumption,
        draws as draws,
        once as once,
    )
    from attractor.papers.ledger.contract import Question as Question, questions as questions
    from attractor.papers.ledger.exchange import false_objects as false_objects
    from attractor.papers.ledger.packs import (
        all_claims as all_claims,
        all_figures as all_figures,
        get_claim as get_claim,
        get_figure as get_figure,
        write_index as write_index,
    )
    from attractor.papers.statement import Statement as Statement, all_statements as all_statements
    from attractor.prompts.files.head import HeadCase as HeadCase
    from attractor.prompts.files.in_context import InContextCase as InContextCase
    from attractor.prompts.files.regression import RegressionCase as RegressionCase
    from attractor.results.paper import MECHANICS as MECHANICS, PAPERS as PAPERS, Paper as Paper

import_on_first_use(__name__)
