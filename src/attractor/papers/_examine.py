"""``examine``: the outcome of a claim on data, always computed and never stored."""

from __future__ import annotations

import dataclasses
import math

from attractor.files.contents import DataSet
from attractor.papers.assumption import Check
from attractor.papers.claim import Claim, Measurement, Outcome
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed, seeded


@dataclasses.dataclass(frozen=True)
class Finding:
    """The outcome of a claim on one data set, with all that decided it.

    Attributes:
        claim: The claim.
        case: The data.
        outcome: The outcome.
        reason: Why, in a sentence.
        checks: The result of checking each assumption, by name.
        measured: The conclusion as measured, or None if an assumption is not met.
        control: The negative control as measured, or None if it was not needed.
        refused: Why the library could not use the data to check an assumption or to measure, where
            that decided the outcome; else None.
    """

    claim: Claim
    case: DataSet
    outcome: Outcome
    reason: str
    checks: dict[str, Check]
    measured: Measurement | None = None
    control: Measurement | None = None
    refused: InvalidInputError | None = None


def examine(claim: Claim, case: DataSet, seed: int = 0) -> Finding:
    """Checks the assumptions on data, then measures the conclusion and its negative control.

    Data that what measures the claim cannot use are an outcome of this claim, in words, and no
    error: other claims can still be examined on them.

    Args:
        claim: The claim.
        case: The data.
        seed: Names all that is random in the measurement.
    """
    check_kinds(claim=(claim, Claim), case=(case, DataSet))
    seed = check_seed("seed", seed)
    with seeded(seed, purpose=f"claim {claim.name}", alone=False):
        return _examined(claim, case, seed)


def _examined(claim: Claim, case: DataSet, seed: int) -> Finding:
    checks: dict[str, Check] = {}
    for assumption in claim.assumptions:
        try:
            check = assumption.check(case)
        except InvalidInputError as error:
            reason = f"{assumption.name}: it cannot be checked on these data, {_why(error)}"
            return Finding(claim, case, Outcome.ASSUMPTION_NOT_MET, reason, checks, refused=error)
        checks[assumption.name] = check
        if not check.met:  # later assumptions may only make sense where earlier ones are met
            reason = f"{assumption.name}: {check.found}"
            return Finding(claim, case, Outcome.ASSUMPTION_NOT_MET, reason, checks)
    try:
        measured = claim.conclusion.measure(case, seed)
    except InvalidInputError as error:
        reason = f"it cannot be measured on these data, {_why(error)}"
        return Finding(claim, case, Outcome.ASSUMPTION_NOT_MET, reason, checks, refused=error)
    if measured.checked == 0:
        reason = "there is nothing on these data that the claim speaks of"
        return Finding(claim, case, Outcome.VACUOUS, reason, checks, measured)
    words = f"{claim.conclusion.quantity} is {measured.value:.4g}"
    if measured.interval is not None:
        low, high = measured.interval
        words += f" ({low:.3g} to {high:.3g})" if low <= high else " (too few for an interval)"
    limit = f"{claim.conclusion.sense} {claim.conclusion.bound:.4g} expected"
    if not claim.conclusion.settled_by(measured):
        bound = f"{claim.conclusion.bound:g}"
        reason = f"{words}, which does not leave out {bound}: more data or a longer run would"
        return Finding(claim, case, Outcome.NOT_SETTLED, reason, checks, measured)
    if not claim.conclusion.met_by(measured):
        reason = f"{words}, {limit}"
        return Finding(claim, case, Outcome.FAILS, reason, checks, measured)
    try:
        control = claim.control.measure(case, seed)
    except InvalidInputError as error:
        reason = f"no wrong claim to tell it from can be measured on these data, {_why(error)}"
        return Finding(claim, case, Outcome.VACUOUS, reason, checks, measured, refused=error)
    if control.checked == 0 or math.isnan(control.value):
        reason = f"there is no wrong claim to tell it from ({claim.control.quantity})"
        return Finding(claim, case, Outcome.VACUOUS, reason, checks, measured, control)
    if claim.control.met_by(control):
        reason = f"the measurement cannot tell it from a wrong claim ({claim.control.quantity})"
        return Finding(claim, case, Outcome.VACUOUS, reason, checks, measured, control)
    return Finding(claim, case, Outcome.HOLDS, f"{words}, {limit}", checks, measured, control)


def _why(error: InvalidInputError) -> str:
    """What was wrong, without the remedy, which is for who calls the function that refused."""
    return f"{error.argument}: {error.problem}"


def examine_control(claim: Claim, case: DataSet, seed: int = 0) -> Finding:
    """Examines the negative control in place of the conclusion: it must fail."""
    check_kinds(claim=(claim, Claim))
    wrong = dataclasses.replace(claim, conclusion=claim.control, control=claim.conclusion)
    return examine(wrong, case, seed)
