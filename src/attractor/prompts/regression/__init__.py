"""In-context linear regression: the task, the risk and optimum of attention, and training."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompts.regression.blocks import (
        Blocks as Blocks,
        balanced_initialization as balanced_initialization,
    )
    from attractor.prompts.regression.flows._trained_limit import (
        InitialScaleBounds as InitialScaleBounds,
        TrainedLimit as TrainedLimit,
        drift_time as drift_time,
        finite_prompt_limit as finite_prompt_limit,
        initial_scale_bounds as initial_scale_bounds,
        trained_limit as trained_limit,
    )
    from attractor.prompts.regression.flows.block_flows import (
        BlockFlow as BlockFlow,
        finite_flow as finite_flow,
        infinite_flow as infinite_flow,
        linear_attention_flow as linear_attention_flow,
    )
    from attractor.prompts.regression.flows.isotropic_flow import (
        IsotropicFlow as IsotropicFlow,
        IsotropicOptimum as IsotropicOptimum,
        isotropic_finite_flow as isotropic_finite_flow,
        isotropic_optimum as isotropic_optimum,
    )
    from attractor.prompts.regression.risks._softmax_optimum import (
        SoftmaxOptimum as SoftmaxOptimum,
        opposite_heads as opposite_heads,
        opposite_heads_optimum as opposite_heads_optimum,
        small_score_optimum as small_score_optimum,
        small_score_risk as small_score_risk,
        softmax_optimum as softmax_optimum,
    )
    from attractor.prompts.regression.risks.infinite_prompts import (
        LeadingOrder as LeadingOrder,
        infinite_risk as infinite_risk,
        leading_order as leading_order,
        leading_order_without_labels as leading_order_without_labels,
        limit_horizon as limit_horizon,
    )
    from attractor.prompts.regression.risks.linear_attention import (
        LinearOptimum as LinearOptimum,
        RidgeRisk as RidgeRisk,
        linear_attention_optimum as linear_attention_optimum,
        linear_attention_risk as linear_attention_risk,
        ridge_risk as ridge_risk,
    )
    from attractor.prompts.regression.risks.softmax_risks import (
        SoftmaxRisk as SoftmaxRisk,
        softmax_risk as softmax_risk,
    )
    from attractor.prompts.regression.runs import (
        InContextRuns as InContextRuns,
        official_experiment as official_experiment,
        train_at_lengths as train_at_lengths,
    )
    from attractor.prompts.regression.task import (
        RegressionTask as RegressionTask,
        kac_murdock_szego as kac_murdock_szego,
    )
    from attractor.prompts.regression.train import train_in_context as train_in_context
    from attractor.prompts.regression.trajectory import InContextTrajectory as InContextTrajectory

import_on_first_use(__name__)
