"""What the tests ask of every claim and figure, those of packs among them."""

import dataclasses
import functools
import string

from false_objects import false_objects

from attractor.papers import Outcome, examine, examine_control
from attractor.papers.drawing import draw, read_data
from attractor.results.provenance import read_provenance


def with_all_but_conclusion_once(claim):
    """The claim, whose assumptions and control are looked at once for all runs on a case."""
    control = dataclasses.replace(claim.control, measure=functools.cache(claim.control.measure))
    assumptions = [
        dataclasses.replace(assumption, check=functools.cache(assumption.check))
        for assumption in claim.assumptions
    ]
    return dataclasses.replace(claim, control=control, assumptions=assumptions)


EXAMPLES = {}


def example_of(claim):
    """The example of a claim, one for all that take it from one function: they share work."""
    source = claim.holding or claim.data
    if source not in EXAMPLES:
        EXAMPLES[source] = claim.example()
    return EXAMPLES[source]


def ask(claim, turned_by=0.5, *, one_sided=False):
    """Asserts that a claim holds on its example, and that its control and false objects fail.

    Args:
        claim: The claim.
        turned_by: The angle that false directions are turned by; None for no false objects.
        one_sided: Whether one of the false objects has to fail, and not all.
    """
    claim = with_all_but_conclusion_once(claim)
    case = example_of(claim)
    found, control = examine(claim, case), examine_control(claim, case)
    assert found.outcome is Outcome.HOLDS, found.reason
    assert control.outcome is Outcome.FAILS, control.reason
    if turned_by is not None:
        wrong = false_objects(claim.comparison.right(case, 0), turned_by)
        outcomes = {
            words: examine(claim.about(each), case).outcome for words, each in wrong.items()
        }
        enough = any if one_sided else all
        assert outcomes and enough(each is Outcome.FAILS for each in outcomes.values()), outcomes


def ask_figure(figure, folder):
    """Asserts that a figure shows its conclusion at quick size, and writes all its files."""
    drawn = draw(figure, folder)
    wrong = [reading for reading in drawn.readings if not reading.agrees]
    assert drawn.readings and not wrong
    assert not _not_named_in_caption(figure, drawn.data)
    for kind in ("png", "svg", "nc"):
        assert read_provenance(drawn.files[kind]) == drawn.provenance
    stored = read_data(drawn.files["nc"])
    written = f"{figure.caption(stored)}\n\n{figure.bibtex}\n"
    assert drawn.files["txt"].read_text() == written


def _not_named_in_caption(figure, data):
    """Keys of numbers that stand for nothing in the caption, as published or not."""
    caption = figure.caption
    words = caption.template + (caption.artifact.caption if caption.artifact else "")
    fields = [field for _, field, _, _ in string.Formatter().parse(words) if field]
    return set(figure.readings(data).values) - {field.split("[")[0] for field in fields}
