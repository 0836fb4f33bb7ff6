"""``check_hypotheses``: the hypotheses of the papers, checked on a user's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.console import Console
from rich.table import Table

from attractor.corpora.files.corpus import CorpusCase
from attractor.files.case import Case
from attractor.files.contents import DataSet
from attractor.papers.corpus_hypotheses import CORPUS_HYPOTHESES
from attractor.papers.files.classifiers import ClassifierCase
from attractor.papers.hypotheses import HYPOTHESES
from attractor.papers.large_prompt.head_hypotheses import HEAD_HYPOTHESES
from attractor.papers.large_prompt.in_context import IN_CONTEXT_HYPOTHESES
from attractor.papers.large_prompt.regression import REGRESSION_HYPOTHESES
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.mirror_descent.classifiers.hypotheses import CLASSIFIER_HYPOTHESES
from attractor.prompts.files.head import HeadCase
from attractor.prompts.files.in_context import InContextCase
from attractor.prompts.files.regression import RegressionCase
from attractor.results import Printed, plain_table
from attractor.support.errors import InvalidInputError

_HYPOTHESES: Mapping[type[DataSet], Sequence[Assumption]] = {
    Case: HYPOTHESES,
    CorpusCase: CORPUS_HYPOTHESES,
    HeadCase: HEAD_HYPOTHESES,
    RegressionCase: REGRESSION_HYPOTHESES,
    InContextCase: IN_CONTEXT_HYPOTHESES,
    ClassifierCase: CLASSIFIER_HYPOTHESES,
}


@dataclass(frozen=True, eq=False, repr=False)
class HypothesesTable(Printed):
    """Hypotheses, and whether data meet them.

    Attributes:
        about: Description of the data.
        rows: Name, whether it is met, and what was found.
    """

    width: ClassVar[int] = 100
    about: str
    rows: tuple[tuple[str, bool, str], ...]

    def table(self) -> Table:
        """The hypotheses as a table."""
        table = plain_table(collapse_padding=False)
        for column in (f"hypothesis on {self.about}", "met", "found"):
            table.add_column(column)
        for name, met, found in self.rows:
            table.add_row(name, "yes" if met else "no", found)
        return table

    def _print(self, console: Console) -> None:
        console.print(self.table())

    def summary(self) -> dict[str, Any]:
        """Everything as plain values of JSON."""
        met = {name: {"met": bool(met), "found": found} for name, met, found in self.rows}
        return {"about": self.about, "hypotheses": met}


def check_hypotheses(case: DataSet) -> HypothesesTable:
    """Checks every hypothesis on data that the papers have of data of that kind."""
    checks: list[tuple[str, Any]] = []
    if isinstance(case, CorpusCase):
        checks = [(each.name, each) for each in case.structure.assumptions]
    checks += [(each.name, _checked(each, case)) for each in _HYPOTHESES.get(type(case), ())]
    return HypothesesTable(case.about, tuple((name, c.met, c.found) for name, c in checks))


def _checked(hypothesis: Assumption[Any], case: DataSet) -> Check:
    """The check; not met where it cannot be made on the data, beside which others can."""
    try:
        return hypothesis.checked(case)
    except InvalidInputError as error:
        return Check(False, f"it cannot be checked: {error.argument}: {error.problem}")
