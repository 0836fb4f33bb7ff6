"""Which hypotheses of the papers a user's data meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from attractor.papers.case import Case
from attractor.papers.classifier_case import ClassifierCase
from attractor.papers.corpus_case import CorpusCase
from attractor.papers.corpus_hypotheses import CORPUS_HYPOTHESES
from attractor.papers.data_set import DataSet
from attractor.papers.head_case import HeadCase
from attractor.papers.hypotheses import HYPOTHESES
from attractor.papers.large_prompt.head_hypotheses import HEAD_HYPOTHESES
from attractor.papers.large_prompt.regression_hypotheses import REGRESSION_HYPOTHESES
from attractor.papers.mirror_descent.classifiers.hypotheses import CLASSIFIER_HYPOTHESES
from attractor.papers.regression_case import RegressionCase
from attractor.records import Printed


@dataclass(frozen=True, eq=False, repr=False)
class HypothesesTable(Printed):
    """Hypotheses, and whether data meet them.

    Attributes:
        about: What the data are.
        rows: Name, whether it is met, and what was found.
    """

    width: ClassVar[int] = 100
    about: str
    rows: tuple[tuple[str, bool, str], ...]

    def table(self) -> Table:
        """The hypotheses as a table."""
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
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
    if isinstance(case, CorpusCase):
        of_corpora = [(each.name, each.check(case)) for each in CORPUS_HYPOTHESES]
        checks = [*((each.name, each) for each in case.structure.assumptions), *of_corpora]
    elif isinstance(case, HeadCase):
        checks = [(each.name, each.check(case)) for each in HEAD_HYPOTHESES]
    elif isinstance(case, RegressionCase):
        checks = [(each.name, each.check(case)) for each in REGRESSION_HYPOTHESES]
    elif isinstance(case, ClassifierCase):
        checks = [(each.name, each.check(case)) for each in CLASSIFIER_HYPOTHESES]
    else:
        assert isinstance(case, Case)
        checks = [(each.name, each.check(case)) for each in HYPOTHESES]
    return HypothesesTable(case.about, tuple((name, c.met, c.found) for name, c in checks))
