"""The error of a finite prompt: exact averages over prompts, tables of them, and rates."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompt.finite_length.averages import (
        averaged_error_of_output,
        averaged_output_error,
    )
    from attractor.prompt.finite_length.exponent import error_exponent
    from attractor.prompt.finite_length.functions import (
        PromptMoments,
        mean_output,
        output_error,
        output_second_moment,
        prompt_moments,
        sum_of_squared_weights,
    )
    from attractor.prompt.finite_length.monte_carlo import MonteCarloError, monte_carlo_error
    from attractor.prompt.finite_length.sample_size import effective_sample_size, freezing_length
    from attractor.prompt.finite_length.squared_errors import (
        CovarianceMoments,
        FiniteLengthError,
        covariance_moments,
        error_of_output,
        finite_length_error,
    )
    from attractor.prompt.finite_length.table import ErrorTable, error_table

__all__ = [
    "CovarianceMoments",
    "ErrorTable",
    "FiniteLengthError",
    "MonteCarloError",
    "PromptMoments",
    "averaged_error_of_output",
    "averaged_output_error",
    "covariance_moments",
    "effective_sample_size",
    "error_exponent",
    "error_of_output",
    "error_table",
    "finite_length_error",
    "freezing_length",
    "mean_output",
    "monte_carlo_error",
    "output_error",
    "output_second_moment",
    "prompt_moments",
    "sum_of_squared_weights",
]

import_on_first_use(__name__)
