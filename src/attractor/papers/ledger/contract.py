"""What every claim and figure of a pack must answer: a pack's whole test is one parametrized test.

``@pytest.mark.parametrize("ask", questions("my-pack"), ids=str)`` stands above
``def test_my_pack(ask, tmp_path): ask(tmp_path)``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attractor.files import DataSet, load
from attractor.papers.drawing import draw
from attractor.papers.figure import PaperFigure
from attractor.papers.ledger.check import Finding, check_claim, examine
from attractor.papers.ledger.claim import Claim, Outcome
from attractor.papers.ledger.exchange import false_objects
from attractor.papers.ledger.index import listed, make_index, places_of, stored_index
from attractor.papers.ledger.packs import all_claims, get_claim, get_figure
from attractor.papers.ledger.places import places
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError

_EXAMPLES: dict[Any, DataSet] = {}


@dataclass(frozen=True)
class Question:
    """A question to a claim, a figure or a pack; it raises AssertionError where the answer is no.

    Attributes:
        name: That of the claim, the figure or the pack.
        words: What is asked.
        of: Asks it: what has the name, and a folder for files.
        find: Finds what has the name.
    """

    name: str
    words: str
    of: Callable[..., None]
    find: Callable[[str], Any]

    def __str__(self) -> str:
        """As a test's name."""
        return f"{self.name}-{self.words}"

    def __call__(self, folder: Path) -> None:
        """Asks it.

        Args:
            folder: An empty one, for files.

        Raises:
            AssertionError: If the answer is no.
        """
        self.of(self.find(self.name), folder)


def questions(paper: str | None = None) -> list[Question]:
    """All questions to the claims and figures of a paper, of a distribution, or of all.

    Args:
        paper: A paper, or a distribution that brings some; None for all.

    Raises:
        InvalidInputError: If there is no such paper or distribution.

    Example:
        >>> import attractor as at
        >>> [str(one) for one in at.papers.questions("max-margin")][:2]
        ['max-margin-index is new', 'max-margin/matrix-and-prompt-equivalence-says what it is']
    """
    check_kinds(paper=(paper, str | None))
    found = [
        Question(place, "index is new", index_is_new, str)
        for place in (places() if paper is None else places_of(paper))
    ]
    for name, claim in all_claims(paper).items():
        asked = {one.__name__.replace("_", " "): one for one in OF_CLAIMS}
        for needed in claim.broken:
            asked[f"needs {needed}"] = functools.partial(needs_assumption, assumption=needed)
        found += [Question(name, words, ask, get_claim) for words, ask in asked.items()]
    drawn = [Question(name, "is drawn", is_drawn, get_figure) for name in listed("figures", paper)]
    return found + drawn


def says_what_it_is(claim: Claim, folder: Path) -> None:
    """Its words are there, right and wrong differ in them, and each assumption can be broken."""
    assert claim.summary and len(claim.summary) < 110 and not claim.summary.endswith("."), (
        "the summary is a line of less than 110 letters, without a period"
    )
    assert claim.because, "nothing says why the bound is what it is"
    assert claim.quantity and claim.quantity != claim.wrong_quantity, "right and wrong read alike"
    assert "{" not in claim.quantity, "the docstring of the measure is no text"
    unbroken = [one.name for one in claim.given if one.breaker is None]
    assert not unbroken, f"no data break {unbroken}"
    assert type(example_of(claim)) is claim.takes, f"its data are no {claim.takes.__name__}"


def holds(claim: Claim, folder: Path) -> None:
    """It holds on its example; its wrong object, and false ones beside the right, do not."""
    case = example_of(claim)
    found = examine(claim, case)
    assert found.outcome is Outcome.HOLDS, found.reason
    control = examine(claim.exchanged(), case)
    assert control.outcome is Outcome.FAILS, f"the wrong object is not refuted: {control.reason}"
    if isinstance(claim.exchange, str) and claim.exchange != "one":
        return  # it says why no other is wrong
    angle = 0.5 if isinstance(claim.exchange, str) else claim.exchange
    outcomes = {
        words: examine(claim.about(other), case).outcome
        for words, other in false_objects(claim.object(case), angle).items()
    }
    enough = any if claim.exchange == "one" else all
    refuted = outcomes and enough(one is Outcome.FAILS for one in outcomes.values())
    assert refuted, f"objects beside the right one are not refuted: {outcomes}"


def needs_assumption(claim: Claim, folder: Path, *, assumption: str) -> None:
    """Data that break an assumption are noticed, by its name."""
    found = examine(claim, claim.broken[assumption]())
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET, found.reason
    assert found.reason.startswith(f"{assumption}: "), found.reason


def keeps_its_numbers(claim: Claim, folder: Path) -> None:
    """The same data and seed, made anew, give the same numbers to the bit."""
    first, again = claim.example(), claim.example()
    assert first.hash == again.hash, "its data are others each time"
    assert _numbers(examine(claim, first)) == _numbers(examine(claim, again))


def survives_files(claim: Claim, folder: Path) -> None:
    """Data that were saved and read give the same outcome and the same numbers."""
    case = claim.example()
    file = folder / f"data{case.kind.suffix}"
    try:
        case.save(file)
    except InvalidInputError:
        return  # no file holds all of it
    (read,) = load(file).data_sets()
    assert _numbers(examine(claim, read)) == _numbers(examine(claim, case))


def fails_as_it_says(claim: Claim, folder: Path) -> None:
    """One that is known to fail does, on its own data or on a candidate of its search."""
    if claim.known_to_fail:
        assert check_claim(claim, find_smallest=False).outcome is Outcome.FAILS


OF_CLAIMS = (says_what_it_is, holds, keeps_its_numbers, survives_files, fails_as_it_says)


def is_drawn(figure: PaperFigure, folder: Path) -> None:
    """It can be drawn at the quick size, its caption has no gaps, and its readings agree."""
    drawn = draw(figure, folder)
    wrong = [f"{one.text}: {one.value}, {one.expected}" for one in drawn.readings if not one.agrees]
    assert drawn.readings and not wrong, wrong
    assert drawn.caption and "{" not in drawn.caption, drawn.caption


def index_is_new(place: str, folder: Path) -> None:
    """An index that is stored says what one made anew does."""
    stored = stored_index(place)
    assert stored is None or stored == make_index(place), f"run write_index({place!r})"


def example_of(claim: Claim) -> Any:
    """One for all claims that take it from one function: they share what it remembers."""
    source = claim.holding or claim.on[0]
    if source not in _EXAMPLES:
        _EXAMPLES[source] = claim.example()
    return _EXAMPLES[source]


def _numbers(found: Finding) -> tuple[Any, ...]:
    both = (found.measured, found.control)
    return found.outcome, [one and (repr(one.value), one.checked) for one in both]
