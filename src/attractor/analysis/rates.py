"""Rates of convergence, as slopes fitted on doubly logarithmic axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.stats
from jaxtyping import Float, Real

from attractor.errors import InvalidInputError


@dataclass(frozen=True)
class Rate:
    """The exponent of a power law ``value ~ step^exponent``, over trials.

    Attributes:
        exponent: Mean over trials of the fitted exponents; NaN with none to fit.
        low: Lower end of the 95 % confidence interval of that mean.
        high: Upper end.
        trials: Number of trials in which the values were positive and could be fitted.
        first_step: First step used.
        last_step: Last step used.
    """

    exponent: float
    low: float
    high: float
    trials: int
    first_step: int
    last_step: int

    def __str__(self) -> str:
        if not self.trials:
            return "not defined"
        interval = "" if np.isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.exponent:.3f}{interval} over steps {self.first_step}-{self.last_step}"


def fit_rate(
    steps: Real[np.ndarray, "step"],
    values: Float[np.ndarray, "*trials step"],
    *,
    decades: float = 1.0,
) -> Rate:
    """Fits ``log value = exponent * log step + constant`` to the last decades of every trial.

    The interval is Student's t over trials; with a single trial it is that of the regression.

    Args:
        steps: Recorded steps; step 0 is left out.
        values: One curve a trial; a curve that is not positive and finite over the whole window
            is left out.
        decades: Length of the window, in factors of ten back from the last step.

    Raises:
        InvalidInputError: If the curves do not have one value a step.
    """
    steps = np.asarray(steps, dtype=float)
    values = np.asarray(values, dtype=float)
    if steps.ndim != 1 or values.shape[-1:] != steps.shape:
        raise InvalidInputError(
            "values", f"the shape is {values.shape}", f"Give (trials, {len(steps)})"
        )
    window = (steps > 0) & (steps >= steps[-1] / 10**decades)
    first, last = (int(steps[window][0]), int(steps[-1])) if window.any() else (0, 0)
    curves = values.reshape(-1, len(steps))[:, window]
    curves = curves[(np.isfinite(curves) & (curves > 0)).all(-1)]
    if window.sum() < 3 or not len(curves):
        return Rate(np.nan, np.nan, np.nan, 0, first, last)
    logs = np.log(steps[window])
    fits = np.array([scipy.stats.linregress(logs, np.log(curve)) for curve in curves])
    slopes, errors = fits[:, 0], fits[:, 4]
    if len(slopes) == 1:
        error, freedom = errors[0], int(window.sum()) - 2
    else:
        error, freedom = slopes.std(ddof=1) / np.sqrt(len(slopes)), len(slopes) - 1
    reach = scipy.stats.t.ppf(0.975, freedom) * error
    mean = float(slopes.mean())
    return Rate(mean, mean - reach, mean + reach, len(slopes), first, last)
