"""Long prompts: attention as an operator on the law of its tokens."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompt import finite_length, length, measures, regression
    from attractor.prompt.finite_length import (
        averaged_output_error,
        effective_sample_size,
        error_exponent,
        error_table,
        finite_length_error,
        freezing_length,
        monte_carlo_error,
        output_error,
    )
    from attractor.prompt.head import Head
    from attractor.prompt.length import (
        AffineLimit,
        PromptLength,
        non_gaussian_defect,
        prompt_length,
        replacement_error,
        required_length,
    )
    from attractor.prompt.measures import (
        Convolution,
        Empirical,
        Gaussian,
        Laplace,
        Measure,
        Mixture,
        Product,
        Pushforward,
        Rademacher,
        Sphere,
        StudentT,
        Tilt,
        Uniform,
    )
    from attractor.prompt.operator import (
        FactorGradients,
        HeadGradients,
        factor_gradients,
        head_gradients,
        output,
        output_jacobian,
        push_gaussian,
        score_derivative,
        value_derivative,
    )

__all__ = [
    "AffineLimit",
    "Convolution",
    "Empirical",
    "FactorGradients",
    "Gaussian",
    "Head",
    "HeadGradients",
    "Laplace",
    "Measure",
    "Mixture",
    "Product",
    "PromptLength",
    "Pushforward",
    "Rademacher",
    "Sphere",
    "StudentT",
    "Tilt",
    "Uniform",
    "averaged_output_error",
    "effective_sample_size",
    "error_exponent",
    "error_table",
    "factor_gradients",
    "finite_length",
    "finite_length_error",
    "freezing_length",
    "head_gradients",
    "length",
    "measures",
    "monte_carlo_error",
    "non_gaussian_defect",
    "output",
    "output_error",
    "output_jacobian",
    "prompt_length",
    "push_gaussian",
    "regression",
    "replacement_error",
    "required_length",
    "score_derivative",
    "value_derivative",
]

import_on_first_use(__name__)
