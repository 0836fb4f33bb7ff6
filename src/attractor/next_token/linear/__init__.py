"""Linear decoders trained to predict the next token from fixed embeddings, with soft labels."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.next_token.linear._compatibility import Compatibility, compatibility
    from attractor.next_token.linear._separability import Separability, separability
    from attractor.next_token.linear._support_space import (
        SupportSpace,
        support_projection,
        support_space,
    )
    from attractor.next_token.linear.contexts import Contexts
    from attractor.next_token.linear.generators import (
        PlanarContexts,
        planar_contexts,
        random_contexts,
    )
    from attractor.next_token.linear.measures import measure_linear
    from attractor.next_token.linear.path import linear_regularization_path
    from attractor.next_token.linear.problem import decoder_problem, finite_part, finite_problem
    from attractor.next_token.linear.train import LinearTraining, train_linear
    from attractor.next_token.linear.trajectory import LinearTrajectory

__all__ = [
    "Compatibility",
    "Contexts",
    "LinearTraining",
    "LinearTrajectory",
    "PlanarContexts",
    "Separability",
    "SupportSpace",
    "compatibility",
    "decoder_problem",
    "finite_part",
    "finite_problem",
    "linear_regularization_path",
    "measure_linear",
    "planar_contexts",
    "random_contexts",
    "separability",
    "support_projection",
    "support_space",
    "train_linear",
]

import_on_first_use(__name__)
