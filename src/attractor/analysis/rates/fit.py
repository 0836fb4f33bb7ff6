"""``fit_rate``: curves in, the slope of a law out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Int, Real

from attractor.analysis.rates.laws import Law, law_named
from attractor.analysis.rates.rate import NOT_DEFINED, NOT_SETTLED, PARTS, SETTLED, Rate
from attractor.analysis.rates.slopes import (
    HALF_POINTS,
    NO_SLOPE,
    Lines,
    Slope,
    fit_lines,
    halves,
    last_window,
    mean_slope,
)
from attractor.support.checks import (
    as_number,
    check_flags,
    check_kinds,
    check_share,
    check_text,
    shown,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_plain, as_real


def fit_rate(
    steps: Real[np.ndarray, "*curves step"],
    values: Real[np.ndarray, "*trials step"],
    *,
    law: str = "power",
    decades: float | None = None,
    fraction: float | None = None,
    confidence: float = 0.95,
    abscissa_is_log: bool = False,
    values_are_logs: bool = False,
    quantity: str = "value",
    abscissa: str = "step",
    excluded: Mapping[str, Bool[np.ndarray, "*trials"]] | None = None,
) -> Rate:
    """Fits a law to the end of every curve, by least squares on the axes that make it a line.

    ============================  =================  ========================
    law                           curve              slope of
    ============================  =================  ========================
    ``"power"``                   ``y ~ x^a``        log y against log x
    ``"power of the logarithm"``  ``y ~ (log x)^a``  log y against log log x
    ``"logarithm"``               ``y ~ a log x``    y against log x
    ``"exponential"``             ``y ~ exp(a x)``   log y against x
    ============================  =================  ========================

    The interval is Student's t over independent units. With two axes of trials, ``(instances,
    seeds)``, the units are the instances: seeds share the data of their instance, so that their
    slopes are averaged first. Where one instance is left, the units are its seeds, and the
    interval says nothing of other instances. Where one trial is left, the interval is that of its
    regression, which takes the points of the curve as independent and is often too narrow.

    The first and the second half of the points of the window are fitted as well. If their
    intervals do not overlap, the slope has not settled, and none is quoted.

    Args:
        steps: The abscissa of the values: recorded steps, or norms or anything else, one
            for all trials or one a trial. Points before the last one that the law cannot
            use, such as step 0, are left out.
        values: One curve a trial. A curve that is not finite, or not positive where its logarithm
            is fitted, anywhere in the window, is left out and counted.
        law: The law to fit.
        decades: Length of the window in factors of ten, back from the last abscissa as given.
            Default: one.
        fraction: In place of that, the part of the points to fit: 0.5 for the last half.
        confidence: Probability that an interval covers the true slope.
        abscissa_is_log: Whether ``steps`` holds natural logarithms of the abscissa. They are
            never exponentiated, so that equivalent times of exp(100,000) are fitted as they are.
        values_are_logs: Whether ``values`` holds natural logarithms of the values.
        quantity: The values, in words.
        abscissa: The abscissa, in words.
        excluded: Trials to leave out, by reason.

    Raises:
        InvalidInputError: If the shapes do not agree, or an option cannot be used.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> steps = np.arange(1, 1001)
        >>> rate = at.fit_rate(steps, [3 * steps**-0.5], law="power")
        >>> round(rate.slope, 6)
        -0.5
    """
    check_kinds(excluded=(excluded, Mapping | None))
    check_flags(abscissa_is_log=abscissa_is_log, values_are_logs=values_are_logs)
    confidence = check_share("confidence", confidence, 0.95)
    quantity = check_text("quantity", quantity)
    abscissa = check_text("abscissa", abscissa)
    chosen = law_named(law, abscissa_is_log=abscissa_is_log, values_are_logs=values_are_logs)
    decades, fraction = _checked_window(decades, fraction)
    x, y, units, unit_names = _checked_curves(steps, values)
    left_out_by = _checked_exclusions(excluded or {}, np.shape(values)[:-1])
    line_x = chosen.abscissa(x, is_log=abscissa_is_log)
    line_y = chosen.ordinate(y, are_logs=values_are_logs)
    window = last_window(x, np.isfinite(line_x), decades, fraction)
    lines = [fit_lines(line_x, line_y, part) for part in (window, *halves(window))]
    left_out, kept = _sorted_out(x, y, chosen, values_are_logs, window, lines, left_out_by)
    unit, unit_name = _independent_units(units[kept], unit_names)
    lines = [Lines(*(array[kept] for array in part)) for part in lines]
    slopes = [mean_slope(part, unit, confidence) if kept.any() else NO_SLOPE for part in lines]
    outcome, reason = _outcome(slopes, left_out)
    shown = x[kept][window[kept]]
    return Rate(
        quantity=quantity,
        abscissa=abscissa,
        law=chosen,
        abscissa_is_log=abscissa_is_log,
        values_are_logs=values_are_logs,
        outcome=outcome,
        reason=reason,
        parts=dict(zip(PARTS, slopes, strict=True)),
        confidence=confidence,
        units=len(np.unique(unit)),
        unit_name=unit_name,
        first=float(shown.min()) if shown.size else math.nan,
        last=float(shown.max()) if shown.size else math.nan,
        left_out=left_out,
        data=xr.Dataset(
            {
                "abscissa": (("trial", "point"), line_x[kept]),
                "values": (("trial", "point"), line_y[kept]),
                "window": (("trial", "point"), window[kept]),
                "second_half": (("trial", "point"), halves(window)[1][kept]),
                "trial_slope": (("part", "trial"), np.stack([part.slope for part in lines])),
                "unit": ("trial", unit),
            },
            coords={"trial": np.nonzero(kept)[0], "part": list(PARTS)},
        ),
    )


def _checked_window(decades: Any, fraction: Any) -> tuple[float, float | None]:
    if decades is not None and fraction is not None:
        raise InvalidInputError("fraction", "decades is given as well", "Give the one or the other")
    if decades is not None and not 0 < as_number(decades) <= 300:
        raise InvalidInputError("decades", f"{decades!r} is not positive", "Give one, such as 1.0")
    if fraction is not None and not 0 < as_number(fraction) <= 1:
        raise InvalidInputError(
            "fraction", f"{fraction!r} is not above 0 and at most 1", "Give one, such as 0.5"
        )
    return (1.0 if decades is None else float(decades)), fraction


def _checked_curves(
    steps: Any, values: Any
) -> tuple[np.ndarray, np.ndarray, Int[np.ndarray, "trial"], tuple[str, str]]:
    """Abscissa and values as (trial, point), the first axis of each trial, and what units are."""
    steps, values = as_real("steps", steps, ("...",)), as_real("values", values, ("...",))
    if not steps.ndim or not values.ndim or values.shape[-1] != steps.shape[-1]:
        points = steps.shape[-1] if steps.ndim else "points"
        raise InvalidInputError(
            "values", f"the shape is {values.shape}", f"Give (trials, {points})"
        )
    if not steps.shape[-1]:
        raise InvalidInputError("steps", "there is no point", "Give one abscissa a value")
    if steps.ndim > 1 and steps.shape != values.shape:
        raise InvalidInputError(
            "steps", f"the shape is {steps.shape}", f"Give {values.shape}, or one for all trials"
        )
    lead = values.shape[:-1]
    units = np.indices(lead)[0].ravel() if lead else np.zeros(1, dtype=int)
    names = ("instances", "seeds") if len(lead) > 1 else ("trials", "trials")
    points = values.shape[-1]
    x = np.broadcast_to(steps, values.shape).reshape(-1, points)
    return x, values.reshape(-1, points), units, names


def _checked_exclusions(
    excluded: Mapping[str, Any], trials: tuple[int, ...]
) -> dict[str, Bool[np.ndarray, "trial"]]:
    """The trials that are left out for each reason."""
    found = {}
    for reason, mask in excluded.items():
        array = as_plain("excluded", mask)
        if array.dtype != bool or array.shape not in (trials, trials or (1,)):
            raise InvalidInputError(
                "excluded",
                f"{reason!r} is {shown(mask)}",
                f"Give booleans of the shape {trials}, one a trial",
            )
        found[reason] = array.ravel()
    return found


def _sorted_out(
    x: np.ndarray,
    y: np.ndarray,
    law: Law,
    values_are_logs: bool,
    window: np.ndarray,
    lines: list[Lines],
    excluded: Mapping[str, np.ndarray],
) -> tuple[dict[str, int], Bool[np.ndarray, "trial"]]:
    """Numbers of trials that cannot be fitted, each for the first reason; and the others."""
    points = window.sum(1)
    finite = np.isfinite(y) | ~window
    positive = (y > 0) | ~window if law.log_values and not values_are_logs else finite
    reasons = dict(excluded) | {
        "without an abscissa": (points == 0) & ~np.isfinite(x[:, -1]),
        f"with fewer than {2 * HALF_POINTS} points": points < 2 * HALF_POINTS,
        "not finite": ~finite.all(1),
        "not positive": ~positive.all(1),
        "with a constant abscissa": np.isnan([part.slope for part in lines]).any(0),
    }
    kept, counts = np.ones(len(y), dtype=bool), {}
    for reason, out in reasons.items():
        if np.any(kept & out):
            counts[reason] = int((kept & out).sum())
        kept &= ~out
    return counts, kept


def _independent_units(
    units: Int[np.ndarray, "trial"], names: tuple[str, str]
) -> tuple[Int[np.ndarray, "trial"], str]:
    """The unit of every trial, and what the units are."""
    if len(np.unique(units)) > 1:
        return units, names[0]
    return np.arange(len(units)), names[1] if len(units) > 1 else "points"


def _outcome(slopes: list[Slope], left_out: Mapping[str, int]) -> tuple[str, str]:
    whole, first, second = slopes
    if math.isnan(whole.mean):
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        return NOT_DEFINED, f"no trial can be fitted ({reasons or 'there is none'})"
    if not first.overlaps(second):
        return NOT_SETTLED, "the slopes of the two halves of the window differ"
    return SETTLED, ""
