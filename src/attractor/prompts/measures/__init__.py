"""The laws that tokens can have."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompts.measures.contract import (
        Convolution as Convolution,
        Measure as Measure,
        Pushforward as Pushforward,
        Tilt as Tilt,
    )
    from attractor.prompts.measures.empirical import Empirical as Empirical
    from attractor.prompts.measures.gaussian import Gaussian as Gaussian
    from attractor.prompts.measures.laplace import Laplace as Laplace
    from attractor.prompts.measures.mixture import Mixture as Mixture
    from attractor.prompts.measures.products import Product as Product
    from attractor.prompts.measures.rademacher import Rademacher as Rademacher
    from attractor.prompts.measures.sphere import Sphere as Sphere
    from attractor.prompts.measures.student_t import StudentT as StudentT
    from attractor.prompts.measures.sub_gaussian import SubGaussianParameter as SubGaussianParameter
    from attractor.prompts.measures.uniform import Uniform as Uniform

import_on_first_use(__name__)
