"""The bias matrix: which optimizer maximizes the margin in which norm."""

from attractor.analysis.bias._bias_matrix import bias_matrix
from attractor.analysis.bias.answer import NormAnswer
from attractor.analysis.bias.best_setting import Cell
from attractor.analysis.bias.bring_your_own import (
    as_method,
    load_geometry,
    load_method,
    named_optimizer,
    which_norm,
)
from attractor.analysis.bias.medians import MedianInterval, median_interval
from attractor.analysis.bias.methods import NORMS, Method, standard_methods
from attractor.analysis.bias.result import BiasMatrix
from attractor.settings import all_in_own_settings

__all__ = [
    "NORMS",
    "BiasMatrix",
    "Cell",
    "MedianInterval",
    "Method",
    "NormAnswer",
    "as_method",
    "bias_matrix",
    "load_geometry",
    "load_method",
    "median_interval",
    "named_optimizer",
    "standard_methods",
    "which_norm",
]

all_in_own_settings(__name__)
