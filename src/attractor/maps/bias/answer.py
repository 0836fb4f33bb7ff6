"""The norm whose margin an optimizer maximizes, by medians, or that runs do not settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import bdtr

from attractor.results import Described, Rows
from attractor.support.checks import check_share
from attractor.support.precision import as_real

if TYPE_CHECKING:
    import xarray as xr


CONFIDENCE = 0.95


class MedianInterval(NamedTuple):
    """A median over data sets, and an interval for that of the distribution they come from.

    Attributes:
        median: The median of the sample; NaN of an empty one.
        low: Lower end, minus infinity where the sample is too small for any.
        high: Upper end, or infinity.
    """

    median: float
    low: float
    high: float


def median_interval(
    values: Float[np.ndarray, "sample"], confidence: float = 0.95
) -> MedianInterval:
    """The median with its order-statistic interval, values that are NaN left out.

    Of n independent values the number below the true median is binomial with n trials and
    probability one half, whatever the distribution. So the k-th smallest and the k-th largest
    value enclose it with probability ``1 - 2 P(Binomial(n, 1/2) < k)`` at least; k is the largest
    for which that reaches ``confidence``. For 20 values and 95 % these are the 6th and the 15th.

    Args:
        values: Independent numbers.
        confidence: Probability to enclose the true median at least.
    """
    confidence = check_share("confidence", confidence, 0.95)
    values = as_real("values", values, ("...", "sample")).ravel()
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return MedianInterval(math.nan, -math.inf, math.inf)
    median = float(np.median(known))
    place = _place(len(known), confidence)
    if place == 0:
        return MedianInterval(median, -math.inf, math.inf)
    return MedianInterval(median, float(known[place - 1]), float(known[-place]))


def or_least(median: float) -> float:
    """A median to be ranked: minus infinity where there is none."""
    return -math.inf if math.isnan(median) else median


def joint_confidence(intervals: int) -> float:
    """The confidence that several intervals need each for ``CONFIDENCE`` together (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / intervals


def smallest_sample(confidence: float) -> int:
    """The least number of values of which an interval exists."""
    return math.ceil(math.log2(2 / (1 - confidence)) - 1e-9)


def _place(count: int, confidence: float) -> int:
    """The largest k whose interval is sure enough; 0 if there is none."""
    ranks = np.arange(1, count // 2 + 1)
    enclosed = 1 - 2 * bdtr(ranks - 1, count, 0.5)
    return int((enclosed >= confidence - 1e-12).sum())


MAXIMIZES, NOT_SETTLED, NONE = "maximizes", "not settled", "none of these"
NOT_BEGUN = "has not begun"

ENOUGH = 0.97
"""Median margin ratio from which it is asked whether the ratio goes to one."""
NEAR = 0.005
"""How far the limit of a ratio may be from one."""
_SLACK = 0.2
"""How far it may be as a share of what is missing yet: no ratio follows 1 / ||W|| exactly."""
_ONE_SIDED = 0.9
"""Confidence of an interval of which each end is right with 95 %."""
STATIONARY = 1e-6
"""Relative change of W over the second half of a run below which it counts as stationary."""
BEGUN = 1.0
"""Change of W, in units of its size at the start, from which its direction is its own."""
SATURATED = 5.0
"""Smallest margin from which a token attended to has a softmax weight near one."""
CERTIFIED = 1e-3
"""Relative gap of solutions up to which ratios to them are compared."""
_LASTING = 0.8
"""Share of a lead that is left in the limit, from which it is none of the start's."""
MORE = "More steps may settle it"
_ANOTHER = "Another norm may be its own: give it, as --norm module:name or in geometries=[...]"
_CLOSEST = f"If that is its norm, smaller steps come closer to one. {_ANOTHER}"
_RISEN = 0.01
"""A rise of the loss, in units of that at the start, from which steps go uphill."""
_SMALLER = "Try a smaller step, or fewer steps"
MOST_STOPPED = 0.25
"""Share of runs that ended early from which nothing is settled."""
_STILL_MOVING = 0.05
_DOUBLED = 0.5
_LONGEST = 10.0


@dataclass(frozen=True)
class NormAnswer(Described):
    """The norm whose margin an optimizer maximizes, and at which settings.

    Attributes:
        outcome: ``"maximizes"``, ``"not settled"``, ``"has not begun"`` or ``"none of these"``; of
            several settings also ``"depends on the step"``, and never ``"has not begun"``.
        norm: Name of the norm; empty unless the outcome is ``"maximizes"``.
        reason: Why, in a sentence with its numbers.
        data_sets: How many the answer is from.
        remedy: What to try next; empty where there is nothing to try.
        more_steps: Whether more steps may bring another answer.
        larger_steps: Whether larger ones may: attention is not saturated yet.
        smaller_steps: Whether smaller ones may: too many runs ended early.
        enough_data_sets: As many data sets may bring another answer; 0 where they are not too few.
        settings: Of several, by norm those at which its margin is maximized.
    """

    outcome: str
    norm: str
    reason: str
    data_sets: int
    remedy: str = ""
    more_steps: bool = False
    larger_steps: bool = False
    smaller_steps: bool = False
    enough_data_sets: int = 0
    settings: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}{f'. {self.remedy}' if self.remedy else ''}"

    @property
    def verdict(self) -> str:
        """The outcome with the norm, if it is one, in words."""
        if self.outcome == NOT_BEGUN:
            return "not far enough from its start"
        return f"maximizes the {self.norm} margin" if self.norm else self.outcome

    def _summary(self) -> tuple[str, Rows]:
        rows = [("because", self.reason), ("data sets", f"{self.data_sets:,}")]
        return self.verdict.capitalize(), rows + ([("next", self.remedy)] if self.remedy else [])


def answer(row: xr.Dataset, questions: int = 1) -> NormAnswer:
    """Answers from the runs of one method.

    The rules, in this order, with r the margin ratio, medians over data sets, and intervals that
    hold for any distribution (``median_interval``):

    0. If no ratio is 0.97 or more, and W has changed by less than it was large at the start, the
       ratios are in part those of the start: the outcome is "has not begun", in words "not far
       enough from its start". If the loss is higher than at the start, by a hundredth of it in the
       median, the answer is "not settled": theory is one of descent.
    1. Runs that terminated or diverged are left out: their ratio is that of where rounding
       stopped them. If more than a quarter did, the answer is "not settled".
    2. There must be enough data sets for an interval at all, and the margin problems solved to a
       certified relative gap of 0.001 in every norm, and no ratio above one by more than twice
       that: else "not settled".
    3. The best norm N has the highest median r at the end. If that is below 0.97 and r has settled
       in every norm, the answer is "none of these"; if not, or if attention is not saturated (the
       smallest margin of W over the tokens it selects is below 5), "not settled": the theory is one
       of saturated attention. It has not settled in
       N if the interval of its change over the second half of the run leaves out zero, and the
       change, carried on until W has doubled (but for ten times as long at most, as raw gradient
       descent grows with the logarithm of the step), is more than a twentieth of what is missing
       to one; in another norm if the same holds and it rises.
    4. For every other norm the interval of the paired difference r_N - r has to be above zero,
       all of them together with a confidence of 95 % (Bonferroni): else "not settled".
    5. The lead over any other norm must not shrink so fast over the second half that as many
       steps again would use it up, and r_N must not fall so fast that they would bring it below
       0.97: else "not settled".
    6. In the norm of the optimizer the ratio goes to one; in any other it stops short. Its limit is
       estimated from half the run and all of it, as what is missing falls like 1 / ||W||, and is
       short of one if it is so by more than 0.005 and by more than a fifth of what is missing yet.
       If it surely is in more than half of the data sets, or is surely higher in a norm of N's
       family whose exponent is beside that of N, then N is the closest of the norms compared and
       not that of these steps: "none of these". If it may be, or the lead of the norm beside N
       shrinks, "not settled".
    7. Then the answer is N.

    Steps that move W where the gradient is zero, as weight decay does, keep it bounded: no ratio
    goes to one then. Below an eps steps fall with the gradient. Both are said, and advice of more
    or larger steps is left out.

    Args:
        row: ``margin_ratio`` and ``margin_ratio_halfway`` over (norm, instance), and ``trained``,
            ``movement`` and, where they are known, ``displacement``, ``loss_rise`` and
            ``smallest_margin`` over instance, as is ``gap`` over (norm, instance),
            ``nearby_ratio`` and ``nearby_ratio_halfway`` over (norm, nearby, instance), with
            ``nearby_norm``, their names; ``log_gradient_norm`` over instance,
            ``moves_without_gradient`` and ``least_gradient``. Norms without numbers are not
            compared.
        questions: How many such answers are taken together, whose confidence is to be joint.
    """
    return with_tiny_gradients(_answer(row, questions), row)


def _answer(row: xr.Dataset, questions: int) -> NormAnswer:
    """The answer by the margin ratios."""
    ratios = row["margin_ratio"].transpose("norm", "instance")
    before = row["margin_ratio_halfway"].transpose("norm", "instance").values
    known = np.isfinite(ratios.values).any(1)
    names = [str(name) for name in ratios["norm"].values[known]]
    end, before = ratios.values[known], before[known]
    moving = row["trained"].values & (row["movement"].values > STATIONARY)
    finite = np.isfinite(end).all(0) & np.isfinite(before).all(0)
    usable = moving & finite
    count, total = int(usable.sum()), usable.size
    if (uphill := _uphill(row, finite & row["trained"].values)) is not None:
        return uphill
    if (at_start := _at_start(row, end, finite & row["trained"].values)) is not None:
        return at_start
    if count < (1 - MOST_STOPPED) * total:
        return unsettled(
            f"{total - count} of {total} runs terminated or diverged before the end, where "
            "rounding or the optimizer's own constants stopped them",
            count,
            _SMALLER,
        )
    joint = joint_confidence(questions * max(len(names) - 1, 1))
    if count < smallest_sample(joint):
        return unsettled(
            f"{count} data sets are too few to compare {len(names)} norms; "
            f"{smallest_sample(joint)} would do",
            count,
            f"Give {smallest_sample(joint)} data sets or more",
            smallest_sample(joint),
        )
    if "gap" in row:
        gaps = np.nanmax(row["gap"].transpose("norm", "instance").values[known][:, usable], axis=1)
        if (worst := float(gaps.max())) > CERTIFIED:
            return unsettled(
                f"margin problems in {names[int(gaps.argmax())]} are solved to a certified "
                f"relative gap of {worst:.2g} only, and ratios to them mean nothing",
                count,
                "Give its solver a tighter tolerance",
            )
    above = end[:, usable].max(1)
    if above.max() > 1 + 2 * CERTIFIED:
        return unsettled(
            f"a ratio in {names[int(above.argmax())]} is {above.max():.4g}, where none can exceed "
            "one: its solutions are not the smallest there are",
            count,
            "See that norm, dual norm and solver belong together",
        )
    found = _compare(row.isel(norm=known, instance=usable), joint)
    if found.outcome == MAXIMIZES or "smallest_margin" not in row:
        return found
    margin = float(np.median(row["smallest_margin"].values[usable]))
    return _unsaturated(found, margin) if margin < SATURATED else found


def _uphill(row: xr.Dataset, trained: Bool[np.ndarray, "instance"]) -> NormAnswer | None:
    """The answer where the loss became larger: a sign that is missing, as a rule."""
    if "loss_rise" not in row or not trained.any():
        return None
    rise = float(np.median(row["loss_rise"].values[trained]))
    if not rise > _RISEN:
        return None
    return unsettled(
        f"the loss is {100 * rise:.2g} % higher than at the start, so that these steps go uphill",
        int(trained.sum()),
        "See whether updates are to be subtracted, as by optax.scale(-1), or take smaller steps",
    )


def _at_start(
    row: xr.Dataset, end: Float[np.ndarray, "norm instance"], trained: Bool[np.ndarray, "instance"]
) -> NormAnswer | None:
    """The answer of rule 0, where that holds."""
    if "displacement" not in row or not trained.any():
        return None
    moved = float(np.median(row["displacement"].values[trained]))
    if moved >= BEGUN or np.median(end[:, trained], axis=1).max() >= ENOUGH:
        return None
    return NormAnswer(
        NOT_BEGUN,
        "",
        f"W has changed by {100 * moved:.2g} % of its size there, so that the random start still "
        "shows in its direction",
        int(trained.sum()),
        "Raise the step, or take many more steps",
        larger_steps=True,
    )


def _compare(row: xr.Dataset, joint: float) -> NormAnswer:
    """Rules 3 to 7, of the runs that count."""
    names = [str(name) for name in row["norm"].values]
    end, before = (
        row[name].transpose("norm", "instance").values
        for name in ("margin_ratio", "margin_ratio_halfway")
    )
    movement = row["movement"].values
    count = end.shape[1]
    best = int(np.median(end, axis=1).argmax())
    name, at_end = names[best], median_interval(end[best], CONFIDENCE)
    found = f"the median ratio is {_interval(at_end)}"
    changes = [median_interval(one, CONFIDENCE) for one in end - before]
    if at_end.median < ENOUGH:
        moving = still_moving(names, end, changes, best, float(np.median(movement)))
        if moving:
            return unsettled(f"{found} in {name}, the best of them, and {moving}", count, MORE)
        closest = f"closest of them is {name}, where {found}, below {ENOUGH}"
        return NormAnswer(NONE, "", closest, count, _ANOTHER)
    for other, other_name in enumerate(names):
        if other == best:
            continue
        lead = median_interval(end[best] - end[other], joint)
        if lead.low <= 0:
            next_best = median_interval(end[other], CONFIDENCE)
            return unsettled(
                f"{name} ({_interval(at_end)}) cannot be distinguished from {other_name} "
                f"({_interval(next_best)})",
                count,
                "Give more data sets",
                2 * count,
            )
        earlier = float(np.median(before[best] - before[other]))
        if 2 * lead.median - earlier <= 0:
            return unsettled(
                f"the lead of {name} over {other_name} shrinks, from {earlier:.4f} halfway "
                f"through the run to {lead.median:.4f}",
                count,
                MORE,
            )
    change = changes[best]
    if change.high < 0 and at_end.median + change.median < ENOUGH:
        return unsettled(
            f"{found} in {name}, but it falls, by {-change.median:.4f} over the second half of "
            "the run",
            count,
            MORE,
        )
    found = f"{found}, {_runner_up(names, end, best)}"
    limits = _limit(before[best], end[best], movement)
    goes = f"it goes to {_interval(median_interval(limits, _ONE_SIDED))}"
    short = median_interval(1 - limits - np.maximum(NEAR, _SLACK * (1 - end[best])), _ONE_SIDED)
    if short.low > 0:
        return _short(f"{found}; {goes}", name, count)
    if higher := _higher_beside(row.isel(norm=best)):
        beside, lasts = higher
        if lasts:
            return _short(f"{found}; it is higher in {beside}", name, count)
        return unsettled(f"in {name} {found}; it is still higher in {beside}", count, MORE)
    if short.high > 0:
        return unsettled(f"in {name} {found}; {goes}, perhaps short of one", count, MORE)
    return NormAnswer(MAXIMIZES, name, found, count)


def _short(reason: str, name: str, count: int) -> NormAnswer:
    """The answer where a ratio stops short of one."""
    return NormAnswer(NONE, "", f"closest of them is {name}, where {reason}", count, _CLOSEST)


def _limit(
    before: Float[np.ndarray, "instance"],
    end: Float[np.ndarray, "instance"],
    movement: Float[np.ndarray, "instance"],
) -> Float[np.ndarray, "instance"]:
    """Where ratios go if what is missing falls like 1 / ||W||.

    The size of W halfway is ``1 - movement`` times that at the end, as W then hardly turns.
    """
    return end + (end - before) * (1 - movement) / movement


def _higher_beside(row: xr.Dataset) -> tuple[str, bool] | None:
    """A neighbor of a norm in which the limit is higher, and by how much, in words.

    Also whether that lasts: from a start that is none of its norm, the lead of a neighbor shrinks.
    """
    if "nearby_ratio" not in row:
        return None
    movement = row["movement"].values
    ends, befores = (
        row[near].transpose("nearby", "instance").values - row[ratio].values
        for near, ratio in (
            ("nearby_ratio", "margin_ratio"),
            ("nearby_ratio_halfway", "margin_ratio_halfway"),
        )
    )
    for name, before, end in zip(row["nearby_norm"].values, befores, ends, strict=True):
        lead = median_interval(_limit(before, end, movement), _ONE_SIDED)
        if lead.low > 0:
            return f"{name}, by {_interval(lead)}", lead.median >= _LASTING * float(np.median(end))
    return None


def _at_tiny_gradients(row: xr.Dataset) -> tuple[str, str]:
    """What a method does at zero and tiny gradients that keeps it from its norm, and a remedy.

    Both are empty where there is nothing to say.
    """
    if "least_gradient" not in row:
        return "", ""
    said, remedy = [], ""
    least, reached = float(row["least_gradient"]), np.nanmedian(row["log_gradient_norm"].values)
    if least > 0 and reached < math.log(least):
        said.append(
            f"gradients have fallen to 1e{reached / math.log(10):.0f}, below the {least:.0e} from "
            "which on its steps fall with them, as with an eps"
        )
        remedy = "Take a smaller eps, or none, to see its norm"
    if row["moves_without_gradient"]:
        said.append(
            "its steps move W where the gradient is zero, as weight decay does, so that W stays "
            "bounded and no ratio goes to one"
        )
        remedy = "Take the decay out to see its norm"
    return "; ".join(said), remedy


def with_tiny_gradients(found: NormAnswer, row: xr.Dataset) -> NormAnswer:
    """The answer with what the method does at zero and tiny gradients, and no other advice then."""
    said, remedy = _at_tiny_gradients(row)
    if not said:
        return found
    if said not in found.reason:  # as that of several settings has it from the best of them
        found = replace(found, reason=f"{found.reason}; {said}")
    if found.outcome == MAXIMIZES:
        return found
    return replace(
        found,
        remedy=remedy,
        more_steps=False,
        larger_steps=False,
        smaller_steps=False,
        enough_data_sets=0,
    )


def still_moving(
    names: list[str],
    end: Float[np.ndarray, "norm instance"],
    changes: list[MedianInterval],
    best: int,
    movement: float,
) -> str:
    """In which norm the ratio has not settled, in words; empty if in none.

    Args:
        names: The norms.
        end: The ratios at the end.
        changes: Intervals of their changes over the second half of the run.
        best: Place of the norm in which a ratio that falls has not settled, either.
        movement: Relative change of W over the second half of the run.
    """
    carried_on = float(np.clip(_DOUBLED / movement, 1, _LONGEST))
    order = [best, *(place for place in range(len(names)) if place != best)]
    for place in order:
        change, missing = changes[place], 1 - float(np.median(end[place]))
        sure = change.low > 0 or (place == best and change.high < 0)
        if sure and abs(change.median) * carried_on > _STILL_MOVING * missing:
            way = "rises" if change.median > 0 else "falls"
            where = "it" if place == best else f"in {names[place]} it"
            amount = f"{abs(change.median):.4f}"
            return f"{where} still {way}, by {amount} over the second half of the run"
    return ""


def _unsaturated(found: NormAnswer, margin: float) -> NormAnswer:
    """The answer where attention is not saturated, which theory says nothing of."""
    return replace(
        found,
        outcome=NOT_SETTLED,
        reason=f"{found.reason}; attention is not saturated, as the smallest margin of the tokens "
        f"attended to is {margin:.2g} in the median, below {SATURATED:g}",
        remedy="Raise the step, or take many more steps",
        more_steps=True,
        larger_steps=True,
    )


def _runner_up(names: list[str], end: Float[np.ndarray, "norm instance"], best: int) -> str:
    medians = np.median(end, axis=1)
    medians[best] = -math.inf
    if len(names) == 1:
        return "the only norm compared"
    return f"and {medians.max():.4f} in {names[int(medians.argmax())]}, the next"


def _interval(found: MedianInterval) -> str:
    return f"{found.median:.4f} [{found.low:.4f}, {found.high:.4f}]"


def unsettled(reason: str, count: int, remedy: str, enough: int = 0) -> NormAnswer:
    """The answer that runs settle nothing, and what may settle it.

    Args:
        reason: Why, in a sentence with its numbers.
        count: Number of data sets.
        remedy: What to try next.
        enough: As many data sets may bring another answer; 0 where they are not too few.
    """
    return NormAnswer(
        NOT_SETTLED,
        "",
        reason,
        count,
        remedy,
        more_steps=remedy == MORE,
        smaller_steps=remedy == _SMALLER,
        enough_data_sets=enough,
    )
