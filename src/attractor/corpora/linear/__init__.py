"""Linear decoders trained to predict the next token from fixed embeddings, with soft labels."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.corpora.linear.contexts import EmbeddedContexts as EmbeddedContexts
    from attractor.corpora.linear.path import (
        linear_regularization_path as linear_regularization_path,
    )
    from attractor.corpora.linear.supports import (
        Compatibility as Compatibility,
        Separability as Separability,
        SupportSpace as SupportSpace,
        compatibility as compatibility,
        random_contexts as random_contexts,
        separability as separability,
        support_projection as support_projection,
        support_space as support_space,
    )
    from attractor.corpora.linear.train import (
        LinearTraining as LinearTraining,
        train_linear as train_linear,
    )
    from attractor.corpora.linear.trajectory import (
        LinearTrajectory as LinearTrajectory,
        decoder_problem as decoder_problem,
        finite_part as finite_part,
        measure_linear as measure_linear,
    )

import_on_first_use(__name__)
