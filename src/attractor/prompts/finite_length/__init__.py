"""The error of a finite prompt: exact averages over prompts, tables of them, and rates."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompts.finite_length.averages import (
        averaged_error_of_output as averaged_error_of_output,
        averaged_output_error as averaged_output_error,
        error_exponent as error_exponent,
        finite_length_exponent as finite_length_exponent,
    )
    from attractor.prompts.finite_length.bounds import (
        BoundShape as BoundShape,
        ConcentrationBounds as ConcentrationBounds,
        ConcentrationConstants as ConcentrationConstants,
    )
    from attractor.prompts.finite_length.functions import (
        PromptMoments as PromptMoments,
        mean_output as mean_output,
        output_error as output_error,
        output_second_moment as output_second_moment,
        prompt_moments as prompt_moments,
        sum_of_squared_weights as sum_of_squared_weights,
    )
    from attractor.prompts.finite_length.measure_errors import (
        MeasureError as MeasureError,
        measure_error as measure_error,
        measure_output_error as measure_output_error,
    )
    from attractor.prompts.finite_length.squared_errors import (
        CovarianceMoments as CovarianceMoments,
        FiniteLengthError as FiniteLengthError,
        MonteCarloError as MonteCarloError,
        covariance_moments as covariance_moments,
        error_of_output as error_of_output,
        finite_length_error as finite_length_error,
        monte_carlo_error as monte_carlo_error,
    )
    from attractor.prompts.finite_length.table import (
        ErrorTable as ErrorTable,
        error_table as error_table,
    )
    from attractor.prompts.finite_length.two_heads import (
        TwoHeadMoments as TwoHeadMoments,
        two_head_moments as two_head_moments,
    )

import_on_first_use(__name__)
