"""Hypotheses that statements of several papers share, for claims of any pack."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.papers.hypotheses import (
        FEASIBLE as FEASIBLE,
        ONE_TOKEN_A_ROW as ONE_TOKEN_A_ROW,
        SCORES_DIFFER as SCORES_DIFFER,
        trained_by as trained_by,
        trains as trains,
    )
    from attractor.papers.large_prompt.head_hypotheses import (
        CENTERED_QUERIES as CENTERED_QUERIES,
        DISCRETE_TOKENS as DISCRETE_TOKENS,
        FEW_DIRECTIONS as FEW_DIRECTIONS,
        GAUSSIAN_QUERIES as GAUSSIAN_QUERIES,
        GAUSSIAN_TOKENS as GAUSSIAN_TOKENS,
        MODERATE_DIMENSION as MODERATE_DIMENSION,
        WIDE_HORIZON as WIDE_HORIZON,
    )
    from attractor.papers.large_prompt.regression import (
        BALANCED as BALANCED,
        LONG_TRAINING as LONG_TRAINING,
        NOISELESS as NOISELESS,
        QUERIES_EVERYWHERE as QUERIES_EVERYWHERE,
    )

import_on_first_use(__name__)
