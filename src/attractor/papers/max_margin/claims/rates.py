"""Rates of gradient descent, and the finite offset that they are derived from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from attractor.analysis import verify
from attractor.analysis.offset import measured_offsets, predicted_offsets
from attractor.attention import get_parameterization
from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Exponent, Measurement
from attractor.papers.hypotheses import (
    FEASIBLE,
    GRADIENT_DESCENT,
    LOCALLY_OPTIMAL,
    NORMALIZED_STEPS,
    ONE_TOKEN_A_ROW,
    SCORES_DIFFER,
    trains,
)
from attractor.papers.ledger.claim import once
from attractor.papers.max_margin.data import (
    one_sequence,
    random_prompt_data,
    three_sequences,
    two_scores,
)
from attractor.papers.measurements.attended import attended
from attractor.papers.measurements.directions import step_length, steps_to_converge, trained
from attractor.results.paper import MAX_MARGIN

CLAIMS = Claims(MAX_MARGIN, Case)

_STATEMENT = "rates of convergence"
_CONSTANT = "gradient descent:learning_rate=1"
_NOTE = (
    "derived from the finite offset of descent, not quoted; nothing is claimed of a run that "
    "ends at tokens which are not locally optimal. Trained from zero, unless the data have a "
    "start, and measured at the end: earlier, or from far off, slopes are others"
)
DECADE = float(np.log(10))
_NOTHING = 1e-12


def _excess(case: Case, seed: int, exponent: Exponent) -> Measurement:
    found = curves(case, seed)
    slope = found.slope("log_excess_loss", "log_time", before_end=DECADE)
    leak = found.slope("log_unselected_probability", "log_time", before_end=DECADE)
    details = {"slope of the loss": slope, "slope of the attention to other tokens": leak}
    return Measurement(abs(slope - exponent), found.settled, details)


def _norm(case: Case, seed: int, factor: float) -> Measurement:
    found = curves(case, seed)
    if not found.settled:
        return Measurement(np.nan, checked=0)
    ratio = found.slope("norm", "log_time", before_end=DECADE) / found.solution_norm
    details = {"ratio": ratio, "logarithm of the time": float(found.along("log_time")[-1])}
    return Measurement(abs(ratio - factor), found.settled, details)


def _angle(case: Case, seed: int, against: str, exponent: Exponent) -> Measurement:
    found = curves(case, seed)
    slope = found.exponent("angle", against)
    details = {
        "slope": slope,
        "angle": float(found.along("angle")[-1]),
        against: float(found.along(against)[-1]),
        "norm gained by a step": found.slope("norm", "step", before_end=1),
    }
    if slope == -np.inf:  # there is no angle whose fall could be measured
        return Measurement(np.nan, 0, details)
    return Measurement(abs(slope - exponent), found.settled, details)


def _data(seed: int) -> list[Case]:
    random = (random_prompt_data(number, 3, 4, 8) for number in range(seed, seed + 5))
    return [three_sequences(), one_sequence(equal_scores=True), *random]


GRADIENT_DESCENT_RATE = CLAIMS.claim(
    "gradient-descent-rate",
    "with constant steps the loss above its infimum falls like 1 / t",
    statement=_STATEMENT,
    assuming=(trains("p", "W"), GRADIENT_DESCENT, SCORES_DIFFER),
    contrast=Comparison(
        "distance from -1 of the slope of log(L - L_best) in log t, from zero, over a decade of t",
        _excess,
        lambda *_: Exponent(-1),
        "distance of that slope from -1/2",
        lambda *_: Exponent(-1 / 2),
        bound=0.05,
        reason="over the last decade of 20,000 constant steps, where 1 / (t log t) is off by 0.1",
    ),
    data=lambda seed: [
        three_sequences().replace(optimizer=_CONSTANT, steps=20_000),
        one_sequence(equal_scores=True).replace(optimizer=_CONSTANT, steps=20_000),
        *_data(seed),
    ],
    note=_NOTE,
)

GRADIENT_DESCENT_NORM = CLAIMS.claim(
    "gradient-descent-norm",
    "the norm of the prompt grows like that of the margin solution times log t",
    statement=_STATEMENT,
    assuming=(trains("p", "W"), GRADIENT_DESCENT, SCORES_DIFFER),
    contrast=Comparison(
        "distance from 1 of the slope of |p| in log t over a decade, in norms of the solution",
        _norm,
        lambda *_: 1.0,
        "distance of that slope from 1/2",
        lambda *_: 0.5,
        bound=0.1,
        reason="tokens close to the margin slow it until log t passes one over their slack",
    ),
    data=_data,
    note=f"{_NOTE}; measured in the time that normalized steps would take unnormalized",
)

GRADIENT_DESCENT_DIRECTION = CLAIMS.claim(
    "gradient-descent-direction",
    "with constant steps the angle with the max-margin direction falls like 1 / log t",
    statement=_STATEMENT,
    assuming=(trains("p", "W"), GRADIENT_DESCENT, SCORES_DIFFER),
    contrast=Comparison(
        "distance from -1 of the slope of log(angle) in log(log t), since half of that log t",
        lambda case, seed, exponent: _angle(case, seed, "log_time", exponent),
        lambda *_: Exponent(-1),
        "distance of that slope from -5/4",
        lambda *_: Exponent(-5 / 4),
        bound=0.1,
        reason="what is left of the beginning at half the logarithm",
    ),
    data=_data,
    note=f"{_NOTE}; measured in the time that normalized steps would take unnormalized",
)

NORMALIZED_GRADIENT_DESCENT_RATE = CLAIMS.claim(
    "normalized-gradient-descent-rate",
    "with normalized steps the angle with the max-margin direction falls like 1 / t",
    statement=_STATEMENT,
    assuming=(trains("p", "W"), NORMALIZED_STEPS, SCORES_DIFFER),
    contrast=Comparison(
        "distance from -1 of the slope of log(angle) in log t, over the second half of the steps",
        lambda case, seed, exponent: _angle(case, seed, "step", exponent),
        lambda *_: Exponent(-1),
        "distance of that slope from -5/4",
        lambda *_: Exponent(-5 / 4),
        bound=0.1,
        reason="what is left of the beginning half way",
    ),
    data=_data,
    note=_NOTE,
)


@dataclass(frozen=True)
class Curves:
    """Measures of a run from zero, evaluated for the tokens that it reached.

    Attributes:
        data: Along the recorded steps, as ``verify`` measures them; ``log_time`` in the units of
            keys and queries of ordinary size, as steps of ``step_length`` are.
        solution_norm: Norm of the margin solution of those tokens.
        settled: 1 if they are locally optimal, else 0: rates are claimed of nothing else.
    """

    data: xr.Dataset
    solution_norm: float
    settled: int

    def along(self, name: str) -> np.ndarray:
        """A measure at all records; ``"angle"`` is that with the margin solution."""
        if name == "angle":  # to 1e-15, where 1 - cos is not
            return np.sqrt(2 * self.data["directional_bregman_divergence"].to_numpy())
        return self.data[name].to_numpy().astype(float)

    def slope(self, name: str, against: str, *, before_end: float) -> float:
        """Mean slope of a measure against another, over at least the last of the latter.

        Args:
            name: The measure.
            against: The other.
            before_end: By how much the earlier of two records is to lie before the last.
        """
        return _slope(self.along(name), self.along(against), before_end)

    def exponent(self, name: str, against: str) -> float:
        """Slope between the logarithms, since the other measure was half of what it is at the end.

        Minus infinity where the measure is zero, up to rounding.
        """
        if self.along(name)[-1] < _NOTHING:
            return -np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            values, places = np.log(self.along(name)), np.log(self.along(against))
        return _slope(values, places, np.log(2))


def curves(case: Case, seed: int, **settings: Any) -> Curves:
    """Trains from zero, unless the case has a start, and measures the run.

    Args:
        case: The data.
        seed: Named in the run.
        **settings: Arguments of ``trained``.
    """
    tokens = case.tokens
    shapes = get_parameterization(case.parameterization).shapes(
        tokens.key_dimension, tokens.query_dimension
    )
    run = trained(
        case, seed, initial={name: np.zeros(shape) for name, shape in shapes.items()}, **settings
    )

    def measure() -> Curves:
        verdict = verify(run)
        data = verdict.data.isel(instance=0, seed=0)
        data["log_time"] = data["log_time"] + 2 * np.log(0.1 / step_length(case))
        norm = float(np.ravel(verdict.data["solution_norm"])[0])
        settled = bool(np.ravel(verdict.data["locally_optimal"])[0]) and norm > 0
        return Curves(data, norm, int(settled))

    return case.once(("curves", id(run)), measure)


def _slope(values: np.ndarray, places: np.ndarray, before_end: float) -> float:
    early = np.flatnonzero(places <= places[-1] - before_end)
    if not early.size or not np.isfinite(places[-1]):
        return np.nan
    return float((values[-1] - values[early[-1]]) / (places[-1] - places[early[-1]]))


_SETTLED = 1e-9
"""Change of an offset in the second half of training up to which it counts as settled."""


@once
def _offsets(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets reached and predicted, at the support tokens.

    Both are empty where other tokens are selected, or the offset has not converged: that takes
    the longer the smaller the least multiplier is.
    """
    predicted = predicted_offsets(case.tokens, case.head, case.solution()).margins
    known = np.isfinite(predicted)
    shortest = steps_to_converge(case, 0.0) if case.steps is None else case.steps
    for steps in (shortest, 8 * shortest) if case.steps is None else (shortest,):
        half, end = _matrices(case, seed, steps)
        if (attended(case, end).mask & ~case.selection.mask).any():
            break
        before, found = (measured_offsets(W, case.solution())[known] for W in (half, end))
        if np.abs(found - before).max(initial=0.0) <= _SETTLED:
            return found, predicted[known]
    return np.zeros(0), np.zeros(0)


