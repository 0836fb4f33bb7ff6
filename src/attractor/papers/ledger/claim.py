"""``Ledger``: published statements, each a measurement that tells right from wrong."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Self,
    TypeVar,
)

from attractor.files.contents import DataSet
from attractor.papers.ledger.places import subject
from attractor.results.paper import Paper
from attractor.support.checks import check_count, check_items, check_kinds
from attractor.support.errors import InvalidInputError

Data = TypeVar("Data", bound=DataSet)
Function = TypeVar("Function", bound=Callable[..., Any])
_Further = ParamSpec("_Further")
_Found = TypeVar("_Found")


class Exponent(float):
    """An exponent that a statement names; one a quarter away is a wrong one."""


class Outcome(enum.Enum):
    """The outcome of a claim on data."""

    HOLDS = "holds"
    """The assumptions are met, the right object is within the bound, and the wrong one is not."""
    FAILS = "fails"
    """The assumptions are met, and the right object is beyond the bound."""
    NOT_SETTLED = "not settled"
    """The interval of an estimate has the bound inside: more data, or a longer run, would say."""
    ASSUMPTION_NOT_MET = "assumption not met"
    """The data do not meet a hypothesis, or cannot be used: nothing was measured."""
    VACUOUS = "vacuous here"
    """Nothing on these data can tell the right object from the wrong one."""


@dataclass(frozen=True)
class Measurement:
    """What a claim measures; a number stands for one alone, ``(number, details)`` for two.

    Attributes:
        value: The number that is compared with the bound; NaN where there is none, which fails.
        checked: How many items it is taken over; with 0 the claim says nothing about these data.
        details: Other numbers and words that a reader would want.
        interval: The ends of an interval for the value where that is an estimate, NaN where the
            data give none; None where the value is exact.
    """

    value: float
    checked: int = 1
    details: Mapping[str, Any] = field(default_factory=dict)
    interval: tuple[float, float] | None = None

    def settles(self, bound: float) -> bool:
        """Whether it can tell its value from a bound, on either side of it."""
        return self.interval is None or self.interval[0] > bound or self.interval[1] < bound


class Check(NamedTuple):
    """Whether data meet an assumption, and the quantities that decide it, in words."""

    met: bool
    found: str


@dataclass(frozen=True)
class Assumption(Generic[Data]):
    """A hypothesis of statements, as a check that runs on data.

    Attributes:
        name: A few words, by which it is known: ``"unique optimum"``.
        statement: The hypothesis, in a sentence.
        check: Decides it on data: ``(met, found)``, as a ``Check``.
        breaker: Data that break it and meet what is usually assumed before it.
    """

    name: str
    statement: str
    check: Callable[[Data], tuple[bool, str]]
    breaker: Callable[[], Data] | None = None

    def checked(self, case: Data) -> Check:
        """Its check on data."""
        return Check(*self.check(case))

    def broken_by(self, breaker: Callable[[], Data]) -> Self:
        """The same assumption with other data that break it: some that meet those beside it."""
        check_kinds(breaker=(breaker, Callable))
        return replace(self, breaker=breaker)

    def negated(self, name: str, statement: str, breaker: Callable[[], Data]) -> Assumption[Data]:
        """The opposite assumption, whose check finds the same."""
        check_kinds(name=(name, str), statement=(statement, str), breaker=(breaker, Callable))

        def check(case: Data) -> Check:
            met, found = self.check(case)
            return Check(not met, found)

        return Assumption(name, statement, check, breaker)


def assumption(
    name: str, broken: Callable[[], Any] | None = None
) -> Callable[[Callable[[Any], tuple[bool, str]]], Assumption[Any]]:
    """Makes an assumption of the function below, whose docstring is its statement.

    Args:
        name: A few words, by which it is known.
        broken: Makes data that break it.
    """
    check_kinds(name=(name, str), broken=(broken, Callable | None))
    return lambda check: Assumption(name, inspect.getdoc(check) or "", check, broken)


def worded(words: str, of: Function) -> Function:
    """The function with words for what it returns, as its docstring would give them."""

    @functools.wraps(of)
    def same(*args: Any, **kwargs: Any) -> Any:
        return of(*args, **kwargs)

    same.__doc__ = words
    return same  # pyright: ignore[reportReturnType]


def draws(
    count: int, make: Callable[..., Any], *args: Any, **kwargs: Any
) -> Callable[[int], list[Any]]:
    """Makes data of as many seeds, from the one that is given on.

    Args:
        count: How many seeds.
        make: Makes one data set, or a list, of a seed and what follows here.
        *args: Its further arguments.
        **kwargs: Those by name.
    """
    count = check_count("count", count)
    check_kinds(make=(make, Callable))
    return lambda seed: [
        one
        for number in range(seed, seed + count)
        for one in _listed(make(number, *args, **kwargs))
    ]


def once(
    compute: Callable[Concatenate[Data, _Further], _Found],
) -> Callable[Concatenate[Data, _Further], _Found]:
    """Makes a function of a case compute once for it and further arguments, which are hashed.

    Assumptions and measures that need the same solution or run share it so.
    """
    check_kinds(compute=(compute, Callable))

    @functools.wraps(compute)
    def remembered(case: Data, *args: _Further.args, **kwargs: _Further.kwargs) -> _Found:
        key = (compute, args, tuple(sorted(kwargs.items())))
        return case.once(key, lambda: compute(case, *args, **kwargs))

    return remembered


@dataclass(frozen=True)
class Claim(Generic[Data]):
    """A statement of a paper, or of folklore, with everything needed to check it on data.

    Attributes:
        name: ``paper/name``.
        paper: The paper it is from.
        summary: A line that says what is claimed.
        measure: Measures how far data are from an object: a direction, a selection, a norm, an
            ``Exponent``, a constant, a map.
        right: The object that the statement names: a function of the data, or it itself.
        wrong: One as near to it as can be, of which the same measurement must fail. Where it does
            not, nothing on these data tells right from wrong, and the claim is vacuous there.
        bound: The bound of both.
        sense: On which side of the bound the statement holds.
        because: Why this bound.
        given: Its hypotheses, checked in order before anything is measured.
        on: Makers of the paper's data, or of data of the paper's kind.
        takes: The class of these data.
        statement: The statement by its subject, for citations.
        note: Remarks for readers; no part of the outcome. A claim that is known to fail says
            here that it ``fails``, and where.
        search: Makes candidates for counterexamples, small ones first; None for none.
        holding: Makes data where it holds; the first that are made if None.
        exchange: How objects beside the right one are wrong: by an angle, for directions; ``"one"``
            if one of two neighbors is right as well; or, in words, why none but ``wrong`` is.
    """

    listed_as: ClassVar[str] = "claims"
    name: str
    paper: Paper
    summary: str
    measure: Callable[..., Any]
    right: Any
    wrong: Any
    bound: float
    sense: Literal["<=", ">="]
    because: str
    given: tuple[Assumption[Data], ...]
    on: tuple[Callable[..., Any], ...]
    takes: type[Data]
    statement: str
    note: str = ""
    search: Callable[..., Sequence[Data]] | None = None
    holding: Callable[[], Data] | None = None
    exchange: float | str = 0.5

    @property
    def declared(self) -> dict[str, Claim[Data]]:
        """Itself by its name, as its module's list has it."""
        return {self.name: self}

    @property
    def quantity(self) -> str:
        """What is measured, with the right object."""
        return _words(self.measure).replace("{}", _words(self.right))

    @property
    def wrong_quantity(self) -> str:
        """What is measured, with the wrong one."""
        return _words(self.measure).replace("{}", _words(self.wrong))

    @property
    def known_to_fail(self) -> bool:
        """Whether its note says so."""
        return self.note.startswith("fails")

    @property
    def broken(self) -> dict[str, Callable[[], Data]]:
        """By name of an assumption, what makes data that break it."""
        return {one.name: one.breaker for one in self.given if one.breaker is not None}

    @property
    def bibtex(self) -> str:
        """How to cite the statement."""
        return self.paper.bibtex(self.statement)

    def data(self, seed: int = 0) -> list[Data]:
        """The paper's data, or data of the paper's kind; a seed names what is random."""
        return [one for maker in self.on for one in _listed(_called(maker, seed))]

    def example(self) -> Data:
        """Data where the claim holds."""
        return _listed(_called(self.holding or self.on[0], 0))[0]

    def about(self, named: Any) -> Claim[Data]:
        """The claim with an object of yours in place of the one that its statement names.

        Args:
            named: A direction, selection, exponent ..., as the measurement takes it.
        """
        return replace(self, right=worded("what was given", lambda case: named))

    def exchanged(self) -> Claim[Data]:
        """The claim with its wrong object in place of the right one: it must fail."""
        return replace(self, right=self.wrong, wrong=self.right)

    def object(self, case: Data, seed: int = 0) -> Any:
        """The object that the statement names on data."""
        return _called(self.right, seed, case) if callable(self.right) else self.right

    def measured(self, case: Data, seed: int = 0) -> Measurement:
        """The measurement of that object."""
        found = _called(self.measure, seed, case, self.object(case, seed))
        if isinstance(found, tuple):
            return Measurement(float(found[0]), details=found[1])
        return found if isinstance(found, Measurement) else Measurement(float(found))

    def met_by(self, measured: Measurement) -> bool:
        """Whether a measurement is within the bound; NaN is not."""
        return measured.value <= self.bound if self.sense == "<=" else measured.value >= self.bound


