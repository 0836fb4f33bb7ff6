"""In-context linear regression: the task, the risk and optimum of attention, and training."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompt.regression._infinite_flow import (
        BlockFlow,
        infinite_flow,
        linear_attention_flow,
    )
    from attractor.prompt.regression._infinite_risk import infinite_risk, limit_horizon
    from attractor.prompt.regression._leading_order import (
        LeadingOrder,
        leading_order,
        leading_order_without_labels,
    )
    from attractor.prompt.regression._opposite_heads import (
        opposite_heads,
        small_score_optimum,
        small_score_risk,
    )
    from attractor.prompt.regression._softmax_optimum import SoftmaxOptimum, softmax_optimum
    from attractor.prompt.regression._softmax_risk import SoftmaxRisk, softmax_risk
    from attractor.prompt.regression._trained_limit import (
        InitialScaleBounds,
        TrainedLimit,
        finite_prompt_limit,
        initial_scale_bounds,
        trained_limit,
    )
    from attractor.prompt.regression.blocks import Blocks
    from attractor.prompt.regression.covariances import kac_murdock_szego
    from attractor.prompt.regression.initialization import balanced_initialization
    from attractor.prompt.regression.isotropic_flow import (
        IsotropicFlow,
        IsotropicOptimum,
        isotropic_finite_flow,
        isotropic_optimum,
    )
    from attractor.prompt.regression.linear_attention import (
        LinearOptimum,
        linear_attention_optimum,
        linear_attention_risk,
        linear_attention_test_error,
    )
    from attractor.prompt.regression.ridge import RidgeRisk, ridge_risk
    from attractor.prompt.regression.runs import (
        InContextRuns,
        official_experiment,
        train_at_lengths,
    )
    from attractor.prompt.regression.task import RegressionTask
    from attractor.prompt.regression.train import train_in_context
    from attractor.prompt.regression.trajectory import InContextTrajectory

__all__ = [
    "BlockFlow",
    "Blocks",
    "InContextRuns",
    "InContextTrajectory",
    "InitialScaleBounds",
    "IsotropicFlow",
    "IsotropicOptimum",
    "LeadingOrder",
    "LinearOptimum",
    "RegressionTask",
    "RidgeRisk",
    "SoftmaxOptimum",
    "SoftmaxRisk",
    "TrainedLimit",
    "balanced_initialization",
    "finite_prompt_limit",
    "infinite_flow",
    "infinite_risk",
    "initial_scale_bounds",
    "isotropic_finite_flow",
    "isotropic_optimum",
    "kac_murdock_szego",
    "leading_order",
    "leading_order_without_labels",
    "limit_horizon",
    "linear_attention_flow",
    "linear_attention_optimum",
    "linear_attention_risk",
    "linear_attention_test_error",
    "official_experiment",
    "opposite_heads",
    "ridge_risk",
    "small_score_optimum",
    "small_score_risk",
    "softmax_optimum",
    "softmax_risk",
    "train_at_lengths",
    "train_in_context",
    "trained_limit",
]

import_on_first_use(__name__)
