"""What commands say of a verdict, and what they suggest next."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from attractor import training
from attractor.cli.session import Session
from attractor.geometry import Geometry, get_geometry
from attractor.geometry.loading import spelling_of
from attractor.report.words import REACHED_RATIO, verdict_sentences
from attractor.support.errors import InvalidInputError

if TYPE_CHECKING:
    import xarray as xr

    from attractor.analysis import Verdict
    from attractor.training import Trajectory

_MOST_TOKENS = 40
"""Tokens of a selection that is suggested."""


def say_verdict(current: Session, verdict: Verdict) -> None:
    """Prints the table of a verdict, and what it means; the problem is said once."""
    table = verdict.table()
    table.caption = None
    current.say(table, *verdict_sentences(verdict))
    if goes_on(verdict) and not bool(_attracting(verdict).any()):
        share = float(verdict.selected_probability.median())
        current.say(
            "None of the selections reached is locally optimal, so that none of them attracts: "
            "attention goes elsewhere with more steps, or stays between several tokens for ever "
            f"(those reached have {100 * share:.0f} % of it now)."
        )


def has_arrived(verdict: Verdict) -> bool:
    """Whether training got to the direction of the solution, in the median of its trials."""
    ratios = verdict.margin_ratio.to_numpy()
    known = ratios[np.isfinite(ratios)]
    return bool(known.size) and float(np.median(known)) >= REACHED_RATIO


def goes_on(verdict: Verdict) -> bool:
    """Whether more steps may bring training nearer to the direction of the solution."""
    return not (has_arrived(verdict) or bool(verdict.at_minimum.all()))


def has_direction(verdict: Verdict) -> bool:
    """Whether there is a direction to compare some trial with."""
    return bool((verdict.feasible & ~verdict.at_minimum).any())


def most_kept(verdict: Verdict) -> str | None:
    """The tokens that most trials of one data set ended on, as ``--selection`` takes them.

    None where no matrix keeps them, nothing attracts there (more steps then lead elsewhere), there
    are several data sets, or too many tokens for a line.
    """
    reached = verdict.data["reached"]
    trials = reached.transpose("instance", "seed", ...).to_numpy()
    if len(trials) > 1 or trials[0, 0].size > _MOST_TOKENS:
        return None
    possible = (verdict.feasible & _attracting(verdict)).transpose("instance", "seed").to_numpy()
    kept = trials[0][possible[0] & (trials[0] >= 0).all((1, 2))]
    if not len(kept):
        return None
    each, counts = np.unique(kept.reshape(len(kept), -1), axis=0, return_counts=True)
    return ",".join(map(str, each[counts.argmax()]))


def _attracting(verdict: Verdict) -> xr.DataArray:
    """Which trials are at a locally optimal selection, as far as that is known."""
    known = "locally_optimal" in verdict.data
    return verdict.locally_optimal if known else verdict.feasible


def norm_option(geometry: Geometry | None) -> str:
    """The option by which a run is compared in its own norm; empty where it has to be none."""
    if geometry is None:
        return " --norm frobenius"
    return "" if _is_ours(geometry) else f" --norm {spelling_of(geometry)}"


def _is_ours(geometry: Geometry) -> bool:
    """Whether a norm is of the library, which knows it by name in every process."""
    return type(geometry).__module__.startswith("attractor.")


@contextlib.contextmanager
def naming_norms(current: Session, given: str | None) -> Iterator[None]:
    """Says how a norm is given where a run's own is not known, and none is given.

    Raises:
        InvalidInputError: Inside the block, in these words.
    """
    try:
        yield
    except InvalidInputError as error:
        if given is not None or error.argument != "geometry":
            raise
        remedy = (
            "Give your own as --norm module:name, or another to compare in: "
            f"{current.again(False, norm='frobenius')}"
        )
        raise InvalidInputError("norm", error.problem, remedy) from None


def longer_training(trajectory: Trajectory) -> str:
    """The command that trains as a run was trained, four times as long."""
    settings = trajectory.settings
    table = training.optimizers.table
    optimizer = table.spelling_of(trajectory.optimizer_name, settings["optimizer"])
    steps = 4 * int(trajectory.steps[-1]) if trajectory.axis == "step" else 20_000
    words = ["attractor", "train", "tokens.npz", "--steps", str(steps)]
    try:
        table.named_optimizer(optimizer)
        known = trajectory.geometry == "not known" or _is_ours(get_geometry(trajectory.geometry))
    except InvalidInputError:
        known = False
    # One of the user's own, or its norm, is of a module that the run does not name.
    words += ["--optimizer", optimizer if known else "MODULE:FACTORY"]
    for name in ("parameterization", "loss"):
        words += [f"--{name}", str(settings[name])]
    return shlex.join([*words, "--out", "longer.nc"])