class Ledger(Generic[Data]):
    """The claims of one module, all of one paper about one kind of data; a decorator of measures.

    A measure takes data and an object, and the seed if one of its parameters is called ``seed``; so
    do the functions that give the objects, of data alone. The docstring of a measure says what it
    measures, with ``{}`` for the object; that of the functions which give the right and the wrong
    one says what these are.

    Args:
        paper: The paper.
        takes: The class of data.
        prefix: The first part of the claims' names; default: the name of the paper.

    Example:
        >>> import attractor as at
        >>> claim = at.papers.Ledger(at.papers.PAPERS["max-margin"], at.papers.Case)
        >>> @claim("tokens-stay", "the best token of each row stays where it is",
        ...        right=0, wrong=1, at_most=0, because="a count", on=lambda: [])
        ... def moved(case, number):
        ...     '''Distance of the number of moved tokens from {}.'''
        ...     return abs(0 - number)
        >>> claim.claims["max-margin/tokens-stay"].quantity
        'distance of the number of moved tokens from 0'
    """

    listed_as: ClassVar[str] = "claims"

    def __init__(self, paper: Paper, takes: type[Data], prefix: str = "") -> None:
        check_kinds(paper=(paper, Paper), takes=(takes, type), prefix=(prefix, str))
        self.paper, self.takes, self.prefix = paper, takes, prefix or paper.name
        self.claims: dict[str, Claim[Data]] = {}

    @property
    def declared(self) -> dict[str, Claim[Data]]:
        """Its claims by name."""
        return self.claims

    def __call__(
        self,
        name: str,
        summary: str,
        *,
        right: Any,
        wrong: Any,
        at_most: float | None = None,
        at_least: float | None = None,
        because: str,
        on: Callable[..., Any] | Sequence[Callable[..., Any]],
        given: Sequence[Assumption[Data]] = (),
        statement: str = "",
        **more: Any,
    ) -> Callable[[Function], Function]:
        """Declares a claim of the function below.

        Args:
            name: Its name, without that of the paper.
            summary: A line that says what is claimed.
            right: See ``Claim``, as for all others.
            wrong: See there.
            at_most: The bound, where the statement holds below it.
            at_least: The bound, where the statement holds above it.
            because: See there.
            on: One maker of data or several.
            given: See there.
            statement: Default: the subject of the entry of ``statements.toml`` that names the
                claim, else the summary.
            **more: ``note``, ``search``, ``holding``, ``exchange``; see there.

        Raises:
            InvalidInputError: If there are two bounds, or none, another claim of the module has the
                name, or the function does not take data and an object.
        """
        check_kinds(name=(name, str), summary=(summary, str), because=(because, str))
        given = tuple(check_items("given", given, Assumption))
        full = f"{self.prefix}/{name}"
        if full in self.claims:
            raise InvalidInputError("name", f"{full} is declared twice", "Give it another name")
        if at_most is not None and at_least is None:
            bound, sense = at_most, "<="
        elif at_least is not None and at_most is None:
            bound, sense = at_least, ">="
        else:
            raise InvalidInputError("at_most", f"{full} has no bound or two", "Give one")
        makers = (on,) if callable(on) else tuple(check_items("on", on, Callable))
        if not makers:
            raise InvalidInputError("on", f"{full} has no data", "Give a function that makes some")

        def declare(measure: Function) -> Function:
            _check_measure(full, measure)
            self.claims[full] = Claim(
                full, self.paper, summary, measure, right, wrong, bound, sense, because, given,
                makers, self.takes, statement or subject(full) or summary, **more,
            )  # fmt: skip
            return measure

        return declare


