"""Training: the loop, ``train``, flows, paths, optimizers, and their trajectories."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.training._train import train as train
    from attractor.training.flow._gradient_flow import gradient_flow as gradient_flow
    from attractor.training.optimizers import (
        Optimizer as Optimizer,
        RegisteredOptimizer as RegisteredOptimizer,
        adam as adam,
        by_parameter as by_parameter,
        composed_spectral_descent as composed_spectral_descent,
        declare as declare,
        get_optimizer as get_optimizer,
        gradient_descent as gradient_descent,
        greedy_coordinate_descent as greedy_coordinate_descent,
        joined as joined,
        lion as lion,
        mirror_descent as mirror_descent,
        momentum as momentum,
        muon as muon,
        newton_schulz_values as newton_schulz_values,
        normalized_gradient_descent as normalized_gradient_descent,
        normalized_momentum as normalized_momentum,
        polyak_step as polyak_step,
        power_decay as power_decay,
        register_optimizer as register_optimizer,
        registered_optimizers as registered_optimizers,
        schatten_mirror_descent as schatten_mirror_descent,
        sign_descent as sign_descent,
        sign_momentum as sign_momentum,
        spectral_descent as spectral_descent,
        steepest_descent as steepest_descent,
        until as until,
        with_rescaled_state as with_rescaled_state,
    )
    from attractor.training.paths._local_path import local_path as local_path
    from attractor.training.paths._regularization_path import (
        regularization_path as regularization_path,
    )
    from attractor.training.programs.compilation import release_compiled as release_compiled
    from attractor.training.trajectory import Trajectory as Trajectory

import_on_first_use(__name__)
