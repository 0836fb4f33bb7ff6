"""The analysis room: a training run held against the direction predicted for it."""

from attractor.analysis.geometries import compare_geometries
from attractor.analysis.measures import DirectionMeasures, measure_direction
from attractor.analysis.rates import Rate, fit_rate
from attractor.analysis.verdict import Verdict
from attractor.analysis.verify import verify

__all__ = [
    "DirectionMeasures",
    "Rate",
    "Verdict",
    "compare_geometries",
    "fit_rate",
    "measure_direction",
    "verify",
]
