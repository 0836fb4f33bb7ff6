"""``Claim``: a published statement that can be checked on data."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from attractor.files.case import Case
from attractor.files.contents import DataSet
from attractor.papers.assumption import Assumption, Data
from attractor.results.paper import Paper
from attractor.support.checks import check_items, check_kinds
from attractor.support.errors import InvalidInputError

Object = TypeVar("Object")


class Exponent(float):
    """An exponent that a statement names; one a quarter away is a wrong one."""


class Outcome(enum.Enum):
    """The outcome of a claim on data."""

    HOLDS = "holds"
    """The assumptions are met, the conclusion is measured to be true, and the control fails."""
    FAILS = "fails"
    """The assumptions are met, and the conclusion is measured to be false."""
    NOT_SETTLED = "not settled"
    """The interval of an estimate has the bound inside: more data, or a longer run, would say."""
    ASSUMPTION_NOT_MET = "assumption not met"
    """The data do not meet a hypothesis, or cannot be used: nothing was measured."""
    VACUOUS = "vacuous here"
    """Nothing on these data can tell the claim from its control, a wrong conclusion."""


@dataclass(frozen=True)
class Measurement:
    """The measurement of a conclusion.

    Attributes:
        value: The number that is compared with the tolerance; NaN where there is none, which fails.
        checked: How many items it is taken over; with 0 the claim says nothing about these data.
        details: Other numbers and words that a reader would want.
        interval: The ends of an interval for the value where that is an estimate, NaN where the
            data give none; None where the value is exact.
    """

    value: float
    checked: int = 1
    details: Mapping[str, Any] = field(default_factory=dict)
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Conclusion(Generic[Data]):
    """The conclusion of a statement, as a measurement with a tolerance.

    Attributes:
        quantity: The quantity measured, as a formula or in words.
        measure: Measures it: the data and the seed of all that is random in it.
        bound: The tolerance.
        reason: Why this tolerance.
        sense: ``"<="`` or ``">="``: on which side of the tolerance the conclusion holds.
    """

    quantity: str
    measure: Callable[[Data, int], Measurement]
    bound: float
    reason: str
    sense: Literal["<=", ">="] = "<="

    def settled_by(self, measured: Measurement) -> bool:
        """Whether a measurement can tell its value from the tolerance, on either side of it."""
        if measured.interval is None:
            return True
        low, high = measured.interval
        return low > self.bound or high < self.bound

    def met_by(self, measured: Measurement) -> bool:
        """Whether a measurement agrees with the conclusion; NaN does not."""
        if math.isnan(measured.value):
            return False
        return measured.value <= self.bound if self.sense == "<=" else measured.value >= self.bound


@dataclass(frozen=True)
class Contrast(Generic[Data]):
    """A conclusion beside a wrong one, as near to it as can be, measured by functions of their own.

    It is for a wrong one on other data or of another kind; where one function can measure both,
    ``Comparison`` shows that it is one. Where both are met the measurement cannot distinguish
    right from wrong.

    Attributes:
        quantity: The quantity of the conclusion, as a formula or in words.
        measure: Measures it: the data and the seed of all that is random in it.
        wrong_quantity: The quantity of the wrong conclusion.
        wrong_measure: Measures that.
        bound: The tolerance, of both.
        reason: Why this tolerance.
        sense: ``"<="`` or ``">="``: on which side of the tolerance the conclusion holds.
    """

    quantity: str
    measure: Callable[[Data, int], Measurement]
    wrong_quantity: str
    wrong_measure: Callable[[Data, int], Measurement]
    bound: float
    reason: str
    sense: Literal["<=", ">="] = "<="

    @property
    def conclusion(self) -> Conclusion[Data]:
        """The conclusion of the statement."""
        return Conclusion(self.quantity, self.measure, self.bound, self.reason, self.sense)

    @property
    def control(self) -> Conclusion[Data]:
        """The wrong conclusion, as a negative control."""
        return Conclusion(
            self.wrong_quantity, self.wrong_measure, self.bound, self.reason, self.sense
        )


@dataclass(frozen=True)
class Comparison(Generic[Data, Object]):
    """What a statement names, and a wrong one as near to it as can be, measured by one function.

    What it names is its object: a direction, a selection, a norm, an ``Exponent``, a constant, a
    map. Any other can be put in its place, see ``Claim.about``.

    Attributes:
        quantity: The quantity of the conclusion, as a formula or in words.
        measure: Measures it: the data, the seed of all that is random in it, and an object.
        right: Gives the object of the statement: a function of the data and the seed.
        wrong_quantity: The quantity of the wrong conclusion.
        wrong: Gives the wrong object, likewise.
        bound: The tolerance, of both.
        reason: Why this tolerance.
        sense: ``"<="`` or ``">="``: on which side of the tolerance the conclusion holds.
    """

    quantity: str
    measure: Callable[[Data, int, Object], Measurement]
    right: Callable[[Data, int], Object]
    wrong_quantity: str
    wrong: Callable[[Data, int], Object]
    bound: float
    reason: str
    sense: Literal["<=", ">="] = "<="

    @property
    def conclusion(self) -> Conclusion[Data]:
        """The conclusion of the statement."""
        return self._of(self.quantity, self.right)

    @property
    def control(self) -> Conclusion[Data]:
        """The wrong conclusion, as a negative control."""
        return self._of(self.wrong_quantity, self.wrong)

    def _of(self, quantity: str, named: Callable[[Data, int], Object]) -> Conclusion[Data]:
        def measure(data: Data, seed: int) -> Measurement:
            return self.measure(data, seed, named(data, seed))

        return Conclusion(quantity, measure, self.bound, self.reason, self.sense)


@dataclass(frozen=True)
class Claim(Generic[Data]):
    """A statement of a paper, or of folklore, with everything needed to check it on data.

    Attributes:
        name: ``paper/name``.
        paper: The paper it is from.
        statement: The statement by its subject, for citations.
        summary: A line that says what is claimed.
        assumptions: Its hypotheses on the data, checked in order before anything is measured.
        conclusion: Its conclusion.
        control: A wrong conclusion, measured the same way, which must fail: the same limit compared
            with another selection, another norm, another exponent. Where it passes too, the
            measurement cannot distinguish right from wrong, and the claim is vacuous there.
        data: The paper's data, or data of the paper's kind; a seed names what is random.
        broken: By name of an assumption, data that break it.
        holding: Data where the claim holds; the first of ``data`` if None.
        note: Remarks for readers, such as the reason for a tolerance; no part of the outcome.
        search: Candidates for counterexamples, small ones first, or None.
        takes: The class of data that it is examined on.
        comparison: What it names beside a wrong one, where one function measures both.
    """

    name: str
    paper: Paper
    statement: str
    summary: str
    assumptions: Sequence[Assumption[Data]]
    conclusion: Conclusion[Data]
    control: Conclusion[Data]
    data: Callable[[int], Sequence[Data]]
    broken: Mapping[str, Callable[[], Data]]
    holding: Callable[[], Data] | None = None
    note: str = ""
    search: Callable[[int], Sequence[Data]] | None = None
    takes: type[DataSet] = Case
    comparison: Comparison[Data, Any] | None = None

    def about(self, named: Any) -> Claim[Data]:
        """The claim with an object of yours in place of the one that its statement names.

        Args:
            named: A direction, selection, exponent ..., as the measurement takes it.

        Raises:
            InvalidInputError: If right and wrong are measured apart, so that there is none.
        """
        if self.comparison is None:
            raise InvalidInputError(
                "named",
                f"the claim {self.name} measures its wrong conclusion apart",
                "Ask a claim whose comparison is not None",
            )
        other = dataclasses.replace(self.comparison, right=lambda data, seed: named)
        return dataclasses.replace(self, conclusion=other.conclusion, comparison=other)

    @property
    def bibtex(self) -> str:
        """How to cite the statement."""
        return self.paper.bibtex(self.statement)

    def example(self) -> Data:
        """Data where the claim holds."""
        return self.data(0)[0] if self.holding is None else self.holding()


@dataclass(frozen=True)
class Claims(Generic[Data]):
    """Makes the claims of one paper about one kind of data, with the fields that they share.

    Attributes:
        paper: The paper.
        takes: The class of data that they are examined on.
        folder: Prefix of their names: the name of the paper, or of the one that it is checked
            beside.
    """

    paper: Paper
    takes: type[Data]
    folder: str = ""

    def claim(
        self,
        name: str,
        summary: str,
        *,
        statement: str,
        assuming: Sequence[Assumption[Data]],
        contrast: Contrast[Data] | Comparison[Data, Any],
        data: Callable[[int], Sequence[Data]],
        holding: Callable[[], Data] | None = None,
        note: str = "",
        search: Callable[[int], Sequence[Data]] | None = None,
    ) -> Claim[Data]:
        """A claim; see ``Claim``.

        Args:
            name: Its name, without that of the paper.
            summary: A line that says what is claimed.
            statement: The statement by its subject, for citations.
            assuming: Its hypotheses on the data, each with data that break it.
            contrast: Its conclusion beside the negative control.
            data: The paper's data, or data of the paper's kind.
            holding: Data where it holds; the first of ``data`` if None.
            note: Remarks for readers.
            search: Candidates for counterexamples, or None.

        Raises:
            InvalidInputError: If one of them is of another kind.
        """
        check_kinds(name=(name, str), summary=(summary, str), statement=(statement, str))
        check_kinds(
            contrast=(contrast, Contrast | Comparison), data=(data, Callable), note=(note, str)
        )
        check_kinds(holding=(holding, Callable | None), search=(search, Callable | None))
        assuming = tuple(check_items("assuming", assuming, Assumption))
        return Claim(
            name=f"{self.folder or self.paper.name}/{name}",
            paper=self.paper,
            statement=statement,
            summary=summary,
            assumptions=assuming,
            conclusion=contrast.conclusion,
            control=contrast.control,
            data=data,
            broken={each.name: each.breaker for each in assuming if each.breaker is not None},
            holding=holding,
            note=note,
            search=search,
            takes=self.takes,
            comparison=contrast if isinstance(contrast, Comparison) else None,
        )
