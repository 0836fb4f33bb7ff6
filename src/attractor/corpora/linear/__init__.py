"""Linear decoders trained to predict the next token from fixed embeddings, with soft labels."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.corpora.linear._compatibility import (
        Compatibility as Compatibility,
        compatibility as compatibility,
    )
    from attractor.corpora.linear._separability import (
        Separability as Separability,
        separability as separability,
    )
    from attractor.corpora.linear._support_space import (
        SupportSpace as SupportSpace,
        support_projection as support_projection,
        support_space as support_space,
    )
    from attractor.corpora.linear.contexts import EmbeddedContexts as EmbeddedContexts
    from attractor.corpora.linear.generators import random_contexts as random_contexts
    from attractor.corpora.linear.measures import measure_linear as measure_linear
    from attractor.corpora.linear.path import (
        linear_regularization_path as linear_regularization_path,
    )
    from attractor.corpora.linear.problem import (
        decoder_problem as decoder_problem,
        finite_part as finite_part,
    )
    from attractor.corpora.linear.train import (
        LinearTraining as LinearTraining,
        train_linear as train_linear,
    )
    from attractor.corpora.linear.trajectory import LinearTrajectory as LinearTrajectory

import_on_first_use(__name__)
