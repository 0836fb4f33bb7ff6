"""Long prompts: attention as an operator on the law of its tokens."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompts import (
        finite_length as finite_length,
        length as length,
        measures as measures,
        regression as regression,
    )
    from attractor.prompts.concentration import (
        CertifiedConcentration as CertifiedConcentration,
        RowConcentration as RowConcentration,
        certified_concentration as certified_concentration,
        row_concentration as row_concentration,
    )
    from attractor.prompts.example import random_head as random_head
    from attractor.prompts.files.head import (
        HEAD_LAYOUT as HEAD_LAYOUT,
        HeadCase as HeadCase,
        load_head as load_head,
        save_head as save_head,
    )
    from attractor.prompts.files.in_context import (
        IN_CONTEXT_LAYOUT as IN_CONTEXT_LAYOUT,
        InContextCase as InContextCase,
        save_in_context as save_in_context,
    )
    from attractor.prompts.files.regression import (
        REGRESSION_LAYOUT as REGRESSION_LAYOUT,
        RegressionCase as RegressionCase,
        save_regression as save_regression,
    )
    from attractor.prompts.finite_length import (
        averaged_output_error as averaged_output_error,
        error_exponent as error_exponent,
        error_table as error_table,
        finite_length_error as finite_length_error,
        finite_length_exponent as finite_length_exponent,
        measure_error as measure_error,
        measure_output_error as measure_output_error,
        monte_carlo_error as monte_carlo_error,
        output_error as output_error,
    )
    from attractor.prompts.head import (
        AttentionHead as AttentionHead,
        HeadGradients as HeadGradients,
        head_gradients as head_gradients,
        output as output,
        output_jacobian as output_jacobian,
    )
    from attractor.prompts.length import (
        AffineLimit as AffineLimit,
        PromptLength as PromptLength,
        non_gaussian_defect as non_gaussian_defect,
        prompt_length as prompt_length,
        required_length as required_length,
    )
    from attractor.prompts.length.how_long import (
        effective_sample_size as effective_sample_size,
        freezing_length as freezing_length,
    )
    from attractor.prompts.measures import (
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

import_on_first_use(__name__)
