"""What commands say of a verdict, and what they suggest next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import numpy as np

from attractor.cli.session import Session
from attractor.errors import InvalidInputError

if TYPE_CHECKING:
    from attractor.analysis import Verdict
    from attractor.training import Trajectory


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


def longer_training(trajectory: Trajectory) -> str:
    """The command that trains as a run was trained, four times as long."""
    from attractor.training.optimizers import named_optimizer

    settings = trajectory.settings
    values = ",".join(f"{name}={value}" for name, value in settings["optimizer"].items())
    optimizer = f"{trajectory.optimizer_name}:{values}"
    steps = 4 * int(trajectory.steps[-1]) if trajectory.axis == "step" else 20_000
    words = ["attractor", "train", "tokens.npz", "--steps", str(steps)]
    try:
        named_optimizer(optimizer)
        words += ["--optimizer", optimizer]
    except InvalidInputError:  # one of the user's own, whose module is not in the run
        pass
    for name in ("parameterization", "loss"):
        words += [f"--{name}", str(settings[name])]
    return shlex.join([*words, "--out", "longer.nc"])