def _matrices(case: Case, seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Half-way and at the end of a run from zero."""
    shape = (case.tokens.key_dimension, case.tokens.query_dimension)
    start = np.zeros(shape[0] if case.parameterization == "p" else shape)
    halfway = max(1, steps // 2)
    run = trained(
        case, seed, steps=steps, initial=start, record=sorted({halfway, steps}), weights="all"
    )
    return run.W(halfway)[0, 0], run.W()[0, 0]


def _error(case: Case, seed: int, predicted: np.ndarray) -> Measurement:
    found, _ = _offsets(case, seed)
    details = {"reached": found.tolist(), "predicted": predicted.tolist()}
    return Measurement(
        float(np.abs(found - predicted).max(initial=0.0)), max(len(found) - 1, 0), details
    )


FINITE_OFFSET = CLAIMS.claim(
    "finite-offset",
    "normalized descent runs beside its ray, where loss and score gaps meet multipliers",
    statement="finite offset of normalized gradient descent",
    assuming=(trains("p", "W"), NORMALIZED_STEPS, ONE_TOKEN_A_ROW, FEASIBLE, LOCALLY_OPTIMAL),
    contrast=Comparison(
        "largest error of the margins of what is orthogonal to the solution, at support tokens",
        _error,
        lambda case, seed: _offsets(case, seed)[1],
        "largest such margin, as if all support tokens came to the same",
        lambda case, seed: np.zeros_like(_offsets(case, seed)[1]),
        bound=1e-8,
        reason="ten times the change in the second half up to which an offset counts as settled",
    ),
    data=lambda seed: [
        three_sequences(),
        *(two_scores(score) for score in (2.0, 5.0, 10.0)),
        *(random_prompt_data(number, 3, 4, 8) for number in range(seed, seed + 3)),
    ],
    note="derived, not quoted; one support token alone leaves nothing to be measured, "
    "nor does an offset that goes on changing",
)
