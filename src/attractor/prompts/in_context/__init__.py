"""In-context learning in general: tasks of one's own, other losses, the assumptions, training."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompts.in_context.assumption import (
        AssumptionCheck as AssumptionCheck,
        Tail as Tail,
        check_assumption as check_assumption,
        decay as decay,
        tail_of as tail_of,
    )
    from attractor.prompts.in_context.families import (
        FeatureRegression as FeatureRegression,
        LinearRegression as LinearRegression,
        SingleIndex as SingleIndex,
        SingleIndexRegression as SingleIndexRegression,
        built_in as built_in,
        negative_controls as negative_controls,
    )
    from attractor.prompts.in_context.losses import (
        HUBER as HUBER,
        LOGISTIC as LOGISTIC,
        LOSSES as LOSSES,
        SQUARED as SQUARED,
        Finding as Finding,
        Loss as Loss,
        State as State,
        check_loss as check_loss,
    )
    from attractor.prompts.in_context.task import (
        InContextTask as InContextTask,
        KnownLaw as KnownLaw,
        RiskEstimate as RiskEstimate,
        TaskSample as TaskSample,
    )
    from attractor.prompts.in_context.training import (
        RiskTransfer as RiskTransfer,
        initial_head as initial_head,
        risk_transfer as risk_transfer,
        transfer_of_samples as transfer_of_samples,
    )

import_on_first_use(__name__)
