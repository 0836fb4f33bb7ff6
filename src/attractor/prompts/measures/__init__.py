"""The laws that tokens can have."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompts.measures.contract import (
        Convolution as Convolution,
        Measure as Measure,
        Pushforward as Pushforward,
        SubGaussianParameter as SubGaussianParameter,
        Tilt as Tilt,
    )
    from attractor.prompts.measures.elliptical import Sphere as Sphere, StudentT as StudentT
    from attractor.prompts.measures.empirical import Empirical as Empirical
    from attractor.prompts.measures.gaussian import Gaussian as Gaussian
    from attractor.prompts.measures.mixture import Mixture as Mixture
    from attractor.prompts.measures.products import (
        Laplace as Laplace,
        Product as Product,
        Rademacher as Rademacher,
        Uniform as Uniform,
    )

import_on_first_use(__name__)
