"""Claims whose right and wrong objects are measured by functions written beside their words.

It makes the claims of the papers that are not declared by ``Ledger``; new ones are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from attractor.papers.ledger.claim import (
    Assumption,
    Claim,
    Data,
    Exponent as Exponent,
    Measurement,
    Outcome as Outcome,
    worded,
)
from attractor.results.paper import Paper
from attractor.support.checks import check_items, check_kinds

Object = TypeVar("Object")


@dataclass(frozen=True)
class Comparison(Generic[Data, Object]):
    """What a statement names, and a wrong one as near to it as can be, measured by one function.

    Attributes:
        quantity: The quantity of the conclusion, as a formula or in words.
        measure: Measures it: the data, the seed of all that is random in it, and an object.
        right: Gives the object of the statement: a function of the data and the seed.
        wrong_quantity: The quantity of the wrong conclusion.
        wrong: Gives the wrong object, likewise.
        bound: The bound of both.
        reason: Why this bound.
        sense: ``"<="`` or ``">="``: on which side of the bound the conclusion holds.
    """

    quantity: str
    measure: Callable[[Data, int, Object], Measurement]
    right: Callable[[Data, int], Object]
    wrong_quantity: str
    wrong: Callable[[Data, int], Object]
    bound: float
    reason: str
    sense: Literal["<=", ">="] = "<="


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
        contrast: Comparison[Data, Any],
        data: Callable[[int], Sequence[Data]],
        holding: Callable[[], Data] | None = None,
        note: str = "",
        search: Callable[[int], Sequence[Data]] | None = None,
        exchange: float | str = 0.5,
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
            exchange: How objects beside the right one are wrong.

        Raises:
            InvalidInputError: If one of them is of another kind.
        """
        check_kinds(name=(name, str), summary=(summary, str), statement=(statement, str))
        check_kinds(contrast=(contrast, Comparison), data=(data, Callable), note=(note, str))
        check_kinds(holding=(holding, Callable | None), search=(search, Callable | None))

        def measure(case: Data, named: Any, seed: int) -> Measurement:
            return contrast.measure(case, seed, named)

        def right(case: Data, seed: int) -> Any:
            return contrast.right(case, seed)

        def wrong(case: Data, seed: int) -> Any:
            return contrast.wrong(case, seed)

        return Claim(
            name=f"{self.folder or self.paper.name}/{name}",
            paper=self.paper,
            summary=summary,
            measure=worded("{}", measure),
            right=worded(contrast.quantity, right),
            wrong=worded(contrast.wrong_quantity, wrong),
            bound=contrast.bound,
            sense=contrast.sense,
            because=contrast.reason,
            given=tuple(check_items("assuming", assuming, Assumption)),
            on=(data,),
            takes=self.takes,
            statement=statement,
            note=note,
            search=search,
            holding=holding,
            exchange=exchange,
        )
