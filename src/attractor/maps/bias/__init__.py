"""The bias matrix: which optimizer maximizes the margin in which norm."""

from attractor.maps.bias._bias_matrix import bias_matrix, which_norm
from attractor.maps.bias.answer import MedianInterval, NormAnswer, median_interval
from attractor.maps.bias.best_setting import Cell
from attractor.maps.bias.methods import NORMS, standard_methods
from attractor.maps.bias.result import BiasMatrix
from attractor.support.settings import all_in_own_settings
from attractor.training.own.bring_your_own import (
    as_method,
    load_geometry,
    load_method,
    named_optimizer,
)
from attractor.training.own.method import Method

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
