"""An optimizer of somebody's own, as a row of the table."""

import optax

from attractor.training import declare, register_optimizer


@register_optimizer("clipped descent", "clipped", hyperparameters=("learning_rate", "bound"))
def clipped_descent(learning_rate, bound=1.0, *, twice=False):
    """Gradient descent whose gradient is clipped entry by entry."""
    return declare(
        optax.chain(optax.clip(bound), optax.sgd((2 if twice else 1) * learning_rate)),
        geometry=None,
        settings={"learning_rate": learning_rate, "bound": bound},
    )
