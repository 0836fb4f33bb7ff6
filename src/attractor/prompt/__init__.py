"""Long prompts: attention as an operator on the law of its tokens."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompt import (
        finite_length as finite_length,
        length as length,
        measures as measures,
        regression as regression,
    )
    from attractor.prompt.certified import (
        CertifiedConcentration as CertifiedConcentration,
        certified_concentration as certified_concentration,
    )
    from attractor.prompt.concentration import (
        RowConcentration as RowConcentration,
        row_concentration as row_concentration,
    )
    from attractor.prompt.finite_length import (
        averaged_output_error as averaged_output_error,
        effective_sample_size as effective_sample_size,
        error_exponent as error_exponent,
        error_table as error_table,
        finite_length_error as finite_length_error,
        finite_length_exponent as finite_length_exponent,
        freezing_length as freezing_length,
        measure_error as measure_error,
        measure_output_error as measure_output_error,
        monte_carlo_error as monte_carlo_error,
        output_error as output_error,
    )
    from attractor.prompt.head import AttentionHead as AttentionHead
    from attractor.prompt.length import (
        AffineLimit as AffineLimit,
        PromptLength as PromptLength,
        non_gaussian_defect as non_gaussian_defect,
        prompt_length as prompt_length,
        required_length as required_length,
    )
    from attractor.prompt.measures import (
        Convolution as Convolution,
        Empirical as Empirical,
        Gaussian as Gaussian,
        Laplace as Laplace,
        Measure as Measure,
        Mixture as Mixture,
        Product as Product,
        Pushforward as Pushforward,
        Rademacher as Rademacher,
        Sphere as Sphere,
        StudentT as StudentT,
        Tilt as Tilt,
        Uniform as Uniform,
    )
    from attractor.prompt.operator import (
        HeadGradients as HeadGradients,
        head_gradients as head_gradients,
        output as output,
        output_jacobian as output_jacobian,
        score_derivative as score_derivative,
        value_derivative as value_derivative,
    )

import_on_first_use(__name__)
