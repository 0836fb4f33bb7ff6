"""Attention: the exact kernel, heads, losses, parameterizations, scaled gradients."""

from typing import TYPE_CHECKING

from attractor.support.lazy_names import import_names_on_first_use

if TYPE_CHECKING:
    from attractor.attention.gradients.scaled_gradient import (
        ScaledGradient as ScaledGradient,
        mean_loss as mean_loss,
        scaled_gradient as scaled_gradient,
    )
    from attractor.attention.heads import (
        ConcaveHead as ConcaveHead,
        Head as Head,
        LinearHead as LinearHead,
        ModuleHead as ModuleHead,
        PredictionHeads as PredictionHeads,
        ReLUHead as ReLUHead,
        ValueMatrix as ValueMatrix,
        VocabularyHead as VocabularyHead,
    )
    from attractor.attention.losses import (
        CrossEntropy as CrossEntropy,
        Exponential as Exponential,
        Linear as Linear,
        Logistic as Logistic,
        Loss as Loss,
        NegativeLog as NegativeLog,
        Squared as Squared,
        UserLoss as UserLoss,
        get_loss as get_loss,
    )
    from attractor.attention.multi_head import (
        AttentionHeads as AttentionHeads,
        MultiHead as MultiHead,
        get_parameterization as get_parameterization,
    )
    from attractor.attention.parameterization import (
        AttentionMatrix as AttentionMatrix,
        Joint as Joint,
        KeyQuery as KeyQuery,
        KeyQueryFactors as KeyQueryFactors,
        Parameterization as Parameterization,
        Parameters as Parameters,
        PromptVector as PromptVector,
    )
    from attractor.attention.rows import (
        Rows as Rows,
        attention_rows as attention_rows,
    )
    from attractor.attention.scaled import Scaled as Scaled
    from attractor.attention.softmax import (
        SoftmaxRow as SoftmaxRow,
        row_cotangent as row_cotangent,
        softmax_attention as softmax_attention,
        softmax_row as softmax_row,
    )

# Their methods are traced with programs, and run in the settings of what traces them.
import_names_on_first_use(__name__)
