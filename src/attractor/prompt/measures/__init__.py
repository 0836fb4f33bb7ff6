"""The laws that tokens can have."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompt.measures.contract import (
        Convolution as Convolution,
        Measure as Measure,
        Pushforward as Pushforward,
        Tilt as Tilt,
    )
    from attractor.prompt.measures.empirical import Empirical as Empirical
    from attractor.prompt.measures.gaussian import Gaussian as Gaussian
    from attractor.prompt.measures.laplace import Laplace as Laplace
    from attractor.prompt.measures.mixture import Mixture as Mixture
    from attractor.prompt.measures.products import Product as Product
    from attractor.prompt.measures.rademacher import Rademacher as Rademacher
    from attractor.prompt.measures.sphere import Sphere as Sphere
    from attractor.prompt.measures.student_t import StudentT as StudentT
    from attractor.prompt.measures.sub_gaussian import (
        SubGaussianParameter as SubGaussianParameter,
    )
    from attractor.prompt.measures.uniform import Uniform as Uniform

import_on_first_use(__name__)