def _check_measure(name: str, measure: Callable[..., Any]) -> None:
    seed = {"seed": 0} if _takes_seed(measure) else {}
    try:
        inspect.signature(measure).bind(None, None, **seed)
    except TypeError as error:
        raise InvalidInputError(
            "measure", f"that of {name} does not take data and an object: {error}",
            "Give a function of (case, object), and of the seed if it is called so",
        ) from None  # fmt: skip


@functools.cache
def _takes_seed(function: Callable[..., Any]) -> bool:
    try:
        return "seed" in inspect.signature(function).parameters
    except ValueError:  # of some functions of Python's own
        return False


def _called(function: Callable[..., Any], seed: int, *given: Any) -> Any:
    """The value of a function, which gets the seed if one of its parameters is called so."""
    return function(*given, seed=seed) if _takes_seed(function) else function(*given)


def _listed(made: Any) -> list[Any]:
    return list(made) if isinstance(made, list | tuple) else [made]


def _words(of: Any) -> str:
    """The words of a docstring, without its period and capital letter; a constant as it is."""
    if not callable(of):
        return f"{of:g}" if isinstance(of, float) else str(of)
    words = inspect.getdoc(of) or getattr(of, "__name__", "")
    text = " ".join(words.partition("\n\n")[0].split()).removesuffix(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
