"""What commands say of a verdict, and what they suggest next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attractor.cli.session import Session

if TYPE_CHECKING:
    from attractor.analysis import Verdict


def say_verdict(current: Session, verdict: Verdict) -> None:
    """Prints the table of a verdict, and what it means; the problem is said once."""
    from attractor.report.words import verdict_sentences

    table = verdict.table()
    table.caption = None
    current.say(table, *verdict_sentences(verdict))


def has_arrived(verdict: Verdict) -> bool:
    """Whether training got to the direction of the solution, in the median of its trials."""
    from attractor.report.words import REACHED_RATIO

    ratios = verdict.margin_ratio.to_numpy()
    known = ratios[np.isfinite(ratios)]
    return bool(known.size) and float(np.median(known)) >= REACHED_RATIO
